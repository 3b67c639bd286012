// A world whose store has transactions, with a table of the user's beside those of the engine.
import { inject, onTestFinished } from "vitest";
import type { Sql } from "../../src/core/sql.ts";
import type { Store, Verdict } from "../../src/core/store.ts";
import { loadDriver as loadPg } from "../../src/stores/postgres/driver.ts";
import { openWorld, type World } from "../behaviour/harness.ts";

export const SQL_STORES = ["sqlite", "postgres"] as const;
export type SqlStoreKind = (typeof SQL_STORES)[number];

/** The same statements for both: PostgreSQL answers later, SQLite at once. */
export interface Accounts {
  /** The name of the table, in PostgreSQL with its schema. */
  readonly table: string;
  /** Adds a row. */
  pay(sql: Sql, who: string): Promise<number> | number;
  /** Everybody who was paid, in the order of payment, as others see it. */
  paid(): Promise<string[]>;
}

let tables = 0;

export async function accountsOf(kind: SqlStoreKind, world: World): Promise<Accounts> {
  return kind === "sqlite" ? sqliteAccounts(world) : postgresAccounts();
}

export async function postgresAccounts(): Promise<Accounts & { drop(schema: string): Promise<void> }> {
  const table = `accounts_${process.pid}_${++tables}`;
  const client = (await loadPg()).client({ connectionString: inject("postgresUrl") });
  await client.connect();
  await client.query({ text: `create table ${table} (n bigserial, who text not null)` });
  onTestFinished(async () => {
    await client.query({ text: `drop table ${table}` });
    await client.end();
  });
  return {
    table,
    async pay(sql, who) {
      await sql.query(`insert into ${table} (who) values ($1)`, [who]);
      const [row] = await sql.query<{ count: string }>(`select count(*) from ${table}`);
      return Number(row?.count);
    },
    async paid() {
      const { rows } = await client.query({ text: `select who from ${table} order by n` });
      return rows.map((row) => row["who"] as string);
    },
    async drop(schema) {
      await client.query({ text: `drop schema ${schema} cascade` });
    },
  };
}

async function sqliteAccounts(world: World): Promise<Accounts> {
  const table = "accounts";
  /** Reads or writes beside the engine, through the same door. */
  const beside = async <T>(work: (sql: Sql) => T): Promise<T> => {
    let value: T | undefined;
    const undo = new Error("only looking");
    const looked = world.store.transact?.(
      { lane: 0, isolation: "read committed", timeoutMs: 1000, idleMs: 1000 },
      (sql) => {
        value = work(sql);
        throw undo;
      },
    );
    await looked?.catch((error: unknown) => {
      if (error !== undo) throw error;
    });
    return value as T;
  };
  const created = `create table if not exists ${table} (n integer primary key, who text not null)`;
  return {
    table,
    pay(sql, who) {
      sql.run(created);
      sql.run(`insert into ${table} (who) values (?)`, who);
      return Number(sql.get<{ count: number }>(`select count(*) as count from ${table}`)?.count);
    },
    paid: () =>
      beside((sql) => {
        sql.run(created);
        return sql.all<{ who: string }>(`select who from ${table} order by n`).map(({ who }) => who);
      }),
  };
}

export async function openSqlWorld(kind: SqlStoreKind): Promise<{ world: World; accounts: Accounts }> {
  const world = await openWorld(kind);
  return { world, accounts: await accountsOf(kind, world) };
}

/** The store with something done around its first transaction, or around all of them until one is let through. */
export function transacting(
  store: Store,
  around: (transact: () => Promise<Verdict>, rollBack: () => Promise<void>) => Promise<Verdict>,
): Store {
  let isOver = false;
  const { pulse: _, ...methods } = store;
  return {
    ...methods,
    open: async () => {},
    close: async () => {},
    async transact(request, work) {
      const transact = () => store.transact?.(request, work) as Promise<Verdict>;
      if (isOver) return transact();
      const letThrough = () => {
        isOver = true;
        return transact();
      };
      /** Its work is done to the end, and nothing is left of it. */
      const rollBack = async () => {
        const undo = new Error("undo");
        const undone = store.transact?.(request, (sql) => {
          const sealed = work(sql);
          if (!(sealed instanceof Promise)) throw undo;
          return sealed.then(() => {
            throw undo;
          });
        });
        await undone?.catch((error: unknown) => {
          if (error !== undo) throw error;
        });
      };
      return around(letThrough, rollBack).catch((error: { code?: unknown }) => {
        if (error.code === "unknown_outcome") isOver = true;
        throw error;
      });
    },
  };
}
