// Runs that are started in a transaction: they are there exactly if it commits.
import { drizzle } from "drizzle-orm/node-postgres";
import { Kysely, PostgresDialect } from "kysely";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import type { Sql } from "../../src/core/sql.ts";
import { memoryStore, Pawl, workflow } from "../../src/index.ts";
import { errorOf } from "../behaviour/harness.ts";
import { openSqlWorld, SQL_STORES } from "./sql-world.ts";

const greet = workflow("greet", async (ctx, name: string) => ctx.step("greet", () => `hello ${name}`));

interface Pool {
  connect(): Promise<{ query(text: string): Promise<unknown>; release(): void }>;
  end(): Promise<void>;
}

// The package brings no types of its own.
const PG: string = "pg";
const { default: pg } = (await import(PG)) as { default: { Pool: new (options: object) => Pool } };
let pool: Pool;
beforeAll(() => {
  pool = new pg.Pool({ connectionString: inject("postgresUrl") });
});
const kyselyOf = () => new Kysely<object>({ dialect: new PostgresDialect({ pool: pool as never }) });
const drizzleOf = () => drizzle({ client: pool as never });
afterAll(() => pool.end());

/** Runs `work` in a transaction and commits it, or rolls it back. */
type InTransaction = (work: (transaction: never) => Promise<void>, isKept: boolean) => Promise<void>;

const UNDO = new Error("undo");

async function undone(promise: Promise<unknown>): Promise<void> {
  await promise.catch((error: unknown) => {
    if (error !== UNDO) throw error;
  });
}

const WAYS: Readonly<Record<string, InTransaction>> = {
  async "a client of pg"(work, isKept) {
    const client = await pool.connect();
    try {
      await client.query("begin");
      await work(client as never);
      await client.query(isKept ? "commit" : "rollback");
    } catch (error) {
      await client.query("rollback");
      throw error;
    } finally {
      client.release();
    }
  },
  async "a transaction of Kysely"(work, isKept) {
    const done = kyselyOf()
      .transaction()
      .execute(async (transaction) => {
        await work(transaction as never);
        if (!isKept) throw UNDO;
      });
    await undone(done);
  },
  async "a transaction of Drizzle"(work, isKept) {
    const done = drizzleOf().transaction(async (transaction) => {
      await work(transaction as never);
      if (!isKept) throw UNDO;
    });
    await undone(done);
  },
};

describe("postgres", () => {
  for (const [name, inTransaction] of Object.entries(WAYS)) {
    it(`I7 I17 C-9 S2-12 a run started in ${name} is there exactly if that commits, once for its key`, async () => {
      const { world, accounts } = await openSqlWorld("postgres");
      const pawl = await world.open([greet]);
      const ids: string[] = [];
      for (const isKept of [false, true]) {
        await inTransaction(async (transaction) => {
          const run = await pawl.start(greet, "ada", { transaction, key: "ada" });
          const again = await pawl.start(greet, "ada", { transaction, key: "ada" });
          expect(again.id).toBe(run.id);
          ids.push(run.id);
          expect(await world.store.run(run.id)).toBeNull();
        }, isKept);
      }
      expect(await world.store.run(ids[0] as string)).toBeNull();
      expect(await pawl.get(ids[1] as string).result()).toBe("hello ada");
      const other = inTransaction(async (transaction) => {
        await pawl.start(greet, "bob", { transaction, key: "ada" });
      }, true);
      expect((await errorOf(other))["code"]).toBe("idempotency_conflict");
      expect(await accounts.paid()).toEqual([]);
    });
  }

  it("I7 a connection without an open transaction, and anything else, is refused, and no run is started", async () => {
    const { world } = await openSqlWorld("postgres");
    const pawl = await world.open([greet]);
    for (const transaction of [pool, drizzleOf(), kyselyOf(), {}]) {
      const error = await errorOf(pawl.start(greet, "ada", { transaction: transaction as never }));
      expect(error["code"]).toBe("invalid_argument");
    }
    expect((await pawl.list()).runs).toEqual([]);
  });

  it("I7 query builders work on the transaction of ctx.transaction", async () => {
    const { world, accounts } = await openSqlWorld("postgres");
    const build = workflow("build", async (ctx) => {
      const rows = await ctx.transaction("kysely", async (sql) => {
        const db = new Kysely<Record<string, { who: string }>>({ dialect: new PostgresDialect({ pool: sql.client }) });
        await db.insertInto(accounts.table).values({ who: "kysely" }).execute();
        return db.selectFrom(accounts.table).select("who").execute();
      });
      const refused = await errorOf(
        ctx.transaction("drizzle", async (sql) => {
          const db = drizzle({ client: sql.client as never });
          await db.execute(`insert into ${accounts.table} (who) values ('drizzle')`);
          await db.transaction(async () => {});
        }),
      );
      const drizzled = await ctx.transaction("drizzle", async (sql) => {
        const db = drizzle({ client: sql.client as never });
        await db.execute(`insert into ${accounts.table} (who) values ('drizzle')`);
        return (await db.execute(`select who from ${accounts.table} order by n`)).rows;
      });
      return [rows, (refused.cause as { code?: unknown } | undefined)?.code ?? refused["code"], drizzled];
    });
    const pawl = await world.open([build]);
    expect(await pawl.run(build)).toEqual([
      [{ who: "kysely" }],
      "invalid_argument",
      [{ who: "kysely" }, { who: "drizzle" }],
    ]);
    expect(await accounts.paid()).toEqual(["kysely", "drizzle"]);
  });
});

for (const kind of SQL_STORES) {
  it(`${kind}: I7 a run started inside ctx.transaction is there exactly if its step is recorded`, async () => {
    const { world, accounts } = await openSqlWorld(kind);
    let tries = 0;
    const parent = workflow("parent", async (ctx) => {
      const start = (sql: Sql) => pawl.start(greet, `try ${++tries}`, { transaction: sql, id: `child-${tries}` });
      const now = (sql: Sql) => {
        void start(sql).catch(() => {});
        void accounts.pay(sql, `${tries}`);
        if (tries === 1) throw new Error("not yet");
        return tries;
      };
      const later = async (sql: Sql) => {
        await start(sql);
        await accounts.pay(sql, `${tries}`);
        if (tries === 1) throw new Error("not yet");
        return tries;
      };
      return ctx.transaction("start", kind === "sqlite" ? now : later, {
        retry: { on: "any", base: 1, jitter: false },
      });
    });
    const pawl = await world.open([greet, parent]);
    const run = await pawl.start(parent);
    await world.advance(1000);
    expect(await run.result()).toBe(2);
    expect(await world.store.run("child-1")).toBeNull();
    expect(await pawl.get("child-2").result()).toBe("hello try 2");
    expect(await accounts.paid()).toEqual(["2"]);
  });
}

it("I7 a store without transactions refuses to start a run in one", async () => {
  const pawl = await Pawl.open(memoryStore(), { workflows: [greet], handleSignals: false });
  onTestFinished(() => pawl.close());
  const error = await errorOf(pawl.start(greet, "ada", { transaction: pool as never }));
  expect(error["code"]).toBe("invalid_argument");
});
