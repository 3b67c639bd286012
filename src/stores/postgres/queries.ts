import { PawlError } from "../../base/errors.ts";
import type { StoredEntry } from "../../core/journal.ts";
import type { CounterRow, InboxRow, KeyRow, RunQuery, RunRow, StateRow, WaitQuery, WaitRow } from "../../core/store.ts";
import { endOfPrefix } from "../counters.ts";
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

  async runs(query: RunQuery): Promise<RunRow[]> {
    const s = this.#s;
    if (query.before !== undefined) await this.#assertCursor(query.before);
    const where = new Conditions();
    where.add("workflow = ?", query.workflow);
    where.add("n in (select run from tags where tag = ?)".replace("tags", `${s}.tags`), query.tag);
    where.add("parent = ?", query.parent);
    where.add("slot = ? and slot <> '' and owner is not null", query.slot);
    where.add("created_at > ?", query.createdAfter);
    where.add("created_at < ?", query.createdBefore);
    where.add(`n < (select n from ${s}.runs where id = ?)`, query.before);
    const states = query.states === undefined ? [null] : [...new Set(query.states)];
    // A question for each state has an index; for a list of them it would not be in order.
    const selects = states.map((state) => {
      const isState =
        state === null ? "true" : `state = '${state}'${state === "succeeded" ? "" : " and state <> 'succeeded'"}`;
      return `(select * from ${s}.runs where ${isState} and ${where.text} order by n desc limit ${limitOf(query.limit)})`;
    });
    if (selects.length === 0) return [];
    const text = `select * from (${selects.join(" union all ")}) as found order by n desc limit ${limitOf(query.limit)}`;
    return (await this.#ask(text, ...where.values)).map(runRow);
  }

  async #assertCursor(id: string): Promise<void> {
    if ((await this.run(id)) !== null) return;
    throw new PawlError(
      "run_not_found",
      `The page cursor ${id} names a run that is gone. List again from the first page.`,
      { fields: { run: id } },
    );
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

/** Conditions that hold together, with their values. */
class Conditions {
  readonly #texts = ["true"];
  readonly values: PgValue[] = [];

  /** Leaves it out where a value is absent. */
  add(text: string, ...given: readonly (PgValue | undefined)[]): void {
    if (given.some((value) => value === undefined)) return;
    let at = this.values.length;
    this.#texts.push(text.replaceAll("?", () => `$${++at}`));
    this.values.push(...(given as PgValue[]));
  }

  get text(): string {
    return this.#texts.join(" and ");
  }
}

function limitOf(limit: number | undefined): string {
  return limit === undefined || limit === Number.POSITIVE_INFINITY ? "all" : String(Math.max(0, Math.floor(limit)));
}
