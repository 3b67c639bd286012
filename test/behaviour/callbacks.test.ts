import { describe, expect, it } from "vitest";
import type { Pawl } from "../../src/client/pawl.ts";
import { why } from "../../src/client/why.ts";
import type { Context } from "../../src/core/context.ts";
import type { StandardSchema } from "../../src/core/schema.ts";
import type { Store } from "../../src/core/store.ts";
import { type Workflow, workflow } from "../../src/core/workflow.ts";
import { errorOf, gate, HOUR, openWorld, STORES, type World } from "./harness.ts";

const SECRET = "a secret that has enough characters";
const OTHER = "another one that has enough characters";
const WITH = { secret: SECRET };

/** An outside system that keeps the tokens it is given, in order. */
class Bank {
  readonly tokens: string[] = [];

  get token(): string {
    return this.tokens.at(-1) ?? "";
  }

  /** A workflow that hands a token over and waits for the answer. */
  paying(wait: (ctx: Context, value: () => Promise<unknown>) => Promise<unknown> = (_ctx, value) => value()) {
    return workflow("paying", async (ctx): Promise<unknown> => {
      const reply = ctx.callback("payment", { timeout: "2h" });
      await ctx.step("tell the bank", () => this.tokens.push(reply.token));
      return wait(ctx, () => reply.value());
    });
  }
}

async function begun(world: World, flow: Workflow<void, unknown>, id = "r"): Promise<Pawl> {
  const pawl = await world.open([flow], WITH);
  await pawl.start(flow, undefined, { id });
  await world.settle();
  return pawl;
}

/** All that a store has of a run, as text. */
async function textOf(store: Store, run: string): Promise<string> {
  const rows = [store.run(run), store.journal(run), store.inbox(run), store.waits({ run }), store.state(run)];
  const words = JSON.stringify(await Promise.all(rows), (_key, value) =>
    value instanceof Uint8Array ? Buffer.from(value).toString() : value,
  );
  const id = /"name":"(cb[\w-]+)"/.exec(words)?.[1] ?? "";
  return `${words}${JSON.stringify(await store.key("callback", id))}`;
}

describe.each(STORES)("callbacks on %s", (store) => {
  it("B48 waits for the answer of an outside system, and the run, why and the waits say what for", async () => {
    const world = await openWorld(store);
    const bank = new Bank();
    const pawl = await begun(world, bank.paying());
    const run = pawl.get("r");
    const [wait] = (await run.status()).waits;
    expect(wait).toMatchObject({ kind: "callback", key: "callback:payment", name: expect.stringMatching(/^cb/) });
    const told = await why(pawl, "r");
    expect(told.summary).toContain('is waiting for callback "payment"');
    expect(told.present.join("\n")).toContain(`It waits for an answer to callback "payment" (${wait?.name}), at most`);
    const receipt = await pawl.callbacks.answer(bank.token, { paid: true });
    expect(receipt).toEqual({ callback: wait?.name, run: "r", key: "payment", repeated: false });
    expect(await run.result()).toEqual({ paid: true });
    expect(await world.journal("r")).toEqual([
      "run.started",
      "callback.opened payment",
      "step.started tell the bank",
      "step.completed tell the bank",
      "callback.ended payment",
      "run.succeeded",
    ]);
    expect((await why(pawl, "r")).past.join("\n")).toContain('an answer to callback "payment"');
  });

  it("B48 B49 an answer counts while the step that hands the token over still runs, and before anything waits for it", async () => {
    const world = await openWorld(store);
    const [step, nap] = [gate<string>(), gate()];
    const flow = workflow("paying", async (ctx) => {
      const reply = ctx.callback<string>("payment");
      await ctx.step("tell the bank", async () => {
        step.open(reply.token);
        await nap.passed;
      });
      await ctx.sleep("1h");
      return reply.value();
    });
    const pawl = await world.open([flow], WITH);
    const run = await pawl.start(flow, undefined, { id: "r" });
    expect(await pawl.callbacks.answer(await step.passed, "paid")).toMatchObject({ repeated: false });
    await world.settle();
    nap.open();
    await world.advance(HOUR);
    expect(await run.result()).toBe("paid");
  });

  it("B48 P10 is answered before, during and after a restart; the token is the same when its step runs again", async () => {
    const world = await openWorld(store);
    const bank = new Bank();
    const flow = workflow("paying", async (ctx) => {
      const reply = ctx.callback("payment");
      await ctx.step("tell the bank", () => {
        bank.tokens.push(reply.token);
        // The process dies before this is recorded.
        return bank.tokens.length === 1 ? new Promise(() => {}) : null;
      });
      return reply.value();
    });
    for (const [id, when] of [
      ["a", "before"],
      ["b", "during"],
      ["c", "after"],
    ] as const) {
      bank.tokens.length = 0;
      await begun(world, flow, id);
      world.killAll();
      await world.fence();
      const other = await world.open([], WITH);
      const answer = () => other.callbacks.answer(bank.token, when);
      if (when === "before") await answer();
      const [second] = await Promise.all([world.open([flow], WITH), when === "during" ? answer() : null]);
      await world.settle();
      expect(bank.tokens).toHaveLength(2);
      expect(new Set(bank.tokens).size).toBe(1);
      if (when === "after") await answer();
      expect(await second.get(id).result()).toBe(when);
      world.killAll();
    }
  });

  it("Q5 neither the token nor what makes it is in the store, and whoever guesses or asks with another secret is told nothing", async () => {
    const world = await openWorld(store);
    const bank = new Bank();
    const pawl = await begun(world, bank.paying());
    const [id = "", proof = ""] = bank.token.split(".");
    // 256 bits, in base64url.
    expect(proof).toMatch(/^[\w-]{43}$/);
    const words = await textOf(world.store, "r");
    expect(words).toContain(id);
    expect(words).not.toContain(proof);
    expect(words).not.toContain(SECRET);
    const before = await world.journal("r");
    for (const wrong of [id, `${id}.`, `${id}.${proof.slice(1)}A`, `${id}.${"A".repeat(43)}`, `${bank.token}.x`, "", 7])
      expect(await errorOf(pawl.callbacks.answer(wrong as string, 1))).toMatchObject({
        code: "callback_not_found",
        fields: { reason: "unknown" },
      });
    const stranger = await world.open([], { secret: OTHER });
    expect(await errorOf(stranger.callbacks.answer(bank.token, 1))).toMatchObject({ code: "callback_not_found" });
    const without = await world.open();
    expect(await errorOf(without.callbacks.answer(bank.token, 1))).toMatchObject({ code: "secret_missing" });
    expect(await errorOf(pawl.callbacks.revoke("cbNone", { reason: "x" }))).toMatchObject({
      code: "callback_not_found",
    });
    await world.settle();
    expect(await world.journal("r")).toEqual(before);
    expect(await world.store.inbox("r")).toEqual([]);
    await pawl.callbacks.answer(bank.token, 1);
    expect(await pawl.get("r").result()).toBe(1);
  });

  it("Q5 I15 of two different answers at once one counts and the other is refused; of two equal ones both are told so", async () => {
    const world = await openWorld(store);
    const bank = new Bank();
    const flow = bank.paying();
    await begun(world, flow, "r");
    world.killAll();
    await world.fence();
    const [one, two] = [await world.open([], WITH), await world.open([], WITH)];
    const answers = await Promise.allSettled([
      one.callbacks.answer(bank.token, "yes"),
      two.callbacks.answer(bank.token, "no"),
    ]);
    expect(answers.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    const lost = answers.find(({ status }) => status === "rejected") as PromiseRejectedResult;
    expect(lost.reason).toMatchObject({ code: "callback_answered", fields: { reason: "answered", run: "r" } });
    const won = answers[0]?.status === "fulfilled" ? "yes" : "no";
    const pawl = await world.open([flow], WITH);
    expect(await pawl.get("r").result()).toBe(won);

    await begun(world, flow, "s");
    const value = { paid: true, by: "card" };
    const same = await Promise.all([
      one.callbacks.answer(bank.token, value),
      two.callbacks.answer(bank.token, { by: "card", paid: true }),
    ]);
    expect(same.map(({ repeated }) => repeated).sort()).toEqual([false, true]);
    expect(await pawl.get("s").result()).toEqual(value);
  });

  it("Q5 the same answer again was accepted, while the run goes on and after its end; another one is refused", async () => {
    const world = await openWorld(store);
    const bank = new Bank();
    const pawl = await begun(
      world,
      bank.paying(async (ctx, value) => {
        const paid = await value();
        await ctx.sleep("1h");
        return paid;
      }),
    );
    await pawl.callbacks.answer(bank.token, "paid");
    await world.settle();
    for (const _moment of ["goes on", "has ended"]) {
      expect(await pawl.callbacks.answer(bank.token, "paid")).toMatchObject({ run: "r", repeated: true });
      expect(await errorOf(pawl.callbacks.answer(bank.token, "no"))).toMatchObject({ code: "callback_answered" });
      const failure = pawl.callbacks.fail(bank.token, { reason: "no" });
      expect(await errorOf(failure)).toMatchObject({ code: "callback_answered" });
      await world.advance(HOUR);
    }
    expect(await pawl.get("r").result()).toBe("paid");
  });

  it("B50 after its time an answer is refused and eats nothing: the address that was opened anew gets its own", async () => {
    const world = await openWorld(store);
    const bank = new Bank();
    const flow = workflow("paying", async (ctx) => {
      const first = ctx.callback("payment", { timeout: "1h" });
      await ctx.step("tell the bank", () => bank.tokens.push(first.token));
      const missed = await first.value().catch((error: unknown) => (error as { code: string }).code);
      const second = ctx.callback("payment", { timeout: "1h", default: "nobody" });
      await ctx.step("tell the bank again", () => bank.tokens.push(second.token));
      return [missed, await second.value()];
    });
    for (const id of ["answered", "silent"]) {
      bank.tokens.length = 0;
      const pawl = await begun(world, flow, id);
      await world.advance(HOUR);
      const [old = "", now = ""] = bank.tokens;
      expect(old).not.toBe(now);
      expect(await errorOf(pawl.callbacks.answer(old, "late"))).toMatchObject({
        code: "callback_expired",
        fields: { reason: "expired", key: "payment" },
      });
      if (id === "answered") await pawl.callbacks.answer(now, "paid");
      else await world.advance(HOUR);
      expect(await pawl.get(id).result()).toEqual(["wait_timeout", id === "answered" ? "paid" : "nobody"]);
    }
  });

  it("B50 an answer after the time is refused by the store's clock, though no worker has noticed that it is over", async () => {
    const world = await openWorld(store);
    const bank = new Bank();
    const flow = bank.paying();
    await begun(world, flow);
    world.killAll();
    await world.fence();
    const client = await world.open([], WITH);
    await world.advance(2 * HOUR + 1);
    expect(await errorOf(client.callbacks.answer(bank.token, "late"))).toMatchObject({ code: "callback_expired" });
    // One that went past the client, as of a process whose clock is behind.
    const [id = ""] = bank.token.split(".");
    const data = JSON.stringify({ status: "answered", value: "late" });
    await world.store.deliver({ to: "r", id: `callback:${id}`, kind: "callback", name: id, data });
    const pawl = await world.open([flow], WITH);
    expect(await errorOf(pawl.get("r").result())).toMatchObject({ code: "wait_timeout", fields: { name: "payment" } });
  });

  it("B51 I16 a run that has ended, was cancelled or goes on as a new generation takes no answer, and says so", async () => {
    const world = await openWorld(store);
    const bank = new Bank();
    const flow = workflow("paying", async (ctx, how: string) => {
      const reply = ctx.callback("payment");
      await ctx.step("tell the bank", () => bank.tokens.push(reply.token));
      if (how === "continued") return ctx.continueAs("wait");
      return how === "ended" ? null : ctx.waitFor("never");
    });
    const pawl = await world.open([flow], WITH);
    for (const how of ["ended", "cancelled", "continued"]) {
      bank.tokens.length = 0;
      const run = await pawl.start(flow, how, { id: how });
      await world.settle();
      if (how === "cancelled") await run.cancel();
      await world.settle();
      expect(await errorOf(pawl.callbacks.answer(bank.tokens[0] ?? "", "paid"))).toMatchObject({
        code: "run_ended",
        fields: { run: how, reason: "ended" },
      });
      if (how === "continued")
        expect((await run.status()).waits.map(({ kind }) => kind).sort()).toEqual(["callback", "signal"]);
    }
    await pawl.get("continued").cancel();
  });

  it("Q5 an outside failure and a revocation reach the body with their reason, and close the address", async () => {
    const world = await openWorld(store);
    const bank = new Bank();
    const pawl = await begun(world, bank.paying());
    await pawl.callbacks.fail(bank.token, { reason: "declined", detail: { code: 51 } });
    const failed = await errorOf(pawl.get("r").result());
    expect(failed).toMatchObject({ code: "callback_failed", fields: { reason: "declined", detail: { code: 51 } } });
    expect(failed.message).toContain("declined. Catch this error");
    expect(await pawl.callbacks.fail(bank.token, { reason: "declined", detail: { code: 51 } })).toMatchObject({
      repeated: true,
    });

    await pawl.start(bank.paying(), undefined, { id: "s" });
    await world.settle();
    const [wait] = (await pawl.get("s").status()).waits;
    // The id is no secret, and answers nothing.
    expect(await errorOf(pawl.callbacks.answer(wait?.name ?? "", "paid"))).toMatchObject({
      code: "callback_not_found",
    });
    await pawl.callbacks.revoke(wait?.name ?? "", { reason: "the token has leaked" });
    expect(await errorOf(pawl.callbacks.answer(bank.token, "paid"))).toMatchObject({ code: "callback_answered" });
    expect(await errorOf(pawl.get("s").result())).toMatchObject({ code: "callback_failed" });
  });

  it("P7 the schema is asked once, before the answer is recorded; one that does not fit reaches the body as an error", async () => {
    const world = await openWorld(store);
    const bank = new Bank();
    let asked = 0;
    const cents: StandardSchema<unknown, number> = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: (value) => {
          asked++;
          return typeof value === "string" ? { value: Number(value) } : { issues: [{ message: "no text" }] };
        },
      },
    };
    const flow = workflow("paying", async (ctx): Promise<number> => {
      const reply = ctx.callback("payment", { schema: cents });
      await ctx.step("tell the bank", () => bank.tokens.push(reply.token));
      const paid = await reply.value();
      await ctx.sleep("1h");
      return paid;
    });
    const pawl = await begun(world, flow, "fits");
    await pawl.callbacks.answer(bank.token, "4200");
    await world.settle();
    expect(await pawl.callbacks.answer(bank.token, "4200")).toMatchObject({ repeated: true });
    await pawl.start(flow, undefined, { id: "misfit" });
    await world.settle();
    await pawl.callbacks.answer(bank.token, 4200);
    expect(await errorOf(pawl.get("misfit").result())).toMatchObject({ code: "schema_mismatch" });
    const second = await world.restart([flow], WITH);
    await world.advance(HOUR);
    expect(await second.get("fits").result()).toBe(4200);
    expect(asked).toBe(2);
  });

  it("Q5 without a secret the run is parked with what to do, and goes on where there is one", async () => {
    const world = await openWorld(store);
    const bank = new Bank();
    const flow = bank.paying();
    const first = await world.open([flow]);
    await first.start(flow, undefined, { id: "r" });
    await world.settle();
    expect(await first.get("r").status()).toMatchObject({
      state: "parked",
      parked: {
        reason: "secret_missing",
        message: expect.stringContaining("PAWL_SECRET"),
        choices: ["retry", "cancel"],
      },
    });
    expect(bank.tokens).toEqual([]);
    const second = await world.restart([flow], WITH);
    await second.resolve("r", "retry");
    await world.settle();
    await second.callbacks.answer(bank.token, "paid");
    expect(await second.get("r").result()).toBe("paid");
  });

  it("Q5 a new secret in front of the old one changes no token that is out; without the old one they are all revoked", async () => {
    const world = await openWorld(store);
    const bank = new Bank();
    const flow = workflow("paying", async (ctx) => {
      const reply = ctx.callback("payment");
      await ctx.waitFor("go");
      await ctx.step("tell the bank", () => bank.tokens.push(reply.token), { retry: false });
      return reply.value();
    });
    const first = await begun(world, flow, "kept");
    await first.start(flow, undefined, { id: "lost" });
    await world.settle();
    const rotated = await world.restart([flow], { secret: [OTHER, SECRET] });
    await rotated.signal("kept", "go");
    await world.settle();
    expect(await errorOf((await world.open([], { secret: OTHER })).callbacks.answer(bank.token, 1))).toMatchObject({
      code: "callback_not_found",
    });
    await (await world.open([], WITH)).callbacks.answer(bank.token, "paid");
    expect(await rotated.get("kept").result()).toBe("paid");
    const replaced = await world.restart([flow], { secret: OTHER });
    await replaced.signal("lost", "go");
    expect(await errorOf(replaced.get("lost").result())).toMatchObject({ code: "secret_missing" });
  });

  it("P10 a fork has an address of its own; a retry takes over the one that is out, since its source can take no answer", async () => {
    const world = await openWorld(store);
    const bank = new Bank();
    const flow = workflow("paying", async (ctx) => {
      const reply = ctx.callback("payment", { timeout: "1h" });
      await ctx.step("tell the bank", () => bank.tokens.push(reply.token));
      return reply.value();
    });
    const pawl = await world.open([flow], WITH);
    await pawl.start(flow, undefined, { id: "r", key: "order-1" });
    await world.settle();
    const fork = await pawl.fork("r", { at: "tell the bank" });
    await world.settle();
    const [own = "", forked = ""] = bank.tokens;
    expect(own).not.toBe(forked);
    await pawl.callbacks.answer(forked, "the fork");
    expect(await fork.result()).toBe("the fork");
    await world.advance(HOUR);
    expect(await errorOf(pawl.get("r").result())).toMatchObject({ code: "wait_timeout" });
    expect(await errorOf(pawl.callbacks.answer(own, "late"))).toMatchObject({ code: "callback_expired" });
    const retry = await pawl.retry("r");
    await world.settle();
    expect(await pawl.callbacks.answer(own, "after all")).toMatchObject({ run: retry.id, repeated: false });
    expect(await retry.result()).toBe("after all");
    expect(bank.tokens).toHaveLength(2);
  });

  it("Q5 a run that has the id of one that was removed has tokens of its own", async () => {
    const world = await openWorld(store);
    const bank = new Bank();
    const flow = bank.paying();
    const pawl = await begun(world, flow);
    await pawl.callbacks.answer(bank.token, "first");
    expect(await pawl.get("r").result()).toBe("first");
    await world.advance(HOUR);
    const now = world.clock.now();
    expect(await world.store.purge({ succeededBefore: now, failedBefore: now, limit: 10 })).toBe(1);
    await pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    const [old = "", own = ""] = bank.tokens;
    expect(await errorOf(pawl.callbacks.answer(old, "first"))).toMatchObject({ code: "callback_not_found" });
    await pawl.callbacks.answer(own, "second");
    expect(await pawl.get("r").result()).toBe("second");
  });

  it("P6 each use of a name has an address of its own, also in a map, and none can be opened inside a step", async () => {
    const world = await openWorld(store);
    const tokens = new Map<string, string>();
    const flow = workflow("paying", async (ctx) => {
      const replies = await ctx.map(["a", "b"], async (item) => {
        const reply = ctx.callback<string>("payment");
        await ctx.step("tell the bank", () => void tokens.set(item, reply.token));
        return reply.value();
      });
      const inside = await ctx
        .step("inside", () => ctx.callback("no").id, { retry: false })
        .catch((error) => error.code);
      return [...replies, inside];
    });
    const pawl = await begun(world, flow);
    await pawl.callbacks.answer(tokens.get("b") ?? "", "for b");
    await pawl.callbacks.answer(tokens.get("a") ?? "", "for a");
    expect(await pawl.get("r").result()).toEqual(["for a", "for b", "call_in_step"]);
  });
});

it("Q5 refuses a secret that is too short, without saying it", async () => {
  const world = await openWorld("memory");
  for (const secret of ["short", [], [SECRET, "short"], [7]] as unknown as string[]) {
    const error = await errorOf(world.open([], { secret }));
    expect(error).toMatchObject({ code: "invalid_argument", fields: { option: "secret" } });
    expect(error.message).not.toContain('"short"');
  }
});
