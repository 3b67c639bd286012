import { describe, expect, it, onTestFinished } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { memoryStore, Pawl, RetryableError, type Run, type Workflow, workflow } from "../../src/index.ts";
import { type ExportedRun, exportRun, replay } from "../../src/testing/index.ts";
import { gate, openWorld, type World } from "../behaviour/harness.ts";

const DAY = 86_400_000;

/** A file has been written and read. */
const throughFile = (exported: ExportedRun): ExportedRun => JSON.parse(JSON.stringify(exported)) as ExportedRun;

async function exported(world: World, pawl: Pawl, run: Run): Promise<ExportedRun> {
  await world.settle();
  return throughFile(await exportRun(pawl, run.id));
}

const child = workflow("child", async (ctx, n: number) => ctx.step("double", () => n * 2));

/** Everything a body can do, and how it is helped along. */
interface Story {
  readonly name: string;
  readonly flow: Workflow<never, unknown>;
  readonly input?: unknown;
  readonly act?: (world: World, pawl: Pawl, run: Run) => Promise<unknown>;
  readonly end: string;
}

let failures = 0;
const held = gate();

const STORIES: readonly Story[] = [
  {
    name: "steps in a row, parallel and in a race",
    flow: workflow("flow", async (ctx, input: { a: number }) => {
      const a = await ctx.step("a", () => input.a);
      const both = await Promise.all([ctx.step("b", () => a + 1), ctx.step("c", () => new Map([[a, new Date(5)]]))]);
      const won = await Promise.race([ctx.sleep("1 day"), ctx.step("d", () => "d")]);
      return { a, both, won, dice: ctx.random(), id: ctx.uuid(), now: ctx.now(), run: ctx.run.id };
    }),
    input: { a: 1 },
    end: "run.succeeded",
  },
  {
    name: "retries, notes, state and a map",
    flow: workflow("flow", async (ctx) => {
      await ctx.step("flaky", () => {
        if (++failures % 2 === 1) throw new RetryableError("not yet", { retryAfter: "1 h" });
        return 1;
      });
      ctx.set("seen", ctx.now());
      ctx.note("half way");
      ctx.cost({ usd: 1 });
      return ctx.map([1, 2, 3], (n) => ctx.step("item", () => n * 2), { concurrency: 2 });
    }),
    act: (world) => world.advance(DAY),
    end: "run.succeeded",
  },
  {
    name: "steps that save, alone and side by side, and a retry that goes on from there",
    flow: workflow({ name: "flow", retry: { on: "any", jitter: false } }, async (ctx) => {
      const reading = (item: number) =>
        ctx.step("read", async ({ save, saved = 0, attempt }) => {
          for (let n = Number(saved) + 1; n <= 2; n++) await save(n);
          if (attempt === 1) throw new Error("busy");
          return `${item} after ${String(saved)}`;
        });
      return [await reading(1), await ctx.map([2, 3], reading)];
    }),
    act: (world) => world.advance(DAY),
    end: "run.succeeded",
  },
  {
    name: "signals, a timeout and a child",
    flow: workflow("flow", async (ctx) => {
      const first = await ctx.waitFor("go");
      const second = await ctx.waitFor("go", { timeout: "1 h", default: "none" });
      const other = await ctx.call(child, 21);
      const { id } = await ctx.spawn(child, 4);
      return { first, second, other, id };
    }),
    act: async (world, _pawl, run) => {
      await run.signal("go", { by: "Ada" });
      await world.advance(DAY);
    },
    end: "run.succeeded",
  },
  {
    name: "generations",
    flow: workflow("flow", async (ctx, n: number | undefined) => {
      ctx.set("n", n ?? 0);
      const next = await ctx.step("next", () => (n ?? 0) + 1);
      return next < 4 ? ctx.continueAs(next) : [next, ctx.random()];
    }),
    end: "run.succeeded",
  },
  {
    name: "a failure with a cause",
    flow: workflow("flow", async (ctx) => {
      await ctx.step("a", () => 1);
      throw new Error("out of stock", { cause: new TypeError("deep") });
    }),
    end: "run.failed",
  },
  {
    name: "a cancel that the body answers",
    flow: workflow("flow", async (ctx) => {
      try {
        await ctx.waitFor("never");
      } finally {
        ctx.note("cleaned up");
      }
    }),
    act: (_world, _pawl, run) => run.cancel({ reason: "ordered twice" }),
    end: "run.cancelled",
  },
  {
    name: "a deadline",
    flow: workflow({ name: "flow", deadline: "2 days" }, async (ctx) => ctx.sleep("9 days")),
    act: (world) => world.advance(3 * DAY),
    end: "run.failed",
  },
  {
    name: "steps that the end has overtaken",
    flow: workflow("flow", async (ctx) => {
      void ctx.step("left alone", () => held.passed);
      return ctx.step("a", () => 1);
    }),
    end: "run.succeeded",
  },
  {
    name: "a foreign await in the body",
    flow: workflow({ name: "flow", guard: "off" }, async (ctx) => {
      const a = await ctx.step("a", () => 1);
      await new Promise<void>((resolve) => void setImmediate(resolve));
      return a + (await ctx.step("b", () => 1));
    }),
    end: "run.succeeded",
  },
  {
    name: "a run that waits",
    flow: workflow("flow", async (ctx) => {
      await ctx.step("a", () => 1);
      await Promise.race([ctx.waitFor("go"), ctx.sleep("9 days")]);
    }),
    end: "timer.set",
  },
];

describe("code that follows", () => {
  it.each(STORIES)("I5 reproduces $name, and starts no step", async ({ flow, input, act, end }) => {
    const world = await openWorld("memory");
    const pawl = await world.open([flow, child]);
    const run = await pawl.start(flow as Workflow, input);
    await world.settle();
    await act?.(world, pawl, run);
    const file = await exported(world, pawl, run);
    expect(file.entries.at(-1)?.type).toBe(end);
    const started = failures;
    expect(await replay(flow, file)).toMatchObject({ ok: true });
    expect(failures).toBe(started);
  });

  it("I5 I12 every prefix of a journal is followed, whatever it was cut at", async () => {
    const [{ flow, input }] = STORIES as [Story];
    const world = await openWorld("memory");
    const pawl = await world.open([flow, child]);
    const run = await pawl.start(flow as Workflow, input);
    const file = await exported(world, pawl, run);
    for (let length = 1; length < file.entries.length; length++) {
      const cut = { ...file, run: { ...file.run, state: "running" as const }, entries: file.entries.slice(0, length) };
      expect(await replay(flow, cut)).toMatchObject({ ok: true });
    }
  });

  it("P10 reproduces a fork and a retried run, with the seeds of both", async () => {
    const world = await openWorld("memory");
    let isFixed = false;
    const flow = workflow("flow", async (ctx, n: number | undefined) => {
      const before = await ctx.step("a", () => ctx.random());
      if (n === undefined) return ctx.continueAs(1);
      const other = await ctx.call(child, 2);
      const b = await ctx.step("b", () => {
        if (!isFixed) throw new Error("broken");
        return ctx.uuid();
      });
      return { before, other, b, after: ctx.random() };
    });
    const pawl = await world.open([flow, child]);
    const failed = await pawl.start(flow);
    await world.settle();
    isFixed = true;
    const retried = await pawl.retry(failed.id);
    const forked = await pawl.fork(failed.id, { at: "b" });
    for (const run of [failed, retried, forked]) {
      const file = await exported(world, pawl, run);
      expect(file.run.state).toBe(run === failed ? "failed" : "succeeded");
      expect(await replay(flow, file)).toMatchObject({ ok: true });
    }
  });

  it("P19 reproduces runs that were cancelled without their body: before it began, and parked in the middle of a turn", async () => {
    const world = await openWorld("memory");
    const flow = workflow("flow", async (ctx) => {
      await ctx.step("a", () => held.passed, { recovery: "ask" });
      await ctx.step("b", () => 1);
    });
    const client = await world.open([]);
    const early = await client.start("flow", null, { version: "1.0.0" });
    await early.cancel({ reason: "never mind" });
    const pawl = await world.open([flow]);
    const asked = await pawl.start(flow);
    await world.settle();
    const next = await world.restart([flow]);
    await world.settle();
    expect((await next.get(asked.id).status()).state).toBe("parked");
    await next.cancel(asked.id);
    for (const run of [early, asked]) {
      const file = await exported(world, next, next.get(run.id));
      expect(file.run.state).toBe("cancelled");
      expect(await replay(flow, file)).toMatchObject({ ok: true });
    }
  });

  it("P9 follows code with a patch in old runs and in new ones", async () => {
    const world = await openWorld("memory");
    const old = workflow("flow", async (ctx) => [await ctx.step("a", () => 1), await ctx.waitFor("go")]);
    const patched = workflow({ name: "flow", version: "1.0.1" }, async (ctx) => {
      const a = await ctx.step("a", () => 1);
      if (ctx.patched("check")) await ctx.step("check", () => 1);
      return [a, await ctx.waitFor("go")];
    });
    const pawl = await world.open([old]);
    const before = await pawl.start(old);
    await world.settle();
    const next = await world.restart([patched]);
    const after = await next.start(patched);
    for (const run of [before, after]) await next.signal(run.id, "go");
    for (const run of [before, after]) {
      const file = await exported(world, next, next.get(run.id));
      expect(file.run.state).toBe("succeeded");
      expect(await replay(patched, file)).toMatchObject({ ok: true });
    }
  });

  it("D-7 replays what was kept with another codec, and what is compressed", async () => {
    const codec = {
      id: "reversed",
      seal: (text: string) => [...text].reverse().join(""),
      unseal: (data: string | Uint8Array) => [...String(data)].reverse().join(""),
    };
    const flow = workflow("flow", async (ctx) => ctx.step("a", () => ({ big: "x".repeat(20_000), at: new Date(1) })));
    for (const options of [{ codec }, {}]) {
      const store = memoryStore();
      const pawl = await Pawl.open(store, { workflows: [flow], handleSignals: false, ...options });
      onTestFinished(() => pawl.close());
      const run = await pawl.start(flow);
      await run.result();
      const file = throughFile(await exportRun(pawl, run.id));
      expect(file.entries.at(-1)?.value).toEqual({ big: "x".repeat(20_000), at: { $date: new Date(1).toISOString() } });
      expect(await replay(flow, file)).toMatchObject({ ok: true });
    }
  });
});

describe("code that does not", () => {
  const recorded = workflow("flow", async (ctx, n: number) => {
    const a = await ctx.step("a", () => n);
    const b = await ctx.step(addOne, a);
    await ctx.step("c", () => b);
    return b;
  });

  async function recording(): Promise<ExportedRun> {
    const pawl = await Pawl.open(memoryStore({ clock: manualClock() }), {
      workflows: [recorded],
      handleSignals: false,
    });
    onTestFinished(() => pawl.close());
    const run = await pawl.start(recorded, 1);
    await run.result();
    return throughFile(await exportRun(pawl, run.id));
  }

  const variant = (handler: Parameters<typeof workflow>[1]) => workflow("flow", handler as never);

  it("I5 P3 names the entry, what is recorded, what the code issued, and its line", async () => {
    const renamed = variant(async (ctx) => ctx.step("z", () => 1));
    const result = await replay(renamed, await recording());
    expect(result).toMatchObject({ ok: false, diff: { seq: 1, recorded: 'step "a"', issued: 'step "z"' } });
    expect(result.message).toContain('At entry 1 the journal has step "a"; the code issued step "z".');
    expect(result.line).toMatch(/replay\.test\.ts:\d+:\d+$/);
  });

  it("I5 P3 another input of the same step", async () => {
    const other = variant(async (ctx) => {
      await ctx.step("a", () => 1);
      await ctx.step(addOne, 99);
    });
    const result = await replay(other, await recording());
    expect(result).toMatchObject({ ok: false, diff: { seq: 3, recorded: 'step "addOne"', issued: 'step "addOne"' } });
    expect(result.message).toContain("with another input");
  });

  it("I5 P3 code that returns or throws before a recorded call is told so, with the error and its line", async () => {
    const file = await recording();
    const gone = await replay(
      variant(async (ctx) => ctx.step("a", () => 1)),
      file,
    );
    expect(gone.message).toContain('At entry 3 the journal has step "addOne"; the code returned without it.');
    const broken = variant(async (ctx) => {
      await ctx.step("a", () => 1);
      throw new TypeError("order.lines is undefined");
    });
    const result = await replay(broken, file);
    expect(result.message).toContain("the code threw without coming to it: order.lines is undefined");
    expect(result.line).toMatch(/replay\.test\.ts:\d+:\d+$/);
  });

  it("I5 an end that comes too early, too late, never, or with another value", async () => {
    const file = await recording();
    const steps = async (ctx: Parameters<Parameters<typeof workflow>[1]>[0]) => {
      const a = await ctx.step("a", () => 1);
      return ctx.step(addOne, a);
    };
    const early = await replay(variant(steps), file);
    expect(early).toMatchObject({ ok: false, diff: { seq: 5, recorded: 'step "c"', issued: null } });
    const late = variant(async (ctx) => {
      const b = await steps(ctx);
      await ctx.step("c", () => 1);
      await ctx.step("d", () => 1);
      return b;
    });
    const result = await replay(late, file);
    expect(result).toMatchObject({ ok: false, diff: { seq: 7, recorded: "run.succeeded", issued: 'step "d"' } });
    expect(result.line).toMatch(/replay\.test\.ts:\d+:\d+$/);
    const never = variant(async (ctx) => {
      await steps(ctx);
      await ctx.step("c", () => 1);
      await new Promise(() => {});
    });
    expect(await replay(never, file, { quiet: 20 })).toMatchObject({ ok: false, diff: { seq: 7, issued: null } });
    const other = variant(async (ctx) => {
      const b = await steps(ctx);
      await ctx.step("c", () => 1);
      return b + 1;
    });
    expect((await replay(other, file)).message).toContain("run.succeeded 2; the code comes to run.succeeded 3");
  });

  it("P3 code that goes quiet before a recorded call, and one that leaves the journal after a foreign await", async () => {
    const file = await recording();
    const quiet = variant(async (ctx) => {
      await ctx.step("a", () => 1);
      await new Promise(() => {});
    });
    const result = await replay(quiet, file, { quiet: 20 });
    expect(result).toMatchObject({ ok: false, diff: { seq: 3, recorded: 'step "addOne"', issued: null } });
    expect(result.message).toContain("gone quiet");
  });

  it("I5 code that goes on where the recorded run waits", async () => {
    const waits = workflow("flow", async (ctx) => ctx.waitFor("go"));
    const pawl = await Pawl.open(memoryStore({ clock: manualClock() }), { workflows: [waits], handleSignals: false });
    onTestFinished(() => pawl.close());
    const run = await pawl.start(waits);
    await pawl.idle();
    const file = throughFile(await exportRun(pawl, run.id));
    const hurries = variant(async (ctx) => {
      void ctx.waitFor("go");
      await ctx.step("more", () => 1);
    });
    expect(await replay(hurries, file)).toMatchObject({
      ok: false,
      diff: { seq: 2, recorded: null, issued: 'step "more"' },
    });
    const ends = variant(async (ctx) => void ctx.waitFor("go"));
    expect(await replay(ends, file)).toMatchObject({ ok: false, diff: { seq: 2, issued: "run.succeeded" } });
  });

  it("P11 a promise that the code leaves rejected does not end the process", async () => {
    const flow = workflow("flow", async (ctx) => {
      void Promise.reject(new Error("left alone"));
      return ctx.step("a", () => 1);
    });
    const pawl = await Pawl.open(memoryStore(), { workflows: [flow], handleSignals: false });
    const run = await pawl.start(flow);
    await run.result();
    const file = throughFile(await exportRun(pawl, run.id));
    await pawl.close();
    expect(await replay(flow, file)).toMatchObject({ ok: true });
  });

  it("I23 refuses an export whose end was cut off, where its row or its children tell", async () => {
    const parent = workflow("parent", async (ctx) => ctx.call(child, 1));
    const world = await openWorld("memory");
    const pawl = await world.open([parent, child]);
    const file = await exported(world, pawl, await pawl.start(parent));
    const cut = file.entries.findIndex(({ type }) => type === "child.started");
    const upTo = (length: number, state = file.run.state) =>
      replay(parent, { ...file, run: { ...file.run, state }, entries: file.entries.slice(0, length) });
    const fields = (field: string) => ({ code: "invalid_argument", fields: { field } });
    await expect(upTo(file.entries.length - 1)).rejects.toMatchObject({
      ...fields("entries"),
      message: expect.stringMatching(
        /end with "child\.ended", but the run has succeeded: its last entries are missing\./,
      ),
    });
    await expect(upTo(cut, "running")).rejects.toMatchObject(fields("children"));
    expect(await upTo(cut + 1, "running")).toMatchObject({ ok: true });
  });

  it("refuses the wrong workflow", async () => {
    await expect(replay(child, await recording())).rejects.toThrow('one of workflow "flow", not of "child"');
  });
});

function addOne(n: number): number {
  return n + 1;
}
