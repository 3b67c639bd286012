import { expect, it } from "vitest";
import { OwnedRuns } from "../../src/stores/owned-runs.ts";
import { type Committing, commit } from "../../src/stores/postgres/commit.ts";
import type { PgValue } from "../../src/stores/postgres/driver.ts";
import type { Link } from "../../src/stores/postgres/link.ts";
import { appending, creation, endingWhole } from "../../src/testing/store-cases/case.ts";

/** The arguments of `commit_1` that hold plain ends, and the parts which are looked at one by one. */
const ENDS = 13;
const DOCUMENTS = 14;

/** A store of one process whose statements go to `sent`; runs get their numbers in the order of their creation. */
function recording(sent: (readonly PgValue[])[]): Committing {
  let created = 0;
  const link = {
    query: async (_text: string, values: readonly PgValue[]) => {
      sent.push(values);
      const runs = String(values[3]).slice(1, -1).split(",");
      const numbers = runs.map((n) => (n === "NULL" ? ++created : Number(n)));
      return [{ done: { numbers, answers: {} } }];
    },
  } as unknown as Link;
  return { schema: "pawl", owned: new OwnedRuns(), link: () => link, now: () => null, created: () => {} };
}

it("K3 what is known of a run is kept from commit to commit: it is looked up once, not with every step", async () => {
  const sent: (readonly PgValue[])[] = [];
  const to = recording(sent);
  for (const part of [creation("r", { claimed: true }), appending("r", 1), appending("r", 2), appending("r", 3)])
    await commit(to, { worker: "w1", runs: [part] });
  expect(sent.map((values) => values[DOCUMENTS])).toEqual([null, null, null, null]);
});

it("K2 P24 ends go in the order of their runs' numbers, whatever the order of the commit: they are locked as they come", async () => {
  const sent: (readonly PgValue[])[] = [];
  const to = recording(sent);
  for (const run of ["a", "b", "c"]) await commit(to, { worker: "w1", runs: [creation(run, { claimed: true })] });
  await commit(to, { worker: "w1", runs: ["c", "a", "b"].map((run) => endingWhole(run, 1)) });
  const ends = JSON.parse(String(sent.at(-1)?.[ENDS])) as { n: number }[];
  expect(ends.map(({ n }) => n)).toEqual([1, 2, 3]);
});
