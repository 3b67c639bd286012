// Where a great many runs have the text that is searched for, runs are walked instead of an index: the answers stay the same.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { RunFilter } from "../../core/run-query.ts";
import { Connection } from "./connection.ts";
import { countRuns, listRuns } from "./run-queries.ts";

const MANY = 10_100;
const folder = mkdtempSync(join(tmpdir(), "pawl-dense-"));
const db = new Connection(join(folder, "pawl.db"), { durability: "process" }, () => {});

beforeAll(async () => {
  await db.open();
  const series = `with recursive s(i) as (select 1 union all select i + 1 from s where i < ${MANY})`;
  const columns = `n, id, workflow, version, line, patch, state, trace_id, key, tags, priority, created_at, head, head_hash, claims,
    claimed_head, codec`;
  await db.write(() => {
    db.run(`insert into runs (${columns}) ${series} select i, 'id-' || i, 'w' || (i % 3), '1.0.0', '1.0', 0,
      case when i % 4 = 0 then 'failed' else 'succeeded' end, 't', 'key-' || i, '["tag-' || i || '"]', 0, i, 1, 'h', 0, 1, 'json' from s`);
    db.run(`insert into tags (tag, run) ${series} select 'tag-' || i, i from s`);
  });
});

afterAll(() => {
  db.close();
  rmSync(folder, { recursive: true, force: true });
});

const ids = (filter: RunFilter, before?: string) =>
  listRuns(db, { ...filter, limit: 3, ...(before !== undefined && { before }) }).map(({ id }) => id);

it.each(["id-", "w", "key-", "tag-"])(
  "S2-10 a search for %s, which all runs have, gives the newest, page by page",
  (search) => {
    expect(ids({ search })).toEqual(["id-10100", "id-10099", "id-10098"]);
    expect(ids({ search }, "id-3")).toEqual(["id-2", "id-1"]);
    expect(ids({ search, states: ["failed"], workflow: "w0" })).toEqual(["id-10092", "id-10080", "id-10068"]);
    const { counts, atLeast } = countRuns(db, { search }, 5000);
    expect([counts.failed, counts.succeeded, atLeast]).toEqual([2525, 5000, true]);
    expect(countRuns(db, { search, workflow: "w0", states: ["failed"] }, 5000).counts.failed).toBe(841);
  },
);

it("S2-10 a search that few runs fit is exact, whatever else there is", () => {
  expect(ids({ search: "key-1009" })).toEqual(["id-10099", "id-10098", "id-10097"]);
  expect(countRuns(db, { search: "tag-1009" }, 5000).counts).toMatchObject({ failed: 2, succeeded: 9 });
  expect(ids({ search: "tag%" })).toEqual([]);
});
