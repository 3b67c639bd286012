import { describe, expect, it } from "vitest";
import { z } from "zod";
import { agent, callTools, prompt, say, scriptedModel, section, tool } from "../../src/agent/index.ts";
import type { Run } from "../../src/client/run.ts";
import { workflow } from "../../src/core/workflow.ts";
import { crashEverywhere } from "../../src/testing/crash-everywhere.ts";
import { recorder } from "../../src/testing/recorder.ts";
import { type TestEngine, testEngine } from "../../src/testing/test-engine.ts";
import { withoutColdStart } from "../cold-start.ts";
import { errorOf, openWorld, STORES } from "./harness.ts";

/** Everything that a run can do, one after the other; what it did is in `did`. */
function shop(did: string[]) {
  const child = workflow("parcel", async (ctx, order: string) =>
    ctx.effect("send", { do: () => did.push(`send ${order}`), idempotent: true, dry: { value: 0 } }),
  );
  const order = workflow({ name: "order", retry: false }, async (ctx, input: { cents: number; extra?: string }) => {
    const asked = await ctx.step("ask", () => `${did.push("ask") > 0}`, { kind: "model" });
    const stock = await ctx.effect("look", { class: "read", do: () => did.push("look") });
    const payment = await ctx.effect("charge", {
      do: () => ({ payment: input.cents, n: did.push("charge") > 0 }),
      undo: () => did.push("pay back"),
    });
    if (input.extra === "gift")
      await ctx.effect("gift", { do: () => did.push("gift"), idempotent: true, dry: { value: 7 } });
    if (input.extra === "unknown") await ctx.step("tell", () => did.push("tell"));
    if (input.extra === "throw") throw new Error("no more");
    await ctx.call(child, "o-1");
    return { asked, stock, payment };
  });
  return { order, child };
}

describe.each(STORES)("forks with an effect policy on %s", (store) => {
  it("X-25 S2-65 a dry run reuses what is recorded, asks models and reads anew, and does nothing outside", async () => {
    const world = await openWorld(store);
    const did: string[] = [];
    const { order, child } = shop(did);
    const pawl = await world.open([order, child]);
    const run = await pawl.start(order, { cents: 5 });
    expect(await run.result()).toEqual({ asked: "true", stock: 2, payment: { payment: 5, n: true } });
    expect(did).toEqual(["ask", "look", "charge", "send o-1"]);

    const fork = await pawl.fork(run.id, { at: 1, effects: "dry-run", id: `${run.id}-dry` });
    expect(await fork.result()).toMatchObject({ asked: "true", payment: { payment: 5 } });
    expect(did.slice(4)).toEqual(["ask", "look"]);
    expect((await fork.effects()).map(({ effect, status, dry }) => [effect, status, dry])).toEqual([
      ["look", "executed", undefined],
      ["charge", "executed", true],
    ]);
    const { runs } = await pawl.list({ parent: fork.id });
    const sent = await pawl.get(runs[0]?.id ?? "").effects();
    expect(sent).toMatchObject([{ effect: "send", status: "executed", dry: true }]);
    expect((await pawl.fork(run.id, { at: 1, effects: "dry-run", id: `${run.id}-dry` })).id).toBe(fork.id);
  });

  it("X-25 S2-65 a replay begins nothing at all", async () => {
    const world = await openWorld(store);
    const did: string[] = [];
    const { order, child } = shop(did);
    const pawl = await world.open([order, child]);
    const run = await pawl.start(order, { cents: 5 });
    const output = await run.result();
    did.length = 0;
    const fork = await pawl.fork(run.id, { at: 1, effects: "replay" });
    expect(await fork.result()).toEqual(output);
    expect(did).toEqual([]);
  });
});

describe("forks with an effect policy", () => {
  const openShop = async (extra?: string) => {
    const world = await openWorld("memory");
    const did: string[] = [];
    const { order, child } = shop(did);
    const pawl = await world.open([order, child]);
    const run = await pawl.start(order, extra === undefined ? { cents: 5 } : { cents: 5, extra });
    await run.result().catch(() => {});
    did.length = 0;
    return { world, pawl, run, did, order };
  };

  it("X-25 DR3 what is new answers with its `dry` value; a call that nothing answers fails with effect_not_recorded, and nothing was done", async () => {
    withoutColdStart("the code of the fork is not the code of its source");
    const did: string[] = [];
    const world = await openWorld("memory");
    const flag = { isNew: false };
    const changing = workflow({ name: "changing", retry: false }, async (ctx) => {
      await ctx.step("a", () => did.push("a"));
      if (flag.isNew) await ctx.effect("gift", { do: () => did.push("gift"), dry: { value: 7 } });
      if (flag.isNew) await ctx.effect("b", { do: () => did.push("b") });
    });
    const pawl = await world.open([changing]);
    const run = await pawl.start(changing, undefined);
    await run.result();
    flag.isNew = true;
    const fork = await pawl.fork(run.id, { at: "a", effects: "dry-run" });
    const error = await errorOf(fork.result());
    expect((await fork.effects())[0]).toMatchObject({ effect: "gift", status: "executed", dry: true, value: 7 });
    expect(error).toMatchObject({ code: "effect_not_recorded", fields: { step: "b", effects: "dry-run" } });
    expect(error.message).toContain("dry: { value: … }");
    expect(did).toEqual(["a"]);
  });

  it("X-25 DR3 a call with another input is another call, and is not answered with what is recorded", async () => {
    withoutColdStart("the code of the fork is not the code of its source");
    const world = await openWorld("memory");
    const did: number[] = [];
    const price = { cents: 1 };
    const ask = (cents: number) => did.push(cents);
    const priced = workflow({ name: "priced", retry: false }, async (ctx) => {
      await ctx.step("first", () => 0, { dry: "run" });
      return ctx.step(ask, price.cents);
    });
    const pawl = await world.open([priced]);
    const run = await pawl.start(priced, undefined);
    await run.result();
    const same = await pawl.fork(run.id, { at: 1, effects: "dry-run" });
    expect(await same.result()).toBe(1);
    price.cents = 2;
    const other = await pawl.fork(run.id, { at: 1, effects: "dry-run" });
    expect(await errorOf(other.result())).toMatchObject({ code: "effect_not_recorded", fields: { step: "ask" } });
    expect(did).toEqual([1]);
  });

  it("X-25 DR2 a transaction is not begun in a dry run", async () => {
    const world = await openWorld("sqlite");
    const did: string[] = [];
    const booked = workflow("booked", async (ctx) =>
      ctx.transaction("book", (sql) => {
        did.push("book");
        sql.run("create table if not exists books (id)");
        return 1;
      }),
    );
    const pawl = await world.open([booked]);
    const run = await pawl.start(booked, undefined);
    await run.result();
    const fork = await pawl.fork(run.id, { at: 1, effects: "dry-run" });
    expect(await fork.result()).toBe(1);
    expect(did).toEqual(["book"]);
  });

  it("X-25 DR4 what a dry run would undo is marked as undone, and nothing is", async () => {
    const { pawl, run, did } = await openShop("throw");
    expect((await run.effects()).find(({ effect }) => effect === "charge")?.status).toBe("compensated");
    const fork = await pawl.fork(run.id, { at: "charge", effects: "dry-run" });
    await errorOf(fork.result());
    expect(did).toEqual([]);
    expect((await fork.effects()).find(({ effect }) => effect === "charge")).toMatchObject({
      status: "compensated",
      dry: true,
    });
  });

  it("X-25 DR1 a fork of a dry run is dry, and cannot be made live", async () => {
    const { pawl, run, did } = await openShop();
    const dry = await pawl.fork(run.id, { at: 1, effects: "dry-run" });
    await dry.result();
    const again = await pawl.fork(dry.id, { at: "charge" });
    await again.result();
    expect((await again.effects()).find(({ effect }) => effect === "charge")?.dry).toBe(true);
    const error = await errorOf(pawl.fork(dry.id, { at: "charge", effects: "live" }));
    expect(error).toMatchObject({ code: "invalid_argument", fields: { field: "effects" } });
    expect(did).toEqual(["ask", "look"]);
  });

  it("X-25 DR1 what comes of a dry run is dry, also if it is cut where its source was still acting: retried, in bulk, forked earlier", async () => {
    const { world, pawl, run, did } = await openShop("throw");
    const dry = await pawl.fork(run.id, { at: "charge", effects: "dry-run" });
    await dry.result().catch(() => {});
    did.length = 0;
    const heirs = [
      await pawl.retry(dry.id),
      await pawl.fork(dry.id, { at: "look" }),
      await pawl.fork(dry.id, { at: 1 }),
    ];
    for (const heir of heirs) await heir.result().catch(() => {});
    await pawl.operations.bulk({ action: "retry", filter: { status: "failed" }, by: "ada" });
    await world.settle();
    // Models and reads run; the source itself, which is live, is retried by the bulk and acts once, and takes that back.
    const acts = did.filter((what) => what !== "ask" && what !== "look");
    expect(acts).toEqual(["charge", "pay back"]);
    for (const heir of heirs) {
      const ledger = (await heir.effects()).filter(({ class: kind }) => kind !== "read");
      expect(ledger.every((one) => one.dry === true)).toBe(true);
    }
  });

  it.each(["snapshot", "whole"] as const)(
    "X-25 DR2 an agent that is one step (%s) is not begun in a dry run if one of its tools acts",
    async (durability) => {
      const world = await openWorld("memory");
      const did: string[] = [];
      const post = tool({
        name: "post",
        description: "Posts.",
        class: "write",
        idempotent: true,
        input: z.object({}),
        run: () => did.push("post"),
      });
      const model = scriptedModel((request) => (request.prompt.length > 2 ? say("Done.") : callTools({ post: {} })));
      const writer = agent({
        name: "writer",
        model,
        tools: [post],
        durability,
        prompt: () =>
          prompt({ namespace: "t", key: "p", sections: [section({ title: "T", key: "t", body: "Post." })] }).bind({}),
      });
      const pawl = await world.open([writer]);
      const run = await pawl.start(writer, undefined);
      const outcome = await run.result();
      expect(did).toEqual(["post"]);
      const dry = await pawl.fork(run.id, { at: 1, effects: "dry-run" });
      expect(await dry.result()).toEqual(outcome);
      expect(did).toEqual(["post"]);
    },
  );

  it("X-25 a policy that there is none of, and an id of another run, are refused", async () => {
    const { pawl, run, order } = await openShop();
    const odd = await errorOf(pawl.fork(run.id, { at: 1, effects: "wet" as "live" }));
    expect(odd.message).toBe('effects is "wet". Give one of replay, dry-run, live.');
    const other = await pawl.start(order, { cents: 1 });
    const taken = await errorOf(pawl.fork(run.id, { at: 1, id: other.id }));
    expect(taken).toMatchObject({ code: "idempotency_conflict" });
    await other.result();
  });

  it("X-25 an approval that the source was given lets a dry fork go on", async () => {
    const world = await openWorld("memory");
    const did: string[] = [];
    const paid = workflow({ name: "paid", retry: false }, async (ctx) => {
      const action = { tool: "bank.pay", version: "1", arguments: {} };
      const approval = await ctx.approve("pay", { action, approvers: ["ann"], timeout: "1 h" });
      await ctx.effect("pay", { do: () => did.push("pay"), idempotent: true, needs: { approval, action } });
    });
    const pawl = await world.open([paid]);
    const run = await pawl.start(paid, undefined);
    await world.settle();
    const [open] = (await pawl.approvals.list()).approvals;
    await pawl.approvals.decide(open?.id ?? "", { by: "ann", decision: "approved" });
    await run.result();
    const dry = await pawl.fork(run.id, { at: "pay", effects: "replay" });
    await world.settle();
    const journal = await dry.journal();
    expect(journal.at(-1)?.type).toBe("approval.requested");
    const planned = (await run.journal()).findIndex(({ type }) => type === "effect.planned");
    const behind = await pawl.fork(run.id, { at: planned, effects: "replay" });
    await behind.result();
    expect(did).toEqual(["pay"]);
    await pawl.cancel(dry.id);
  });

  it.each(["replay", "dry-run", "live"] as const)(
    "X-25 S2-65 a fork (%s) that dies anywhere does outside what its policy says",
    async (effects) => {
      const outside = recorder();
      const pay = workflow("pay", async (ctx, cents: number) => {
        const draft = await ctx.effect("draft", {
          do: ({ key }) => outside.record("draft", { cents }, key),
          undo: (_value, { key }) => outside.record("withdraw", { cents }, key),
          idempotent: true,
        });
        const ids = await ctx.step("number", () => cents * 2);
        await ctx.effect("charge", {
          do: ({ key }) => outside.record("charge", { cents }, key),
          idempotent: true,
        });
        return { draft, ids };
      });
      const forkIt = async (run: Run<unknown>, engine: Pick<TestEngine, "fork">) => {
        await run.result();
        const fork = await engine.fork(run.id, { at: 1, effects, id: `${run.id}-fork` });
        await fork.result();
      };
      const engine = await testEngine({ workflows: [pay] });
      await forkIt(await engine.start(pay, 5), engine);
      await engine.close();
      const once = ["draft", "charge"];
      expect(outside.effects.map(({ name }) => name)).toEqual(effects === "live" ? [...once, ...once] : once);
      outside.clear();
      const report = await crashEverywhere(pay, 5, { recorder: outside, script: forkIt });
      expect(report.ok, report.toString()).toBe(true);
      expect(report.explored).toBeGreaterThan(20);
    },
  );
});
