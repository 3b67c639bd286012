import type { Call } from "./call.ts";
import type { Entry } from "./journal.ts";

/** A recorded entry and what the body did instead. */
export interface Divergence {
  readonly recorded: Entry;
  /** The call that was issued there; `null`: the body ended or went quiet without it. */
  readonly issued: Call | null;
  readonly site: string | null;
}

/** A call as people name it: `step "charge"`. */
export function describeCall(call: Call): string {
  return `${WORDS[call.type]} "${call.key}"`;
}

const WORDS: Readonly<Record<string, string>> = {
  "step.started": "step",
  "timer.set": "sleep",
  "signal.awaited": "waitFor",
  "child.started": "child",
};

export function describeDivergence(run: string, { recorded, issued, site }: Divergence): string {
  const was = WORDS[recorded.type] ? `${WORDS[recorded.type]} "${recorded.key}"` : `${recorded.type}${recorded.key === null ? "" : ` "${recorded.key}"`}`;
  const did = issued === null ? "did not issue it" : `issued ${describeCall(issued)}${site === null ? "" : ` at ${site}`}${sameName(recorded, issued) ? " with another input" : ""}`;
  return (
    `Replay of run ${run} diverged at entry ${recorded.seq}: the journal has ${was}, the code ${did}. ` +
    'The workflow changed, or its body depends on something that is not recorded. Deploy code that follows the journal and resolve the run with "retry", fork it before that entry, or cancel it.'
  );
}

function sameName(recorded: Entry, issued: Call): boolean {
  return recorded.type === issued.type && recorded.key === issued.key;
}
