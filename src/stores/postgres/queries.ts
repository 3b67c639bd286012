import type { StoredEntry } from "../../core/journal.ts";
import type { CounterRow, InboxRow, KeyRow, RunRow, StateRow, WaitQuery, WaitRow } from "../../core/store.ts";
import { endOfPrefix } from "../counters.ts";
import { Conditions } from "./conditions.ts";
import type { PgValue, Row } from "./driver.ts";
import type { Link } from "./link.ts";
import { dataOf, entryRow, inboxRow, runRow, waitRow } from "./rows.ts";

export class Queries {
  readonly #s: string;
  readonly #link: () => Link;

  constructor(schema: string, link: () => Link) {
    this.#s = schema;
    this.#link = link;
  }

  #ask(text: string, ...values: PgValue[]): Promise<readonly Row[]> {
    return this.#link().read(text, values);
  }

  async run(id: string): Promise<RunRow | null> {
    const [row] = await this.#ask(`select * from ${this.#s}.runs where id = $1`, id);
    return row === undefined ? null : runRow(row);
  }

  async journal(run: string, from = 0, limit?: number): Promise<StoredEntry[]> {
    const rows = await this.#ask(
      `select seq, at, type, key, data, bytes, hash from ${this.#s}.journal
       where run = (select n from ${this.#s}.runs where id = $1) and seq >= $2 order by seq limit ${limitOf(limit)}`,
      run,
      from,
    );
    return rows.map(entryRow);
  }

  async inbox(run: string): Promise<InboxRow[]> {
    const rows = await this.#ask(
      `select n, id, kind, name, data, bytes, at from ${this.#s}.inbox
       where run = (select n from ${this.#s}.runs where id = $1) and not consumed order by n`,
      run,
    );
    return rows.map(inboxRow);
  }

  async waits({ run, kind, name, after, limit }: WaitQuery): Promise<WaitRow[]> {
    const s = this.#s;
    const where = new Conditions();
    where.add("runs.id = ?", run);
    where.add("kind = ?", kind);
    where.add("waits.name = ?", name);
    if (after !== undefined) {
      const number = await this.#ask(`select n from ${s}.runs where id = $1`, after.run);
      where.add("(waits.run, waits.key) > (?, ?)", (number[0]?.["n"] ?? null) as PgValue, after.key);
      if (number.length === 0) return [];
    }
    // Repeats the condition of the index over what people are asked.
    if (kind === "approval" || kind === "decision") where.add("kind in ('approval', 'decision')");
    const rows = await this.#ask(
      `select runs.id as run, runs.workflow, waits.key, waits.kind, waits.name, waits.due, waits.detail
       from ${s}.waits join ${s}.runs on runs.n = waits.run
       where ${where.text} order by waits.run, waits.key limit ${limitOf(limit)}`,
      ...where.values,
    );
    return rows.map(waitRow);
  }

  async state(run: string): Promise<StateRow[]> {
    const rows = await this.#ask(
      `select key, data, bytes from ${this.#s}.state where run = (select n from ${this.#s}.runs where id = $1) order by key`,
      run,
    );
    return rows.map((row) => ({ key: row["key"] as string, data: dataOf(row) as string | Uint8Array }));
  }

  async key(space: string, key: string): Promise<KeyRow | null> {
    const [row] = await this.#ask(
      `select runs.id as run, keys.digest from ${this.#s}.keys join ${this.#s}.runs on runs.n = keys.run
       where space = $1 and keys.key = $2`,
      space,
      key,
    );
    return row === undefined ? null : { run: row["run"] as string, digest: row["digest"] as string };
  }

  async counters(prefix: string): Promise<CounterRow[]> {
    const rows = await this.#ask(
      `select key, value from ${this.#s}.counters where key >= $1 and key < $2 and starts_with(key, $1) order by key`,
      prefix,
      endOfPrefix(prefix),
    );
    return rows.map((row) => ({ key: row["key"] as string, value: row["value"] as number }));
  }
}

export function limitOf(limit: number | undefined): string {
  return limit === undefined || limit === Number.POSITIVE_INFINITY ? "all" : String(Math.max(0, Math.floor(limit)));
}
