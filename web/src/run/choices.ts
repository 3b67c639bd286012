// The choices of parked runs: what follows from each, and what it needs.

interface Choice {
  readonly says: string;
  /** What goes with it; without it, nothing does. */
  readonly needs?: Need;
  readonly isDangerous?: boolean;
}

export type Need =
  | { readonly kind: "json"; readonly label: string; readonly isRequired?: boolean }
  | { readonly kind: "reason"; readonly label: string }
  | { readonly kind: "force"; readonly label: string };

const ENDS = { says: "The run ends as cancelled; nothing is undone.", isDangerous: true };
const HAPPENED: Need = { kind: "json", label: "What it gave, as JSON (leave it empty if nothing)" };

export const CHOICES: Readonly<Record<string, Choice>> = {
  retry: { says: "What stopped it is tried again." },
  rerun: { says: "The step is done again. Choose this only if it has not happened, or a second time does no harm." },
  complete: { says: "The step counts as done, with the result that you give.", needs: HAPPENED },
  happened: {
    says: "You have looked: it has happened outside. It counts as done and is not done again.",
    needs: HAPPENED,
  },
  "did-not-happen": { says: "You have looked: it has not happened outside. It is done now.", isDangerous: true },
  skip: {
    says: "It goes on as if the step were done.",
    needs: { kind: "reason", label: "Reason, for the journal" },
  },
  fail: { says: "The step fails, and the run decides what follows.", isDangerous: true },
  cancel: ENDS,
  abort: ENDS,
  compensate: { says: "What it has done is undone, as far as it says how, and the run ends.", isDangerous: true },
  raise: {
    says: "The budget grows, and the call is tried again.",
    needs: { kind: "json", label: 'The new limits, as JSON, such as { "usd": 5 }', isRequired: true },
  },
  old: { says: "It goes on under its old version, as soon as a worker has that." },
  fresh: {
    says: "This run is cancelled and kept. A new one starts from the beginning with the present code and the same input.",
    needs: { kind: "force", label: "Even if this run has acted outside: that stays done, and may be done again" },
  },
  migrate: { says: "Its state is brought to the new version, as the code says how, and it goes on there." },
};

/** One that a workflow has made up. */
export const UNKNOWN: Choice = {
  says: "The run goes on as this choice says.",
  needs: { kind: "json", label: "What the choice needs, as JSON (often nothing)" },
};
