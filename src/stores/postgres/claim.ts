// Claiming and loading: a run is this worker's before its journal is read, so nobody else appends to it meanwhile.
import type { StoredEntry } from "../../core/journal.ts";
import type { ClaimedRun, ClaimRequest } from "../../core/store.ts";
import type { OwnedRuns } from "../owned-runs.ts";
import { claimedLine } from "../version-line.ts";
import type { Row } from "./driver.ts";
import type { Link } from "./link.ts";
import { entryRow, mailQuery, mailRows, runRow } from "./rows.ts";

export interface Claiming {
  readonly schema: string;
  readonly owned: OwnedRuns;
  link(): Link;
  now(): number | null;
  /** Where the last look at the lines has ended, if there were more than one look takes. */
  cursor: { readonly slot: string; readonly rate: string };
}

const MARKS = Array.from({ length: 12 }, (_, i) => `$${i + 1}`).join(", ");

export async function claim(from: Claiming, request: ClaimRequest): Promise<ClaimedRun[]> {
  const { worker, handles, limit, suspect } = request;
  if (limit < 1) return [];
  const lines = handles.map(claimedLine);
  const link = from.link();
  const rows = await link.query(
    `select number as n, line_slot as slot, line_rate as rate from ${from.schema}.claim_2(${MARKS})`,
    [
      worker,
      from.now(),
      handles.map(({ workflow }) => workflow),
      lines.map(({ line }) => line),
      lines.map(({ patch }) => patch),
      Math.min(limit, 2 ** 31 - 1),
      suspect,
      handles.map(({ concurrency }) => concurrency ?? null),
      handles.map(({ rate }) => rate?.limit ?? null),
      handles.map(({ rate }) => rate?.perMs ?? null),
      from.cursor.slot,
      from.cursor.rate,
    ],
  );
  // A line without a run says where the next look begins.
  const cursor = rows.find((row) => row["n"] === null);
  from.cursor = { slot: (cursor?.["slot"] ?? "") as string, rate: (cursor?.["rate"] ?? "") as string };
  return load(
    from,
    link,
    worker,
    rows.flatMap((row) => (row["n"] === null ? [] : [row["n"] as number])),
  );
}

export async function take(
  from: Claiming,
  worker: string,
  run: string,
  isSlotless = false,
): Promise<ClaimedRun | null> {
  const link = from.link();
  const [row] = await link.query(`select ${from.schema}.take_2($1, $2, $3) as n`, [worker, run, isSlotless]);
  const n = (row?.["n"] ?? null) as number | null;
  const [taken = null] = n === null ? [] : await load(from, link, worker, [n]);
  return taken;
}

/** The runs as they are now, in the order in which they were claimed, with their whole journals and their mail. */
async function load(from: Claiming, link: Link, worker: string, numbers: readonly number[]): Promise<ClaimedRun[]> {
  if (numbers.length === 0) return [];
  const { schema, owned } = from;
  const [rows, mail, entries] = await Promise.all([
    link.query(`select * from ${schema}.runs where n = any ($1)`, [numbers]),
    link.query(mailQuery(schema, "runs.n = any ($1)"), [numbers]),
    link.query(
      `select run, seq, at, type, key, data, bytes, hash from ${schema}.journal where run = any ($1) order by run, seq`,
      [numbers],
    ),
  ]);
  const mails = new Map(mailRows(mail).map((one) => [one.number, one.mail]));
  const journals = byRun(entries);
  const claimed = rows.flatMap((row) => {
    const n = row["n"] as number;
    const one = mails.get(n);
    const run = runRow(row);
    // Fenced in the meantime, it is somebody else's by now.
    if (one === undefined || run.owner !== worker) return [];
    owned.remember(run.id, { n, owner: worker, head: one.head, isBare: false });
    return [{ n, run: { ...one, row: run, journal: journals.get(n) ?? [] } }];
  });
  const order = new Map(numbers.map((n, i) => [n, i]));
  return claimed.sort((a, b) => (order.get(a.n) ?? 0) - (order.get(b.n) ?? 0)).map(({ run }) => run);
}

function byRun(rows: readonly Row[]): Map<number, StoredEntry[]> {
  const journals = new Map<number, StoredEntry[]>();
  for (const row of rows) {
    const run = row["run"] as number;
    const journal = journals.get(run);
    if (journal === undefined) journals.set(run, [entryRow(row)]);
    else journal.push(entryRow(row));
  }
  return journals;
}
