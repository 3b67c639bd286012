// Small workflows, one for each thing that a body can do. Whatever happens to their process, they come to the same end.
import { type Context, RetryableError, type Workflow, workflow } from "pawl";
import { type CrashOptions, type Recorder, recorder } from "pawl/testing";

export interface Case {
  readonly name: string;
  readonly workflow: Workflow<unknown, unknown>;
  readonly input?: unknown;
  readonly options?: CrashOptions<unknown, unknown>;
  /** How the undisturbed run ends. */
  readonly ends: RegExp;
}

type Body = (ctx: Context, act: (name: string) => Promise<string>, outside: Recorder) => Promise<unknown>;

function make(
  name: string,
  ends: RegExp,
  body: Body,
  options: Omit<CrashOptions<unknown, unknown>, "recorder"> & { readonly deadline?: string } = {},
): Case {
  const outside = recorder();
  const { deadline, ...rest } = options;
  const handler = (ctx: Context) =>
    body(
      ctx,
      (step) =>
        ctx.step(step, async ({ key }) => {
          outside.record(step, { by: "step" }, key);
          return `${step} done`;
        }),
      outside,
    );
  return {
    name,
    ends,
    workflow: workflow({ name: name.replaceAll(" ", "-"), ...(deadline === undefined ? {} : { deadline }) }, handler),
    options: { ...rest, recorder: outside },
  };
}

const double = workflow("double", async (ctx, n: number) => ctx.step("twice", () => n * 2));
const slow = workflow("slow", async (ctx) => {
  await ctx.sleep("1 h");
  return "slow";
});
const failing = workflow("failing", async (ctx) => ctx.step("fail", () => Promise.reject(new Error("no"))));

export const smallWorkflows: readonly Case[] = [
  make("no steps", /succeeded with 1/, async () => 1),
  make("sequence", /succeeded/, async (_, act) => [await act("a"), await act("b"), await act("c")]),
  make("parallel", /succeeded/, async (_, act) => Promise.all([act("a"), act("b"), act("c")])),
  make("race", /succeeded with 'a done'/, async (ctx, act) => {
    const first = await Promise.race([act("a"), ctx.sleep("1 h").then(() => "late")]);
    await act("after");
    return first;
  }),
  make("any", /succeeded with 'b done'/, async (ctx, act) => {
    const bad = ctx.step("bad", () => Promise.reject(new Error("bad")));
    return Promise.any([bad, act("b")]);
  }),
  make("loop", /succeeded with 3/, async (ctx, act) => {
    let count = 0;
    while (count < 3) {
      await act("turn");
      count = await ctx.step("count", () => count + 1);
    }
    return count;
  }),
  make("nested loop", /succeeded/, async (_, act) => {
    const done: string[] = [];
    for (const outer of ["x", "y"]) for (const inner of ["1", "2"]) done.push(await act(outer + inner));
    return done;
  }),
  make("branches", /succeeded/, async (ctx, act) => {
    const branch = async (name: string) => {
      const first = await act(`${name}1`);
      await ctx.sleep("1 min");
      return [first, await act(`${name}2`)];
    };
    return Promise.all([branch("left"), branch("right")]);
  }),
  make(
    "child",
    /succeeded with 42/,
    async (ctx, act) => {
      await act("before");
      const doubled = await ctx.call(double, 21);
      await act("after");
      return doubled;
    },
    { workflows: [double] },
  ),
  make("children in parallel", /succeeded/, async (ctx) => Promise.all([ctx.call(double, 1), ctx.call(double, 2)]), {
    workflows: [double],
  }),
  make("child that fails", /failed/, async (ctx) => ctx.call(failing), { workflows: [failing] }),
  make(
    "child that loses a race",
    /succeeded with 'quick done'/,
    async (ctx, act) => Promise.race([ctx.call(slow), act("quick")]),
    { workflows: [slow] },
  ),
  make(
    "spawn",
    /succeeded/,
    async (ctx, act) => {
      await ctx.spawn(double, 4);
      return act("own");
    },
    { workflows: [double] },
  ),
  make("map", /succeeded/, async (ctx, act) => ctx.map(["a", "b", "c"], (item) => act(item), { concurrency: 2 })),
  make("partial map", /succeeded/, async (ctx, act) => {
    const results = await ctx.map(
      [1, 2, 3],
      (n) => (n === 2 ? ctx.step("odd", () => Promise.reject(new Error("two"))) : act(`n${n}`)),
      { partial: true },
    );
    return results.map(({ status }) => status);
  }),
  make(
    "signal before the wait",
    /succeeded with 'yes'/,
    async (ctx, act) => {
      await act("a");
      return ctx.waitFor("go");
    },
    { script: (run) => run.signal("go", "yes") },
  ),
  make(
    "signal after the wait",
    /succeeded with 'yes'/,
    async (ctx, act) => {
      await act("a");
      const go = await ctx.waitFor("go");
      await act("b");
      return go;
    },
    {
      script: async (run, engine) => {
        await engine.settle();
        await run.signal("go", "yes");
      },
    },
  ),
  make("two signals", /succeeded with \[ 1, 2 \]/, async (ctx) => [await ctx.waitFor("n"), await ctx.waitFor("n")], {
    script: async (run, engine) => {
      await run.signal("n", 1);
      await engine.settle();
      await run.signal("n", 2);
    },
  }),
  make("timeout of a wait", /succeeded with 'none'/, async (ctx, act) => {
    const answer = await ctx.waitFor("never", { timeout: "1 day", default: "none" });
    await act("after");
    return answer;
  }),
  make("timeout of a step", /failed with .*"hang"/, async (ctx, act) => {
    await act("before");
    return ctx.step("hang", () => new Promise(() => {}), { timeout: "10 s", retry: false });
  }),
  make(
    "cancel",
    /cancelled/,
    async (ctx, act) => {
      await act("a");
      await ctx.waitFor("never");
      return act("b");
    },
    {
      script: async (run, engine) => {
        await engine.settle();
        await run.cancel({ reason: "enough" });
      },
    },
  ),
  make(
    "cancel at once",
    /cancelled/,
    async (ctx, act) => {
      await act("a");
      await ctx.sleep("1 day");
      return act("b");
    },
    { script: async (run) => void (await run.cancel()) },
  ),
  make(
    "cancel with a cleanup",
    /cancelled/,
    async (ctx, act) => {
      await act("a");
      try {
        return await ctx.waitFor("never");
      } catch (error) {
        ctx.note("given up");
        ctx.set("state", "cleaned up");
        throw error;
      }
    },
    {
      script: async (run, engine) => {
        await engine.until(async () => (await run.status()).waits.length > 0);
        await run.cancel();
      },
    },
  ),
  make("cancel of a parent", /cancelled/, async (ctx) => ctx.call(slow), {
    workflows: [slow],
    script: async (run, engine) => {
      await engine.settle();
      await run.cancel();
    },
  }),
  make("retry", /succeeded with 'third'/, async (ctx, act) => {
    await act("a");
    return ctx.step(
      "flaky",
      ({ attempt }) => {
        if (attempt < 3) throw new RetryableError("not yet");
        return "third";
      },
      { retry: { base: 0 } },
    );
  }),
  make("retry with a backoff", /succeeded with 'at last'/, async (ctx) =>
    ctx.step(
      "flaky",
      ({ attempt }) => {
        if (attempt < 3) throw new RetryableError("not yet");
        return "at last";
      },
      { retry: { base: "1 min" } },
    ),
  ),
  make("retries used up", /failed with .*retries are used up/, async (ctx) =>
    ctx.step("broken", () => Promise.reject(new RetryableError("no")), { retry: { max: 2, base: "1 s" } }),
  ),
  make("failure that is handled", /succeeded with 'sorry'/, async (ctx, act) => {
    try {
      return await ctx.step("broken", () => Promise.reject(new Error("no")));
    } catch {
      await act("apology");
      return "sorry";
    }
  }),
  make("failure", /failed with "no"/, async (_, act) => {
    await act("a");
    throw new Error("no");
  }),
  make("short sleep", /succeeded/, async (ctx, act) => [await act("a"), await ctx.sleep(100), await act("b")]),
  make("long sleep", /succeeded/, async (ctx, act) => [await act("a"), await ctx.sleep("3 days"), await act("b")]),
  make(
    "deadline",
    /failed with .*deadline/,
    async (ctx, act) => {
      await act("a");
      await ctx.sleep("2 days");
      return act("b");
    },
    { deadline: "1 day" },
  ),
  {
    name: "continueAs",
    ends: /succeeded with 3/,
    input: 0,
    workflow: workflow("continue", async (ctx, n: number) => {
      if (n === 3) return n;
      await ctx.step("turn", ({ key }) => key);
      return ctx.continueAs(n + 1);
    }) as Workflow<unknown, unknown>,
  },
  make("patched", /succeeded/, async (ctx, act) => {
    await act("a");
    return ctx.patched("new way") ? act("b") : act("c");
  }),
  make("time, chance and ids", /succeeded/, async (ctx, act) => {
    const before = [ctx.now(), ctx.random(), ctx.uuid()];
    await act("a");
    await ctx.sleep("1 h");
    return [...before, ctx.now(), ctx.random(), ctx.uuid()];
  }),
  make("state", /succeeded with 2/, async (ctx, act) => {
    ctx.set("count", 1);
    await act("a");
    ctx.set("count", (ctx.get<number>("count") ?? 0) + 1);
    await act("b");
    return ctx.get("count");
  }),
  make("notes, logs, costs and progress", /succeeded/, async (ctx, act) => {
    ctx.note("begun");
    ctx.log.info("begun");
    await act("a");
    ctx.cost({ usd: 1 });
    ctx.progress({ done: 1 });
    return act("b");
  }),
  make("recovery asks", /succeeded with 'paid'/, async (ctx, act, outside) => {
    await act("a");
    const pay = () => {
      outside.record("pay");
      return "paid";
    };
    return ctx.step("pay", pay, { recovery: "ask" });
  }),
  make("recovery fails", /succeeded with 'paid'/, async (ctx, act, outside) => {
    await act("a");
    const pay = () => {
      outside.record("pay");
      return "paid";
    };
    return ctx.step("pay", pay, { recovery: "fail" });
  }),
];
