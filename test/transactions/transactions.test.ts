// ctx.transaction: the user's rows and the record of them are one, whatever happens around them.
import { describe, expect, it } from "vitest";
import { PawlError } from "../../src/base/errors.ts";
import type { Sql } from "../../src/core/sql.ts";
import type { Workflow } from "../../src/core/workflow.ts";
import { memoryStore, Pawl, RetryableError, workflow } from "../../src/index.ts";
import { crashEverywhere } from "../../src/testing/index.ts";
import { rounds } from "../attacks/rig.ts";
import { errorOf, gate } from "../behaviour/harness.ts";
import { openSqlWorld, SQL_STORES, transacting } from "./sql-world.ts";

const QUICK = { retry: { base: 1, jitter: false } };

for (const kind of SQL_STORES) {
  describe(kind, () => {
    it("I7 P2 a transaction's rows and its outcome are there together, in order with what is around it", async () => {
      const { world, accounts } = await openSqlWorld(kind);
      const pay = workflow("pay", async (ctx) => {
        const a = await ctx.step("a", () => 1);
        const count = await ctx.transaction("pay", (sql) => accounts.pay(sql, "ada"));
        const b = await ctx.step("b", () => 2);
        const again = await ctx.transaction("pay", (sql) => accounts.pay(sql, "bob"));
        return [a, count, b, again];
      });
      const pawl = await world.open([pay]);
      const run = await pawl.start(pay);
      expect(await run.result()).toEqual([1, 1, 2, 2]);
      expect(await accounts.paid()).toEqual(["ada", "bob"]);
      expect(await world.journal(run)).toEqual([
        "run.started",
        "step.started a",
        "step.completed a",
        "step.started pay",
        "step.completed pay",
        "step.started b",
        "step.completed b",
        "step.started pay#2",
        "step.completed pay#2",
        "run.succeeded",
      ]);
    });

    it("TX2 a transaction has no checkpoints: save() throws, and everything is rolled back", async () => {
      const { world, accounts } = await openSqlWorld(kind);
      const saving = workflow("saving", async (ctx) =>
        ctx.transaction("pay", (sql, info) =>
          then(accounts.pay(sql, "ada"), () => {
            expect(info.saved).toBeUndefined();
            void info.save("half");
          }),
        ),
      );
      const run = await (await world.open([saving])).start(saving);
      const error = await errorOf(run.result());
      expect(error).toMatchObject({ code: "invalid_argument", message: expect.stringContaining("has no checkpoints") });
      expect(await accounts.paid()).toEqual([]);
      expect(await world.journal(run)).not.toContain("checkpoint pay");
    });

    it("TX2 TX4 a step that saves and transactions beside it do not keep each other waiting", async () => {
      const { world, accounts } = await openSqlWorld(kind);
      const beside = workflow("beside", async (ctx) => {
        const saving = ctx.step("s", async ({ save }) => {
          for (let n = 1; n <= 10; n++) await save(n);
          return "saved";
        });
        const paying = ctx.map(["ada", "bob"], (who) =>
          ctx.transaction(
            "pay",
            (sql) => accounts.pay(sql, who),
            kind === "postgres" ? { isolation: "serializable" } : {},
          ),
        );
        return [await saving, (await paying).length];
      });
      const run = await (await world.open([beside])).start(beside);
      expect(await run.result()).toEqual(["saved", 2]);
      expect((await world.journal(run)).filter((line) => line === "checkpoint s")).toHaveLength(10);
    });

    it("I5 I7 replay gives the recorded outcome back and runs no SQL, values and errors alike", async () => {
      const { world, accounts } = await openSqlWorld(kind);
      const bodies: unknown[] = [];
      const pay = workflow("pay", async (ctx) => {
        const paid = await ctx.transaction(
          "pay",
          async_(kind, (sql) => accounts.pay(sql, "ada")),
        );
        const refused = await ctx
          .transaction("refuse", () => {
            throw new Error("no such account");
          })
          .catch((error: Error) => error.message);
        bodies.push([paid, refused]);
        await ctx.waitFor("go");
        return [paid, refused];
      });
      const first = await world.open([pay]);
      const run = await first.start(pay);
      await world.settle();
      const second = await world.restart([pay]);
      await second.signal(run.id, "go");
      expect(await second.get(run.id).result()).toEqual([1, "no such account"]);
      expect(bodies).toEqual([
        [1, "no such account"],
        [1, "no such account"],
      ]);
      expect(await accounts.paid()).toEqual(["ada"]);
    });

    it("I7 S4-30 an error rolls everything back, and is retried or surfaces as a step's does", async () => {
      const { world, accounts } = await openSqlWorld(kind);
      let attempts = 0;
      const flaky = workflow("flaky", async (ctx) => {
        const tried = await ctx.transaction(
          "pay",
          async_(kind, (sql) => {
            const paid = accounts.pay(sql, `try ${++attempts}`);
            return then(paid, () => {
              if (attempts < 3) throw new RetryableError("busy");
              return attempts;
            });
          }),
          QUICK,
        );
        const error = await errorOf(
          ctx.transaction("fail", (sql) =>
            then(accounts.pay(sql, "nobody"), () => {
              throw new PawlError("invalid_argument", "no such account");
            }),
          ),
        );
        return [tried, error["code"]];
      });
      const pawl = await world.open([flaky]);
      const run = await pawl.start(flaky);
      await world.advance(5000);
      expect(await run.result()).toEqual([3, "invalid_argument"]);
      expect(await accounts.paid()).toEqual(["try 3"]);
      expect((await world.journal(run)).filter((line) => line.includes("pay"))).toEqual([
        "step.started pay",
        "step.failed pay",
        "step.started pay",
        "step.failed pay",
        "step.started pay",
        "step.completed pay",
      ]);
    });

    it("I7 P2 P15 steps and transactions of a run go on side by side, and replay in the order in which they ended", async () => {
      const { world, accounts } = await openSqlWorld(kind);
      const orders: string[][] = [];
      const mixed = workflow("mixed", async (ctx) => {
        const order: string[] = [];
        const noted = async (what: string, work: Promise<unknown>) => {
          await work;
          order.push(what);
          await ctx.step(`after ${what}`, () => what);
          order.push(`after ${what}`);
        };
        await Promise.all(
          Array.from({ length: 6 }, (_, i) => [
            noted(
              `step ${i}`,
              ctx.step(`step ${i}`, async () => i),
            ),
            noted(
              `pay ${i}`,
              ctx.transaction(`pay ${i}`, (sql) => accounts.pay(sql, `${i}`)),
            ),
          ]).flat(),
        );
        orders.push(order);
        await ctx.waitFor("go");
        return order;
      });
      const run = await (await world.open([mixed])).start(mixed);
      await world.settle();
      const second = await world.restart([mixed]);
      await second.signal(run.id, "go");
      expect(await second.get(run.id).result()).toEqual(orders[0]);
      expect(orders[1]).toEqual(orders[0]);
      expect((await accounts.paid()).toSorted()).toEqual(["0", "1", "2", "3", "4", "5"]);
    });

    it("I7 P17 after a lost answer the journal's end tells: what was committed counts, what was not is done again, each row once", async () => {
      for (const isApplied of [true, false]) {
        const { world, accounts } = await openSqlWorld(kind);
        let calls = 0;
        const pay = workflow("pay", async (ctx) => {
          const one = ctx.step("beside", () => "beside");
          const count = await ctx.transaction("pay", (sql) => accounts.pay(sql, `call ${++calls}`));
          return [await one, count, await ctx.step("after", () => "after")];
        });
        const lost = new PawlError("unknown_outcome", "The answer was lost.");
        const store = transacting(world.store, async (transact, rollBack) => {
          await (isApplied ? transact() : rollBack());
          throw lost;
        });
        const pawl = await Pawl.open(store, { workflows: [pay], logger: SILENT, handleSignals: false });
        const run = await pawl.start(pay);
        expect(await run.result()).toEqual(["beside", 1, "after"]);
        expect(await accounts.paid()).toEqual([isApplied ? "call 1" : "call 2"]);
        expect(calls).toBe(isApplied ? 1 : 2);
        await pawl.close();
      }
    });

    it("I7 ST5 while the store is away a transaction waits, uses up no attempt, and is then done once", async () => {
      const { world, accounts } = await openSqlWorld(kind);
      const pay = workflow("pay", async (ctx) => {
        return ctx.transaction("pay", (sql, { attempt }) => then(accounts.pay(sql, "ada"), () => attempt), {
          retry: false,
        });
      });
      let isAway = 5;
      const store = transacting(world.store, async (transact) => {
        if (--isAway > 0) throw new PawlError("storage_unavailable", "The store is away.");
        return transact();
      });
      const pawl = await Pawl.open(store, { workflows: [pay], logger: SILENT, handleSignals: false });
      expect(await pawl.run(pay)).toBe(1);
      expect(await accounts.paid()).toEqual(["ada"]);
      await pawl.close();
    });

    it("I7 I8 P20 whoever was fenced while its SQL ran has it rolled back, and adopts what the other has recorded", async () => {
      const { world, accounts } = await openSqlWorld(kind);
      let calls = 0;
      const pay = workflow("pay", async (ctx) => {
        return ctx.transaction("pay", (sql) => then(accounts.pay(sql, `call ${++calls}`), () => calls));
      });
      // Everybody believes for a while that the first worker is dead, and the run goes to the second.
      let second: Pawl | null = null;
      const store = transacting(world.store, async (transact) => {
        const workers = await world.store.workers();
        await world.store.fence({ workers: workers.map(({ id }) => id) });
        second = await world.open([pay]);
        await world.settle();
        return transact();
      });
      const first = await Pawl.open(store, { workflows: [pay], logger: SILENT, handleSignals: false });
      const run = await first.start(pay);
      expect(await run.result()).toBe(1);
      expect(await (second as unknown as Pawl).get(run.id).result()).toBe(1);
      expect(await accounts.paid()).toEqual(["call 1"]);
      await first.close();
    });

    it("I7 P2 P19 a cancel that comes while the outcome is being written is seen after it, live and in replay", async () => {
      const { world, accounts } = await openSqlWorld(kind);
      const seen: unknown[] = [];
      const pay = workflow("pay", async (ctx) => {
        seen.push(await ctx.transaction("pay", (sql) => accounts.pay(sql, "ada")));
        await ctx.step("after", () => seen.push("after"));
      });
      const store = transacting(world.store, async (transact) => {
        const verdict = await transact();
        void pawl.cancel("r");
        while ((await world.store.run("r"))?.cancel === null);
        await rounds();
        return verdict;
      });
      const pawl = await Pawl.open(store, { workflows: [pay], logger: SILENT, handleSignals: false });
      const run = await pawl.start(pay, undefined, { id: "r" });
      expect((await errorOf(run.result()))["code"]).toBe("cancelled");
      expect(seen).toEqual([1]);
      expect((await world.journal(run)).slice(1, 4)).toEqual([
        "step.started pay",
        "step.completed pay",
        expect.stringMatching(/run.cancelling|step.started after/),
      ]);
      expect(await accounts.paid()).toEqual(["ada"]);
      await pawl.close();
    });

    it("X-4 statements that would end the transaction, and those that come too late, are refused", async () => {
      const { world, accounts } = await openSqlWorld(kind);
      let kept: Sql | null = null;
      const ask = (sql: Sql, text: string) => (kind === "sqlite" ? sql.run(text) : sql.query(text));
      const wayward = workflow("wayward", async (ctx) => {
        const codes: unknown[] = [];
        for (const text of ["commit", " /* now */ ROLLBACK", "end", "begin", "start transaction"]) {
          codes.push(await refusalOf(ctx.transaction("end it", (sql) => ask(sql, text) as Promise<unknown>)));
        }
        await ctx.transaction("keep it", (sql) => {
          kept = sql;
          return accounts.pay(sql, "ada");
        });
        return codes;
      });
      const pawl = await world.open([wayward]);
      expect(await pawl.run(wayward)).toEqual(Array(5).fill("invalid_argument"));
      const late = await errorOf((async () => ask(kept as unknown as Sql, "select 1"))());
      expect(late["code"]).toBe("transaction_failed");
      expect(await accounts.paid()).toEqual(["ada"]);
    });

    it("P7 calls of the context are refused inside a transaction", async () => {
      const { world, accounts } = await openSqlWorld(kind);
      const nested = workflow("nested", async (ctx) =>
        ctx.transaction("outer", (sql) => {
          const inner = refusedNow(() => ctx.transaction("inner", () => 1));
          return then(accounts.pay(sql, "ada"), () => inner);
        }),
      );
      const pawl = await world.open([nested]);
      expect(await pawl.run(nested)).toBe("call_in_step");
    });
  });
}

describe("postgres", () => {
  it("P19 I7 a cancel while its SQL runs rolls it back, and no row is left", async () => {
    const { world, accounts } = await openSqlWorld("postgres");
    const inside = gate();
    const late = gate();
    const pay = workflow("pay", async (ctx) => {
      await ctx.transaction("pay", async (sql, { signal }) => {
        await accounts.pay(sql, "ada");
        inside.open();
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        await late.passed;
      });
    });
    const pawl = await world.open([pay]);
    const run = await pawl.start(pay);
    await inside.passed;
    await pawl.cancel(run.id);
    expect((await errorOf(run.result()))["code"]).toBe("cancelled");
    late.open();
    await world.settle();
    expect(await accounts.paid()).toEqual([]);
  });

  it("S4-24 a transaction that takes too long is rolled back and fails with the step's timeout", async () => {
    const { world, accounts } = await openSqlWorld("postgres");
    const inside = gate();
    const pay = workflow("pay", async (ctx) => {
      const work = async (sql: Sql) => {
        await accounts.pay(sql, "ada");
        inside.open();
        await new Promise(() => {});
      };
      return refusalOf(ctx.transaction("pay", work, { timeout: "2s", retry: false }));
    });
    const pawl = await world.open([pay]);
    const run = await pawl.start(pay);
    await inside.passed;
    world.clock.advance(2000);
    expect(await run.result()).toBe("step_timeout");
    expect(await accounts.paid()).toEqual([]);
  });

  it("I7 an error of the database that the function has caught still undoes the transaction, and the run learns why", async () => {
    const { world, accounts } = await openSqlWorld("postgres");
    const careless = workflow("careless", async (ctx) => {
      const work = async (sql: Sql) => {
        await accounts.pay(sql, "ada");
        await sql.query("select 1 / 0").catch(() => {});
        return "done";
      };
      return refusalOf(ctx.transaction("pay", work));
    });
    const pawl = await world.open([careless]);
    expect(await pawl.run(careless)).toBe("transaction_failed");
    expect(await accounts.paid()).toEqual([]);
  });

  it("I7 a constraint that is checked at COMMIT fails the step, and nothing is left", async () => {
    const { world, accounts } = await openSqlWorld("postgres");
    const deferred = `alter table ${accounts.table} add constraint once unique (who) deferrable initially deferred`;
    const twice = workflow("twice", async (ctx) => {
      await ctx.transaction("constrain", async (sql) => void (await sql.query(deferred)));
      const work = async (sql: Sql) => {
        await accounts.pay(sql, "ada");
        await accounts.pay(sql, "ada");
      };
      return [
        await refusalOf(ctx.transaction("pay", work)),
        await ctx.transaction("pay", (sql) => accounts.pay(sql, "bob")),
      ];
    });
    const pawl = await world.open([twice]);
    expect(await pawl.run(twice)).toEqual(["23505", 1]);
    expect(await accounts.paid()).toEqual(["bob"]);
  });

  it("I7 serialization failures are retried, whatever isolation asks for, and no update is lost", async () => {
    const { world, accounts } = await openSqlWorld("postgres");
    const count = workflow("count", async (ctx, n: number) => {
      const beside = ctx.step("beside", () => n);
      const work = (sql: Sql) => accounts.pay(sql, `${n}`);
      const counted = await ctx.transaction("count", work, {
        isolation: "serializable",
        retry: { max: 20, base: 1, jitter: false },
      });
      await beside;
      return counted;
    });
    const pawl = await world.open([count]);
    const runs = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => pawl.start(count, n)));
    await world.advance(60_000);
    const counts = await Promise.all(runs.map((run) => run.result()));
    expect(counts.toSorted()).toEqual([1, 2, 3, 4, 5, 6]);
    expect((await accounts.paid()).length).toBe(6);
  });

  it("TX4 P15 I7 whoever sees the journal as it was when it began has it to itself: its function runs once", async () => {
    const { world, accounts } = await openSqlWorld("postgres");
    const inside = gate();
    let calls = 0;
    const pay = workflow("pay", async (ctx) => {
      const beside = ctx.step("beside", () => inside.passed);
      const work = async (sql: Sql) => {
        calls++;
        await accounts.pay(sql, "ada");
        inside.open();
        // Time enough for the outcome of the step to be written, if it could be.
        for (let i = 0; i < 50; i++) await sql.query("select 1");
      };
      await ctx.transaction("pay", work, { isolation: "repeatable read", retry: false });
      await beside;
    });
    const pawl = await world.open([pay]);
    await pawl.run(pay);
    expect([calls, await accounts.paid()]).toEqual([1, ["ada"]]);
  });

  it("P22 more transactions than connections wait for each other", async () => {
    const { world, accounts } = await openSqlWorld("postgres");
    const pay = workflow("pay", async (ctx, n: number) => ctx.transaction("pay", (sql) => accounts.pay(sql, `${n}`)));
    const pawl = await world.open([pay]);
    await Promise.all(Array.from({ length: 40 }, (_, n) => pawl.run(pay, n)));
    expect(new Set(await accounts.paid()).size).toBe(40);
  });
});

describe("sqlite", () => {
  it("P22 an async function is refused before anything is written, one that returns a promise after it was rolled back", async () => {
    const { world, accounts } = await openSqlWorld("sqlite");
    let calls = 0;
    const waiting = workflow("waiting", async (ctx) => {
      const isAsync = ctx.transaction("async", async (sql) => {
        calls++;
        return accounts.pay(sql, "ada");
      });
      const promised = ctx.transaction("promise", (sql) => Promise.resolve(accounts.pay(sql, "ada")));
      return [await refusalOf(isAsync), await refusalOf(promised)];
    });
    const pawl = await world.open([waiting]);
    const run = await pawl.start(waiting);
    expect(await run.result()).toEqual(["invalid_argument", "invalid_argument"]);
    expect(await accounts.paid()).toEqual([]);
    expect(calls).toBe(0);
  });
});

it("P22 a store without transactions says so at the call, and names those that have them", async () => {
  const pay = workflow("pay", async (ctx) => ctx.transaction("pay", () => 1));
  const pawl = await Pawl.open(memoryStore(), { workflows: [pay], logger: SILENT, handleSignals: false });
  const error = await errorOf(pawl.run(pay));
  expect(error["code"]).toBe("invalid_argument");
  expect(error.message).toMatch(/SQLite.*PostgreSQL/);
  await pawl.close();
});

const pay = workflow("pay", async (ctx) => ctx.transaction("pay", () => 1));

it.each<[string, Workflow<undefined, unknown>]>([
  ["in the run itself", pay],
  ["in one that it calls", workflow("order", async (ctx) => ctx.call(pay))],
  ["in one that goes on by itself", workflow("order", async (ctx) => ctx.spawn(pay))],
  [
    "where the body goes on without it",
    workflow("order", async (ctx) => ctx.transaction("pay", () => 1).catch(() => 0)),
  ],
])("P22 the crash explorer refuses what it cannot play: %s", async (_, workflow) => {
  const error = await errorOf(crashEverywhere(workflow, undefined, { workflows: [pay] }));
  expect([error["code"], error.message]).toEqual([
    "invalid_argument",
    expect.stringContaining('crashEverywhere cannot explore ctx.transaction("pay")'),
  ]);
});

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

/** Goes on with a value that may be there already. */
function then<T, R>(value: Promise<T> | T, go: (value: T) => R): Promise<R> | R {
  return value instanceof Promise ? value.then(go) : go(value);
}

/** The same function, async where the store allows it. */
function async_<T>(kind: string, fn: (sql: Sql) => Promise<T> | T): (sql: Sql) => Promise<T> | T {
  return kind === "sqlite" ? fn : async (sql) => fn(sql);
}

async function refusalOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => null,
    (error: { code?: unknown }) => error.code,
  );
}

function refusedNow(call: () => unknown): unknown {
  try {
    call();
    return null;
  } catch (error) {
    return (error as PawlError).code;
  }
}
