// Live progress of one run
// One line for what is done, failed or waited for. A step that is quick shows once; one that takes longer is announced first. Of a map
// with many items, the first ones show and the rest is counted.
import { formatMs } from "../base/duration.ts";
import { decisionText } from "../client/timeline.ts";
import type { ApprovalDecided, ApprovalRequested } from "../core/approval-request.ts";
import type { CallbackEnded, CallbackOpened } from "../core/callback.ts";
import type { ChildEnded, ChildStarted, Entry, Parked, StepFailed, StepStarted, TimerSet } from "../core/journal.ts";
import { MapItems, mapOf } from "./map-items.ts";
import type { Output } from "./output.ts";
import { clean, errorLine, shortJson } from "./printable.ts";
import { inTime } from "./times.ts";

const ANNOUNCE_AFTER_MS = 500;

interface OpenStep {
  readonly startedAt: number;
  readonly attempt: number;
  readonly announce: NodeJS.Timeout;
}

export class Live {
  readonly #out: Output;
  readonly #now: () => number;
  /** How to send a signal to this run, given its name. */
  readonly #hint: (signal: string) => string;
  readonly #steps = new Map<string, OpenStep>();
  readonly #waits = new Map<string, number>();
  readonly #maps = new Map<string, MapItems>();
  #isSilent = false;

  constructor(out: Output, now: () => number, hint: (signal: string) => string) {
    this.#out = out;
    this.#now = now;
    this.#hint = hint;
  }

  stop(): void {
    for (const { announce } of this.#steps.values()) clearTimeout(announce);
    for (const items of this.#maps.values()) items.sumUp();
  }

  show(entry: Entry): void {
    const key = entry.key ?? "";
    const items = this.#itemsOf(key);
    if (items === null) for (const other of this.#maps.values()) if (other.isAtRest) other.sumUp();
    items?.take(entry, !this.#isSilent);
    const show = this.#shows[entry.type];
    if (show !== undefined) show(key, entry);
    else this.#happened(entry);
  }

  #itemsOf(key: string): MapItems | null {
    const name = mapOf(key);
    if (name === null) return null;
    const items = this.#maps.get(name) ?? new MapItems(name, this.#out);
    this.#maps.set(name, items);
    return items;
  }

  /** Takes in what was recorded before: it is not news, but what follows refers to it. */
  prime(entries: readonly Entry[]): void {
    this.#isSilent = true;
    for (const entry of entries) this.show(entry);
    this.#isSilent = false;
  }

  readonly #shows: Partial<Record<Entry["type"], (key: string, entry: Entry) => void>> = {
    "step.started": (key, entry) => this.#stepStarted(key, entry as Entry<StepStarted>),
    "step.completed": (key, entry) => this.#stepCompleted(key, entry),
    "effect.planned": (key, entry) => this.#stepStarted(key, entry as Entry<StepStarted>),
    "effect.executed": (key, entry) => this.#stepCompleted(key, entry),
    "effect.compensated": (key, entry) => this.#stepCompleted(key, entry),
    "step.failed": (key, entry) => this.#stepFailed(key, entry as Entry<StepFailed>),
    "timer.set": (key, entry) =>
      this.#waiting(key, key, entry.at, `sleeps until ${inTime(this.#now(), (entry.payload as TimerSet).due)}`),
    "timer.fired": (key, entry) => this.#timerFired(key, entry),
    "signal.awaited": (key, entry) => this.#signalAwaited(key, entry as Entry<Partial<TimerSet> | null>),
    "signal.received": (key, entry) =>
      this.#waited("signal", key, entry.at, shortJson((entry.payload as { payload?: unknown }).payload, 80)),
    "child.started": (key, entry) =>
      this.#waiting(key, `child ${key}`, entry.at, `is run ${(entry.payload as ChildStarted).child}`),
    "approval.requested": (key, entry) => {
      const { id, approvers, expiresAt } = entry.payload as ApprovalRequested;
      const until = `until ${inTime(this.#now(), expiresAt)}; up to ${approvers.join(", ")}: pawl approve ${id} --by <name>`;
      this.#waiting(key, `approval ${key}`, entry.at, `waiting ${until}`);
    },
    "approval.decided": (key, { at, payload }) =>
      this.#waited("approval", key, at, decisionText(payload as ApprovalDecided)),
    "callback.opened": (key, entry) => {
      const { id, due } = entry.payload as CallbackOpened;
      const until = due === null ? "" : ` until ${inTime(this.#now(), due)}`;
      this.#waiting(key, `callback ${key}`, entry.at, `waiting for an answer${until}: ${id}`);
    },
    "callback.ended": (key, { at, payload }) => this.#waited("callback", key, at, answerText(payload as CallbackEnded)),
    "child.ended": (key, entry) => this.#childEnded(key, entry as Entry<ChildEnded>),
  };

  /** A line about the call with this key: of the items of a map, only so many are told. */
  #line(key: string, mark: string, what: string, more = ""): void {
    const items = this.#itemsOf(key);
    if (this.#isSilent || items?.areMany === true) return;
    items?.shown();
    this.#out.note(`  ${mark} ${clean(what)}${more === "" ? "" : `  ${this.#out.noteColor.dim(clean(more))}`}`);
  }

  #stepStarted(key: string, { at, payload }: Entry<StepStarted>): void {
    const { cyan, yellow } = this.#out.noteColor;
    const attempt = payload?.attempt ?? 1;
    if (payload?.rerun === true) this.#line(key, yellow("↻"), key, `attempt ${attempt}: the last one was interrupted`);
    const announce = setTimeout(
      () => this.#line(key, cyan("▸"), key, `running${attempt > 1 ? `, attempt ${attempt}` : ""}`),
      ANNOUNCE_AFTER_MS,
    );
    clearTimeout(this.#steps.get(key)?.announce);
    this.#steps.set(key, { startedAt: at, attempt, announce });
  }

  #closeStep(key: string): OpenStep | undefined {
    const step = this.#steps.get(key);
    clearTimeout(step?.announce);
    this.#steps.delete(key);
    return step;
  }

  #stepCompleted(key: string, { at }: Entry): void {
    const step = this.#closeStep(key);
    const attempt = step !== undefined && step.attempt > 1 ? `, attempt ${step.attempt}` : "";
    const took = step === undefined ? "" : `${formatMs(at - step.startedAt)}${attempt}`;
    this.#line(key, this.#out.noteColor.green("✓"), key, took);
  }

  #stepFailed(key: string, { payload }: Entry<StepFailed>): void {
    this.#closeStep(key);
    const { red, yellow } = this.#out.noteColor;
    const why = errorLine(payload.error);
    if (payload.retryAt === null) this.#line(key, red("✗"), key, `failed: ${why}`);
    else {
      const wait = formatMs(Math.max(0, payload.retryAt - this.#now()));
      this.#line(key, yellow("✗"), key, `attempt ${payload.attempt} failed: ${why}; again in ${wait}`);
    }
  }

  #waiting(key: string, what: string, at: number, text: string): void {
    this.#waits.set(what, at);
    this.#line(key, this.#out.noteColor.blue("◷"), what, text);
  }

  #signalAwaited(key: string, { at, payload }: Entry<Partial<TimerSet> | null>): void {
    const due = payload?.due ?? null;
    const name = key.slice(key.lastIndexOf("/") + 1).replace(/#\d+$/, "");
    this.#waiting(
      key,
      `signal ${key}`,
      at,
      `waiting${due === null ? "" : ` until ${inTime(this.#now(), due)}`}; send it with: ${this.#hint(name)}`,
    );
  }

  #waited(kind: string, key: string, at: number, more: string): void {
    const since = this.#waits.get(`${kind} ${key}`);
    const took = since === undefined ? "" : `${formatMs(at - since)}  `;
    this.#line(key, this.#out.noteColor.green("✓"), `${kind} ${key}`, `${took}${more}`);
  }

  #timerFired(key: string, { at, payload }: Entry): void {
    const isTimeout = (payload as { wait?: boolean } | null)?.wait === true;
    const since = this.#waits.get(key);
    if (isTimeout) this.#line(key, this.#out.noteColor.yellow("✗"), `signal ${key}`, "did not come in time");
    else this.#line(key, this.#out.noteColor.green("✓"), key, since === undefined ? "" : formatMs(at - since));
  }

  #childEnded(key: string, { at, payload }: Entry<ChildEnded>): void {
    if (payload.status === "succeeded") this.#waited("child", key, at, "succeeded");
    else
      this.#line(key, this.#out.noteColor.red("✗"), `child ${key}`, `${payload.status}: ${errorLine(payload.value)}`);
  }

  #happened({ type, payload }: Entry): void {
    const { dim, yellow, magenta } = this.#out.noteColor;
    const facts = (payload ?? {}) as Record<string, unknown>;
    if (type === "note") this.#line("", dim("·"), String(facts.text ?? ""));
    if (type === "version.changed") this.#line("", yellow("!"), `goes on with version ${String(facts.to ?? "")}`);
    if (type === "run.cancelling") this.#line("", yellow("!"), "cancelling", String(facts.reason ?? ""));
    if (type === "run.compensating") this.#line("", yellow("!"), "undoes what it has done", errorLine(facts.error));
    if (type === "run.continued") this.#line("", dim("·"), `goes on as generation ${String(facts.generation)}`);
    if (type === "run.parked") this.#line("", magenta("‖"), "parked", (payload as Parked).message);
  }
}

function answerText(ended: CallbackEnded): string {
  if (ended.status === "answered") return shortJson(ended.value, 80);
  return ended.status === "failed" ? `failed: ${ended.reason}` : "nobody answered in time";
}
