import { expect, it } from "vitest";
import { OwnedRuns } from "../../src/stores/owned-runs.ts";
import { type Committing, commit } from "../../src/stores/postgres/commit.ts";
import type { PgValue } from "../../src/stores/postgres/driver.ts";
import type { Link } from "../../src/stores/postgres/link.ts";
import { appending, creation } from "../../src/testing/store-cases/case.ts";

/** The argument of `commit_1` that holds the parts which are looked at one by one. */
const DOCUMENTS = 14;

it("K3 what is known of a run is kept from commit to commit: it is looked up once, not with every step", async () => {
  const documents: PgValue[] = [];
  const link = {
    query: async (_text: string, values: readonly PgValue[]) => {
      documents.push(values[DOCUMENTS] ?? null);
      return [{ done: { numbers: [1], answers: {} } }];
    },
  } as unknown as Link;
  const to: Committing = {
    schema: "pawl",
    owned: new OwnedRuns(),
    link: () => link,
    now: () => null,
    created: () => {},
  };
  for (const part of [creation("r", { claimed: true }), appending("r", 1), appending("r", 2), appending("r", 3)])
    await commit(to, { worker: "w1", runs: [part] });
  expect(documents).toEqual([null, null, null, null]);
});
