import { describe, expect, it } from "vitest";
import { z } from "zod";
import { Pawl } from "../../src/client/pawl.ts";
import { LIMITS } from "../../src/core/limits.ts";
import { workflow } from "../../src/core/workflow.ts";
import { DAY, errorOf, openWorld, STORES } from "./harness.ts";

const counts = { bodies: 0 };
const order = workflow("order", async (ctx, input: { id: number }) => {
  await ctx.step("count", () => void counts.bodies++);
  return input.id;
});
const other = workflow("other", async () => "other");

describe.each(STORES)("starting runs on %s", (store) => {
  it("S3-25 S3-26 S2-12 gives every start its own run and journal, unless the caller passes a key", async () => {
    const world = await openWorld(store);
    const pawl = await world.open([order]);
    counts.bodies = 0;
    const runs = [await pawl.start(order, { id: 1 }), await pawl.start(order, { id: 1 })];
    for (const run of runs) expect(await run.result()).toBe(1);
    expect(runs[0]?.id).not.toBe(runs[1]?.id);
    expect(counts.bodies).toBe(2);
    const keyed = [await pawl.start(order, { id: 1 }, { key: "k" }), await pawl.start(order, { id: 1 }, { key: "k" })];
    for (const run of keyed) expect(await run.result()).toBe(1);
    expect(keyed[0]?.id).toBe(keyed[1]?.id);
    expect(counts.bodies).toBe(3);
  });

  it.each(["key", "id"])(
    "I17 B27 D-11 S2-51 starts one run for 100 callers with one %s: at once, later, after a restart",
    async (by) => {
      const world = await openWorld(store);
      const options = { [by]: "one" };
      const engines = [await world.open([order]), await world.open([order]), await world.open()];
      counts.bodies = 0;
      const starts = await Promise.all(
        Array.from({ length: 99 }, (_, i) => (engines[i % 3] as Pawl).start(order, { id: 7 }, options)),
      );
      const ids = new Set(starts.map((run) => run.id));
      expect(ids.size).toBe(1);
      await starts[0]?.result();
      const pawl = await world.restart([order]);
      ids.add((await pawl.start(order, { id: 7 }, options)).id);
      expect(ids.size).toBe(1);
      expect(counts.bodies).toBe(1);
      expect((await pawl.list()).runs).toHaveLength(1);
    },
  );

  it("C-9 E-12 B28 S2-52 refuses the same key or id with other input, and leaves the first run unharmed", async () => {
    const world = await openWorld(store);
    const patient = workflow("patient", async (ctx, input: { n: number; at?: Date }) => {
      await ctx.waitFor("go");
      return input.n;
    });
    const pawl = await world.open([patient, other]);
    const run = await pawl.start(patient, { n: 1 }, { key: "k", id: "i" });
    for (const options of [{ key: "k" }, { id: "i" }]) {
      expect(await errorOf(pawl.start(patient, { n: 2 }, options))).toMatchObject({
        code: "idempotency_conflict",
        fields: { run: run.id },
      });
    }
    expect(await errorOf(pawl.start(other, undefined, { id: "i" }))).toMatchObject({ code: "idempotency_conflict" });
    // The scope of a key is its workflow.
    expect((await pawl.start(other, undefined, { key: "k" })).id).not.toBe(run.id);
    const later = await world.restart([patient, other]);
    await later.signal("i", "go");
    expect(await later.get("i").result()).toBe(1);
  });

  it("C-9 compares inputs by value", async () => {
    const world = await openWorld(store);
    const any = workflow("any", async (_ctx, _input: unknown) => 1);
    const pawl = await world.open([any]);
    const input = () => ({ at: new Date(1), tags: new Set(["a"]), n: 1n });
    const first = await pawl.start(any, input(), { key: "k" });
    expect((await pawl.start(any, input(), { key: "k" })).id).toBe(first.id);
    const changed = { ...input(), at: new Date(2) };
    expect(await errorOf(pawl.start(any, changed, { key: "k" }))).toMatchObject({ code: "idempotency_conflict" });
  });

  it("I17 frees a key when its run is purged", async () => {
    const world = await openWorld(store);
    const pawl = await world.open([order]);
    const first = await pawl.start(order, { id: 1 }, { key: "k" });
    await first.result();
    const now = world.clock.now();
    await world.store.purge({ succeededBefore: now + 1, failedBefore: now + 1, limit: 10 });
    const second = await pawl.start(order, { id: 2 }, { key: "k" });
    expect(second.id).not.toBe(first.id);
    expect(await second.result()).toBe(2);
  });

  it("I20 B65 refuses input over the limit before any write, and the same for signals and state", async () => {
    const world = await openWorld(store);
    const big = { text: "x".repeat(LIMITS.valueBytes) };
    const holding = workflow("holding", async (ctx, _input: unknown) => {
      const codes: unknown[] = [(await errorOf(ctx.step("big", () => big)))["code"]];
      codes.push((await errorOf((async () => ctx.set("big", big))()))["code"]);
      await ctx.waitFor("go");
      return codes;
    });
    const pawl = await world.open([holding]);
    for (const options of [{}, { id: "r" }, { key: "k" }])
      expect(await errorOf(pawl.start(holding, big, options))).toMatchObject({ code: "too_large" });
    expect((await pawl.list()).runs).toEqual([]);
    const run = await pawl.start(holding, "small", { id: "r" });
    await pawl.idle();
    expect(await errorOf(run.signal("go", big))).toMatchObject({ code: "too_large" });
    expect(await world.store.inbox(run.id)).toEqual([]);
    await run.signal("go");
    expect(await run.result()).toEqual(["too_large", "too_large"]);
  });

  it("I20 keeps values of megabytes whole", async () => {
    const world = await openWorld(store);
    const echo = workflow("echo", async (ctx, input: string) => ctx.step("same", () => input));
    const pawl = await world.open([echo]);
    const text = Array.from({ length: 200_000 }, (_, i) => `line ${i}`).join("\n");
    expect(await pawl.run(echo, text)).toBe(text);
  });

  it("I17 checks input against its schema before anything is written, and gives the body the schema's output", async () => {
    const world = await openWorld(store);
    const typed = workflow({ name: "typed", input: z.object({ n: z.coerce.number() }) }, async (_ctx, { n }) => n + 1);
    const pawl = await world.open([typed]);
    expect(await errorOf(pawl.start(typed, { n: "x" } as never))).toMatchObject({ code: "schema_mismatch" });
    expect((await pawl.list()).runs).toEqual([]);
    expect(await pawl.run(typed, { n: "41" } as never)).toBe(42);
  });

  it("I17 fails a run whose output does not fit its schema", async () => {
    const world = await openWorld(store);
    const typed = workflow<undefined, unknown>({ name: "typed", output: z.string() }, async () => 5);
    const pawl = await world.open([typed]);
    expect(await errorOf(pawl.run(typed))).toMatchObject({ code: "schema_mismatch" });
  });

  it.each(["__proto__", "toString", "constructor", "hasOwnProperty"])(
    "Q9 takes %s for a name like any other",
    async (name) => {
      const world = await openWorld(store);
      const odd = workflow(name, async (ctx) => {
        ctx.set(name, name);
        ctx.cost({ [name]: 2 });
        const value = await ctx.step(name, () => ({ [name]: 1 }));
        const signal = await ctx.waitFor(name);
        return [Object.keys(value), signal, ctx.get(name)];
      });
      const pawl = await world.open([odd]);
      const run = await pawl.start(name, undefined, { key: name, tags: [name] });
      await run.signal(name, "s", { id: name });
      expect(await run.result()).toEqual([[name], "s", name]);
      expect(Object.entries((await run.status()).data)).toEqual([[name, name]]);
      expect(Object.entries((await run.status()).cost ?? {})).toEqual([[name, 2]]);
      expect((await pawl.list({ workflow: name, tag: name })).runs).toHaveLength(1);
    },
  );

  it("Q7 keeps identifiers apart that look alike, on every way to a run", async () => {
    const world = await openWorld(store);
    const names = [
      ...["admin", "ADMIN", "Admin", "\u0430dmin", "adm\u0131n", "ａdmin"],
      ...[
        "caf\u00e9",
        "cafe\u0301",
        "stra\u00dfe",
        "strasse",
        "a b",
        "a  b",
        "%00",
        "%61",
        "con",
        "NUL",
        "..a",
        "1",
        "01",
        "1.0",
      ],
      ...[
        "o'brien",
        'o"brien',
        "o`brien",
        "'; drop table runs; --",
        "a%",
        "a_",
        "*",
        "?",
        "-",
        "--help",
        "👩‍👩‍👧",
        "x".repeat(256),
      ],
    ];
    const named = workflow("named", async (ctx, name: string) => {
      ctx.set(name, name);
      return [await ctx.step(name, () => name), await ctx.waitFor(name), ctx.get(name)];
    });
    const pawl = await world.open([named]);
    for (const name of names) await pawl.start(named, name, { id: name, key: name, tags: [name] });
    expect((await pawl.list({ limit: 1000 })).runs).toHaveLength(names.length);
    for (const name of names) {
      expect(
        (await pawl.list({ tag: name })).runs.map(({ id }) => id),
        name,
      ).toEqual([name]);
      expect((await pawl.start(named, name, { key: name })).id).toBe(name);
      await pawl.signal(name, name, `for ${name}`, { id: name });
    }
    for (const name of names) expect(await pawl.get(name).result()).toEqual([name, `for ${name}`, name]);
  });

  it.each([
    "",
    "x".repeat(257),
    "é".repeat(129),
    "a/b",
    "a\\b",
    "a#b",
    ".",
    "..",
    " a",
    "a\0",
    "a\nb",
    "\u202ea",
    "\ud800",
  ])("Q7 refuses %j as an identifier, at every door, before anything is written", async (name) => {
    const world = await openWorld(store);
    const refusals: unknown[] = [];
    const named = workflow("named", async (ctx) => {
      const calls = [() => ctx.step(name, () => 1), () => ctx.waitFor(name), () => ctx.set(name, 1)];
      for (const call of calls) refusals.push((await errorOf((async () => call())()))["code"]);
      await ctx.waitFor("go");
    });
    const pawl = await world.open([named]);
    const run = await pawl.start(named, undefined, { id: "r" });
    await world.settle();
    const doors = [
      () => pawl.start(named, undefined, { id: name }),
      () => pawl.start(named, undefined, { key: name }),
      () => pawl.start(named, undefined, { tags: [name] }),
      () => pawl.start(name, undefined, { version: "1.0.0" }),
      () => run.signal(name),
      () => run.signal("go", 1, { id: name }),
      async () => pawl.get(name),
      () => pawl.cancel(name),
    ];
    for (const door of doors) refusals.push((await errorOf(door() as Promise<unknown>))["code"]);
    expect(new Set(refusals)).toEqual(new Set(["invalid_name"]));
    expect(refusals).toHaveLength(11);
    expect((await pawl.list()).runs).toHaveLength(1);
    expect(await world.store.inbox("r")).toEqual([]);
    await run.signal("go");
    await run.result();
  });

  it.each(["__proto__", "toString"])("Q9 does not know a workflow %s that nobody registered", async (name) => {
    const world = await openWorld(store);
    const pawl = await world.open([other]);
    expect(await errorOf(pawl.start(name, 1))).toMatchObject({ code: "unknown_workflow" });
  });

  it("I17 starts by name what another process runs, and tells when nobody does", async () => {
    const world = await openWorld(store);
    const worker = await world.open([other]);
    const client = await world.open();
    const run = await client.start("other");
    await worker.idle();
    expect(await run.result()).toBe("other");
    expect(await errorOf(client.start("unheard of"))).toMatchObject({ code: "unknown_workflow" });
  });

  it("I17 takes runs in order of priority, then age", async () => {
    const world = await openWorld(store);
    const ran: string[] = [];
    const noting = workflow("noting", async (ctx, name: string) => ctx.step("s", () => void ran.push(name)));
    const client = await world.open();
    for (const [name, priority] of [
      ["old", 0],
      ["low", -1],
      ["high", 5],
      ["new", 0],
    ] as const)
      await client.start("noting", name, { priority, version: "1.0.0" });
    const pawl = await world.open([noting], { concurrency: 1 });
    await pawl.idle();
    expect(ran).toEqual(["high", "old", "new", "low"]);
  });
});

describe.each(STORES)("listing on %s", (store) => {
  it("I28 filters by workflow, status, state, tag, parent and time, newest first", async () => {
    const world = await openWorld(store);
    const failing = workflow("failing", async () => Promise.reject(new Error("x")));
    const waiting = workflow("waiting", async (ctx) => ctx.waitFor("go"));
    const parent = workflow("parent", async (ctx) => ctx.call(other));
    const pawl = await world.open([other, failing, waiting, parent]);
    const start = world.clock.now();
    await pawl.run(other, undefined, { tags: ["red", "blue"] });
    await world.advance(DAY);
    await errorOf(pawl.run(failing, undefined, { tags: ["red"] }));
    await pawl.start(waiting);
    await world.settle();
    const family = await pawl.start(parent);
    await family.result();
    const names = async (query: Parameters<Pawl["list"]>[0]) =>
      (await pawl.list(query)).runs.map((run) => run.workflow);
    expect(await names({})).toEqual(["other", "parent", "waiting", "failing", "other"]);
    expect(await names({ workflow: "other" })).toEqual(["other", "other"]);
    expect(await names({ status: "failed" })).toEqual(["failing"]);
    expect(await names({ status: "waiting" })).toEqual(["waiting"]);
    expect(await names({ state: "succeeded" })).toEqual(["other", "parent", "other"]);
    expect(await names({ tag: "red" })).toEqual(["failing", "other"]);
    expect(await names({ tag: "red", status: "failed" })).toEqual(["failing"]);
    expect(await names({ parent: family.id })).toEqual(["other"]);
    expect(await names({ before: new Date(start + 1) })).toEqual(["other"]);
    expect(await names({ after: new Date(start) })).toHaveLength(4);
  });

  it("I28 pages without skipping or repeating, while runs come and end", async () => {
    const world = await openWorld(store);
    const waiting = workflow("waiting", async (ctx) => ctx.waitFor("go"));
    const pawl = await world.open([waiting]);
    const ids: string[] = [];
    for (let i = 0; i < 25; i++) ids.push((await pawl.start(waiting)).id);
    await world.settle();
    const seen: string[] = [];
    for (let cursor: string | null = null, pages = 0; pages === 0 || cursor !== null; pages++) {
      const page: Awaited<ReturnType<Pawl["list"]>> = await pawl.list({
        limit: 4,
        ...(cursor === null ? {} : { cursor }),
      });
      seen.push(...page.runs.map((run) => run.id));
      cursor = page.cursor;
      await pawl.start(waiting);
      await pawl.signal(ids[pages * 3] as string, "go");
      await world.settle();
    }
    expect(seen).toEqual(ids.toReversed());
  });

  it("I28 reads its own writes, and says so when there is no such run", async () => {
    const world = await openWorld(store);
    const pawl = await world.open([other]);
    const run = await pawl.start(other);
    expect((await run.status()).id).toBe(run.id);
    expect((await pawl.list()).runs.map((one) => one.id)).toEqual([run.id]);
    await run.result();
    expect(await run.status()).toMatchObject({ status: "succeeded", output: "other", stopReason: "completed" });
    for (const ask of [() => pawl.get("x").status(), () => pawl.get("x").result(), () => pawl.get("x").journal()])
      expect(await errorOf(ask() as Promise<unknown>)).toMatchObject({ code: "run_not_found" });
  });

  it("I28 streams events from the first entry to the end, each once, to readers that come early and late", async () => {
    const world = await openWorld(store);
    const stages = workflow("stages", async (ctx) => {
      await ctx.step("a", () => 1);
      await ctx.waitFor("go");
      await ctx.step("b", () => 2);
    });
    const pawl = await world.open([stages]);
    const run = await pawl.start(stages);
    const read = async () => {
      const seen: string[] = [];
      for await (const event of run.events()) seen.push(`${event.seq} ${event.type}`);
      return seen;
    };
    const early = read();
    await world.settle();
    await run.signal("go");
    await run.result();
    const expected = (await run.journal()).map((entry) => `${entry.seq} ${entry.type}`);
    expect(expected.at(-1)).toMatch("run.succeeded");
    expect(await early).toEqual(expected);
    expect(await read()).toEqual(expected);
  });

  it("I28 opens by URL with a clock, and refuses everything once closed", async () => {
    const world = await openWorld(store);
    const pawl = await Pawl.open("memory:", { workflows: [other], clock: world.clock, handleSignals: false });
    expect(await pawl.run(other)).toBe("other");
    expect((await pawl.list()).runs[0]?.createdAt).toEqual(new Date(world.clock.now()));
    await pawl.close();
    await pawl.close();
    expect(await errorOf(pawl.start(other))).toMatchObject({ code: "closed" });
    expect(await errorOf(pawl.list())).toMatchObject({ code: "closed" });
  });
});
