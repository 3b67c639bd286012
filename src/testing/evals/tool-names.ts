// Names by rule
// A case may call a thing otherwise than the workflow does: "refunds.draftRefundRequest" is the effect "draft" of the workflow "refund". A name
// fits a call if it has all words of the call's own name, and otherwise only words of the workflow's name and words that say nothing.

const SAYING_NOTHING = new Set(["a", "an", "call", "do", "effect", "request", "run", "step", "the", "to", "tool"]);

/** The words in a name, in one form: no case, no plural. */
function wordsOf(name: string): Set<string> {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "");
  return new Set(words.map((word) => (word.length > 3 ? word.replace(/(?<=[^s])s$/, "") : word)));
}

/** What a case's name for a thing is compared with. */
export interface Named {
  readonly workflow: string;
  /** As the workflow has it, and with its place in maps and counts: `map/0/charge#2`. */
  readonly name: string;
  readonly key: string;
}

/** Whether a name of a case means this call. */
export function fits(given: string, { workflow, name, key }: Named): boolean {
  if (given === name || given === key || given === `${workflow}.${name}`) return true;
  const words = wordsOf(given);
  const own = wordsOf(name);
  if (own.size === 0 || ![...own].every((word) => words.has(word))) return false;
  const around = wordsOf(workflow);
  return [...words].every((word) => own.has(word) || around.has(word) || SAYING_NOTHING.has(word));
}
