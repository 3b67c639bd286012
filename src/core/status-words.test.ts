import { expect, it } from "vitest";
import { STATUS_WORDS, statesCalled, statusIn } from "./status-words.ts";
import { RUN_STATES } from "./transition.ts";

// The table of SPEC section 8, with the engine's words for its states: waiting is WaitingApproval, WaitingTimer and WaitingSignal, parked is Suspended.
const TABLE = `
accepted     | running   | pending                   | -           | no
running      | running   | in_progress               | in_progress | yes
retrying     | running   | in_progress               | in_progress | no
waiting      | waiting   | in_progress +waiting_for  | in_progress | no
compensating | running   | in_progress +compensating | -           | yes
parked       | waiting   | in_progress +waiting_for  | in_progress | no
succeeded    | succeeded | done                      | completed   | no
failed       | failed    | failed                    | active      | no
cancelled    | cancelled | failed +cancelled         | active      | no
`;

it("M-3 C-13 T-17 S2-38 every state has a word in each vocabulary, and what a word does not say stands beside it", () => {
  const rows = STATUS_WORDS.map(({ internal, public: word, document, flag, plan, holdsLease }) =>
    [internal, word, flag === null ? document : `${document} +${flag}`, plan ?? "-", holdsLease ? "yes" : "no"].join(
      " ",
    ),
  );
  expect(rows).toEqual(
    TABLE.trim()
      .split("\n")
      .map((line) => line.split(/\s*\|\s*/).join(" ")),
  );
});

it.each(["internal", "public", "document"] as const)(
  "M-3 C-13 the words of %s lead back to the states that they stand for",
  (format) => {
    for (const state of RUN_STATES) expect(statesCalled(format, statusIn(format, state))).toContain(state);
    const all = [...new Set(RUN_STATES.map((state) => statusIn(format, state)))].flatMap((word) =>
      statesCalled(format, word),
    );
    expect(all.toSorted()).toEqual(RUN_STATES.toSorted());
  },
);

it("M-3 with its flag a document's status is one state, where the table can be read backwards", () => {
  const back = STATUS_WORDS.map(({ document, flag }) => statesCalled("document", document, flag).join(" "));
  expect(back).toEqual([
    "accepted",
    "running retrying",
    "running retrying",
    "waiting parked",
    "compensating",
    "waiting parked",
    "succeeded",
    "failed",
    "cancelled",
  ]);
});
