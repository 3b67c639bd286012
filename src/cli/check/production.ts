// Readiness for production
// The ten things that a workflow needs before people depend on it (S2-96 to S2-105), each with what shows it. Some are read off the definition, some
// are seen in plays, some in the runs of a store. What nothing shows is not ready: evidence is what this list is for.
import { decode } from "../../base/codec.ts";
import type { ExportedEntry } from "../../client/export.ts";
import { MATTERS } from "../../core/owners.ts";
import type { Workflow } from "../../core/workflow.ts";
import type { LintFinding } from "../../testing/lint/findings.ts";
import { relativeToHere } from "../code-place.ts";
import { countOf } from "../printable.ts";
import { type AuditItem, GUARDS, type Judged, NOT_PLAYED } from "./audit.ts";
import { alertFault, FOUR_ALERTS } from "./four-alerts.ts";
import type { PlayedWorkflow } from "./played-workflow.ts";
import type { StoredRuns } from "./stored-runs.ts";
import { transcriptIn } from "./transcript.ts";

/** What is known of a workflow. */
export interface Examined {
  readonly workflow: Workflow;
  /** `null`: nobody gave an input. */
  readonly played: PlayedWorkflow | null;
  /** `null`: no store was looked at. */
  readonly stored: StoredRuns | null;
  /** What the files export as `alerts`, as `Pawl.open` takes it; absent: the usual ones. */
  readonly alerts?: unknown;
  /** Of this workflow, and whether a case keeps them from coming back. */
  readonly incidents: readonly { readonly id: string; readonly hasCase: boolean }[];
}

export function readinessOf(examined: Examined): AuditItem[] {
  return ITEMS.map(([title, judge], at) => {
    const [status, evidence] = judge(examined);
    return { item: at + 1, title, status, evidence };
  });
}

const ITEMS: readonly (readonly [title: string, judge: (examined: Examined) => Judged])[] = [
  ["the state of a run is defined apart from the context of prompts", statesApart],
  ["every run has a stable id, a trace id and an idempotency key", identities],
  ["every outside effect and every approval request is followed by a checkpoint", checkpoints],
  ["outside effects are idempotent or can be undone", guarded],
  ["definitions, prompts, policies, models and tools are versioned", versioned],
  ["wait, timeout, denial, cancellation and escalation of approvals are ordinary transitions", approvals],
  ["enough is kept to replay failed runs", replayable],
  ["stuck, waiting, failed and compensating runs have owners", owned],
  ["the four alerts are configured", alerted],
  ["incidents are turned into regression cases", learned],
];

const NO_STORE: Judged = ["not shown", "no store was looked at: give --store"];

function entriesOf({ played, stored }: Examined): readonly ExportedEntry[] {
  return [...(played?.runs ?? []).map(({ exported }) => exported), ...(stored?.samples ?? [])].flatMap(
    ({ entries }) => entries,
  );
}

function payloadOf({ value }: ExportedEntry): unknown {
  return decode(JSON.stringify(value));
}

function statesApart(examined: Examined): Judged {
  const entries = entriesOf(examined).filter(({ type }) => type === "state.patched" || type === "checkpoint");
  for (const entry of entries) {
    const path = transcriptIn(payloadOf(entry));
    if (path !== null)
      return [
        "fail",
        `state "${entry.key}" has a list of messages${path === "" ? "" : ` at ${path}`}: keep what the run knows in its state, and build prompts from it`,
      ];
  }
  if (examined.played === null && (examined.stored?.samples.length ?? 0) === 0) return NOT_PLAYED;
  return ["pass", `${countOf(entries.length, "value")} of state and checkpoints seen, none of them a list of messages`];
}

function identities({ stored }: Examined): Judged {
  if (stored === null) return NO_STORE;
  if (stored.looked === 0) return ["not shown", "the store has no run of it yet"];
  const [first] = stored.unkeyed;
  if (first !== undefined)
    return [
      "fail",
      `${countOf(stored.unkeyed.length, "run")} of ${stored.looked} began without a key or an id of the caller's, such as ${first}: start them with \`key\``,
    ];
  if (stored.untraced.length > 0) return ["fail", `run ${stored.untraced[0]} has no trace id`];
  return ["pass", `${countOf(stored.looked, "run")} in the store, each with its id, trace id and key`];
}

function checkpoints(examined: Examined): Judged {
  const { played } = examined;
  if (played === null) return NOT_PLAYED;
  const found = messagesOf(played, ({ kind }) => kind === "in_body");
  if (found !== "") return ["fail", found];
  const entries = played.runs.flatMap(({ exported }) => exported.entries);
  const acts = entries.filter(({ type }) => type === "effect.executed" || type === "approval.requested").length;
  return [
    "pass",
    `${countOf(acts, "effect or request", "effects and requests")} played, each in the journal and on the disk before the next step began`,
  ];
}

function guarded({ played }: Examined): Judged {
  if (played === null) return NOT_PLAYED;
  const found = messagesOf(played, ({ kind }) => GUARDS.has(kind));
  if (found !== "") return ["fail", found];
  const acts = played.lint.operations.filter(({ kind, class: level }) => kind === "effect" && level !== "read");
  const named = acts.map(({ name, detectedBy, undo }) => `"${name}" by ${undo === "none" ? detectedBy : "its undo"}`);
  return ["pass", named.length === 0 ? "nothing that it did was seen to act outside" : named.join(", ")];
}

function versioned(examined: Examined): Judged {
  const { version, definition } = examined.workflow;
  if (!definition.isVersioned)
    return ["fail", `it has no version of its own: write \`version: "${version}"\`, and raise it with each change`];
  const uses = definition.uses ?? {};
  const missing = usesModels(examined) ? ["models", "prompts"].filter((kind) => uses[kind] === undefined) : [];
  if (missing.length > 0)
    return [
      "fail",
      `it has asked a model, and \`uses\` names no ${missing.join(" and no ")}: say which versions it uses`,
    ];
  const kinds = Object.entries(uses).map(([kind, named]) => `${kind} ${Object.keys(named).join(", ")}`);
  return [
    "pass",
    `version ${version}${kinds.length === 0 ? "" : `, with ${kinds.join("; ")}`}, recorded with every run`,
  ];
}

function usesModels(examined: Examined): boolean {
  return entriesOf(examined).some(
    (entry) => entry.type === "cost" && "tokens" in ((payloadOf(entry) as object | null) ?? {}),
  );
}

function approvals(examined: Examined): Judged {
  const entries = entriesOf(examined);
  const endless = entries.find(
    (entry) => entry.type === "signal.awaited" && (payloadOf(entry) as { due: number | null } | null)?.due == null,
  );
  if (endless !== undefined)
    return [
      "fail",
      `it waits for signal "${endless.key}" without a timeout, so nobody is reminded and nothing follows if nobody answers: give \`timeout\`, or ask people with ctx.approve`,
    ];
  if (examined.played === null && (examined.stored?.samples.length ?? 0) === 0) return NOT_PLAYED;
  const asked = [...new Set(entries.filter(({ type }) => type === "approval.requested").map(({ key }) => key))];
  if (asked.length === 0) return ["pass", "it asks nobody, and waits for nothing without a timeout"];
  return [
    "pass",
    `${asked.map((key) => `"${key}"`).join(", ")}: each has a timeout; denial, expiry, cancellation and escalation are handled, or lead to what is usual`,
  ];
}

function replayable({ stored, played }: Examined): Judged {
  const lost = stored?.failed.find(({ replay }) => !replay.ok) ?? played?.runs.find(({ replay }) => !replay.ok);
  if (lost !== undefined) {
    const which = "run" in lost ? `failed run ${lost.run}` : `a run that was played ("${lost.test}")`;
    const why = "message" in lost.replay ? lost.replay.message : "this code does not follow it";
    return ["fail", `${which} cannot be replayed: ${relativeToHere(String(why))}`];
  }
  if (stored === null) return NO_STORE;
  const plays =
    played === null
      ? ""
      : `, and ${countOf(played.runs.length, "run")} that ${played.runs.length === 1 ? "was" : "were"} played`;
  return ["pass", `${countOf(stored.failed.length, "failed run")} of the store replayed without effects${plays}`];
}

function owned({ workflow }: Examined): Judged {
  const { owners } = workflow.definition;
  const missing = MATTERS.filter((matter) => owners[matter] === null);
  if (missing.length > 0)
    return ["fail", `nobody owns runs that are ${missing.join(", ")}: give \`owner\`, one for all or one for each`];
  return ["pass", MATTERS.map((matter) => `${matter}: ${owners[matter]}`).join(", ")];
}

function alerted({ alerts }: Examined): Judged {
  const fault = alertFault(alerts);
  if (fault !== null) return ["fail", fault];
  return ["pass", `${FOUR_ALERTS.join(", ")}: ${alerts === undefined ? "on, as they are by default" : "on"}`];
}

function learned({ incidents }: Examined): Judged {
  if (incidents.length === 0) return ["pass", "no incident is on record"];
  const open = incidents.filter(({ hasCase }) => !hasCase);
  if (open.length > 0)
    return ["fail", `incident ${open.map(({ id }) => id).join(", ")} has no regression case: link one`];
  return ["pass", `${countOf(incidents.length, "incident")}, each with its case`];
}

function messagesOf({ lint }: PlayedWorkflow, isMeant: (finding: LintFinding) => boolean): string {
  return lint.findings
    .filter(isMeant)
    .map(({ message }) => relativeToHere(message))
    .join(" ");
}
