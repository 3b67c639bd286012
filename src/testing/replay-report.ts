// What replay has to say: each way in which code can leave a recorded run, in words that its reader can act on.
import { encode } from "../base/codec.ts";
import { messageOf, readProperty } from "../base/errors.ts";
import type { ExportedRun } from "../client/export.ts";
import { describeEntry } from "../core/divergence.ts";
import { type Entry, entryKind, type Parked } from "../core/journal.ts";
import type { BodyEnding, DryOutcome } from "./dry-pass.ts";
import type { RedactedValues } from "./redacted-values.ts";
import type { ReplayDiff, ReplayResult } from "./replay.ts";

const SHOWN = 200;

export class Report {
  readonly #exported: ExportedRun;
  readonly #redacted: RedactedValues;

  constructor(exported: ExportedRun, redacted: RedactedValues) {
    this.#exported = exported;
    this.#redacted = redacted;
  }

  reproduced(): ReplayResult {
    const { run, entries } = this.#exported;
    return { ok: true, message: `The code reproduces run ${run.id}: ${entries.length} entries.` };
  }

  /** Why the code did not get to the end of the journal; `null`: it did. */
  departure({ parked, fault, body }: DryOutcome): ReplayResult | null {
    const { needed } = this.#redacted;
    if (needed !== null)
      return this.#failure(
        `${needed} is redacted in this export, and the code reads it. Export the run without redacting it, or leave this run out.`,
      );
    if (fault !== null) return this.#failure(fault);
    if (parked === null || parked.reason === "unknown_outcome") return null;
    // It is refused past the journal's end alone: a run that is parked has come as far.
    if (parked.reason === "foreign_await" && this.#exported.run.state === "parked") return null;
    return this.#parked(parked, body);
  }

  #parked({ reason, message, detail = {} }: Parked, body: BodyEnding | null): ReplayResult {
    const { seq, recorded, issued = null, site = null } = detail as Partial<ReplayDiff> & { site?: string | null };
    if (seq === undefined || recorded === undefined) return this.#failure(message, undefined, site);
    const place = `At entry ${seq} the journal has ${recorded};`;
    const isOtherInput = issued === recorded ? " with another input" : "";
    const did =
      issued !== null
        ? `the code issued ${issued}${isOtherInput}.`
        : reason === "replay_stalled"
          ? "the code has gone quiet without issuing it."
          : endedWords(body);
    const isThrown = issued === null && body?.threw === true;
    return this.#failure(`${place} ${did}`, { seq, recorded, issued }, isThrown ? siteOf(body.error) : site);
  }

  /** The journal goes on without an end. A run that waits has issued all that its turn led to; one that was interrupted may have not. */
  open(outcome: DryOutcome): ReplayResult {
    const { state, id } = this.#exported.run;
    const next = outcome.written.find((entry) => entryKind(entry) === "call" || entryKind(entry) === "end");
    const isResting = state === "waiting" || state === "retrying";
    const open = outcome.open.length > 0 ? ` and waits for ${waitsOf(outcome)}` : "";
    if (!isResting || next === undefined)
      return { ok: true, message: `The code follows the journal of run ${id}, which has not ended${open}.` };
    const seq = this.#exported.entries.length;
    const issued = describeEntry(next);
    const message = `After entry ${seq - 1} the run waits; the code goes on with ${issued}.`;
    return this.#failure(message, { seq, recorded: null, issued }, outcome.sites.get(next.seq));
  }

  /** A run that was cancelled without its body: the code must lead to where it stood. */
  untilCancelled(outcome: DryOutcome): ReplayResult {
    return this.departure(outcome) ?? this.reproduced();
  }

  extraCall(end: Entry, call: Entry, { sites }: DryOutcome): ReplayResult {
    const [recorded, issued] = [describeEntry(end), describeEntry(call)];
    const message = `At entry ${end.seq} the journal has ${recorded}; the code issued ${issued}.`;
    return this.#failure(message, { seq: end.seq, recorded, issued }, sites.get(call.seq));
  }

  noEnd(end: Entry, outcome: DryOutcome): ReplayResult {
    const recorded = describeEntry(end);
    const instead = outcome.open.length > 0 ? `waits for ${waitsOf(outcome)}` : "has gone quiet";
    const message = `At entry ${end.seq} the journal has ${recorded}; the code ${instead}.`;
    return this.#failure(message, { seq: end.seq, recorded, issued: null });
  }

  otherEnd(end: Entry, derived: Entry): ReplayResult {
    const [recorded, issued] = [this.#withValue(end), this.#withValue(derived)];
    const message = `At entry ${end.seq} the journal has ${recorded}; the code comes to ${issued}.`;
    return this.#failure(message, { seq: end.seq, recorded, issued });
  }

  #withValue(entry: Entry): string {
    const text = encode(entry.payload);
    return `${describeEntry(entry)} ${text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text}`;
  }

  #failure(problem: string, diff?: ReplayDiff, site?: string | null): ReplayResult {
    const { run } = this.#exported;
    const { copied } = this.#redacted;
    const line = lineOf(site);
    const hint = copied.length === 0 ? "" : ` The code used redacted values before: ${copied.join("; ")}.`;
    const message = `The code does not reproduce run ${run.id}. ${problem}${hint}`;
    return { ok: false, message, ...(diff === undefined ? {} : { diff }), ...(line === null ? {} : { line }) };
  }
}

function waitsOf({ open }: DryOutcome): string {
  const calls = open.map((call) => {
    const [type = "", ...key] = call.split(" ");
    return describeEntry({ type: type as Entry["type"], key: key.join(" ") });
  });
  return calls.slice(0, 5).join(", ");
}

function endedWords(body: BodyEnding | null): string {
  if (body === null) return "the code did not lead to it.";
  return body.threw ? `the code threw without coming to it: ${messageOf(body.error)}` : "the code returned without it.";
}

/** Where an error was made. */
function siteOf(error: unknown): string | null {
  const stack = String(readProperty(error, "stack") ?? "");
  return stack.split("\n").find((line) => /^\s+at /.test(line)) ?? null;
}

/** The place alone, without the name of the function. */
function lineOf(site: string | null | undefined): string | null {
  const place = /\(?((?:file:\/\/)?[^()]*:\d+:\d+)\)?$/.exec(site ?? "")?.[1] ?? null;
  return place?.replace(/^(.* )?(?:file:\/\/)?(?=\/|[a-z]:\\)/i, "") ?? null;
}
