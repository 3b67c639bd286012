// Workflows that are broken on purpose, each in one way. Each is caught, and the message names the line or the step.
import { randomUUID } from "node:crypto";
import { type Context, RetryableError, workflow } from "pawl";
import { type CrashReport, crashEverywhere, recorder } from "pawl/testing";
import { expect, it } from "vitest";

const HERE = /broken-workflows\.test\.ts:\d+:\d+/;

function kindsOf({ failures }: CrashReport): string[] {
  return [...new Set(failures.map(({ kind }) => kind))].sort();
}

it("I5 catches a body that reads the clock, and names the line", async () => {
  const late = workflow("late", async (ctx: Context) => {
    const begun = Date.now();
    await ctx.step("work", () => 1);
    return { begun };
  });
  const report = await crashEverywhere(late, undefined);
  expect(kindsOf(report)).toEqual(["replay", "result"]);
  expect(report.failures[0]?.line).toMatch(HERE);
  expect(report.toString()).toMatch(
    /reads Date\.now\(\) at .*broken-workflows\.test\.ts:\d+:\d+\)? \(use ctx\.now\(\)\)/,
  );
});

it("I5 I6 catches a body that makes an id with node:crypto for two steps, and names the line", async () => {
  const outside = recorder();
  const linking = workflow("linking", async (ctx: Context) => {
    const id = randomUUID();
    await ctx.step("create", ({ key }) => outside.record("create", { id }, key));
    await ctx.step("link", ({ key }) => outside.record("link", { id }, key));
  });
  const report = await crashEverywhere(linking, undefined, { recorder: outside });
  expect(kindsOf(report)).toEqual(["effects"]);
  expect(report.failures[0]?.message).toMatch(/reads crypto\.randomUUID\(\) at .*broken-workflows\.test\.ts:\d+/);
  expect(randomUUID()).not.toBe(randomUUID());
});

it("I5 catches a body that takes a branch by chance, and names the line and the step", async () => {
  const fickle = workflow("fickle", async (ctx: Context) => {
    if (Math.random() < 0.5) await ctx.step("heads", () => 1);
    else await ctx.step("tails", () => 1);
    return ctx.step("end", () => 1);
  });
  const report = await crashEverywhere(fickle, undefined);
  expect(kindsOf(report)).toContain("divergence");
  const drift = report.failures.find(({ kind }) => kind === "divergence");
  expect(drift).toMatchObject({ step: "heads" });
  expect(drift?.line).toMatch(HERE);
  expect(drift?.message).toMatch(/Entry 1 is step "heads", but the body called step "tails".*Math\.random\(\)/);
});

it("I6 catches an effect that the body makes outside of any step, and names the line", async () => {
  const outside = recorder();
  const leaky = workflow("leaky", async (ctx: Context) => {
    await ctx.step("work", () => 1);
    outside.record("mail", { to: "ann" });
    return ctx.step("more", () => 1);
  });
  const report = await crashEverywhere(leaky, undefined, { recorder: outside });
  expect(kindsOf(report)).toEqual(["effects"]);
  expect(report.failures[0]?.line).toMatch(HERE);
  expect(report.failures[0]?.message).toMatch(
    /"mail" \{ to: "ann" \} happened 2 times instead of 1.*Move it into a ctx\.step/,
  );
});

it("I6 catches a charge that is made twice, and names the step; with its key passed on it is fine", async () => {
  const outside = recorder();
  const guarded = workflow("shop", async (ctx: Context) => {
    await ctx.step("charge", async ({ key }) => void outside.record("charge", { cents: 100 }, key));
    return ctx.step("receipt", () => "sent");
  });
  const unguarded = workflow("shop", async (ctx: Context) => {
    await ctx.step("charge", async () => void outside.record("charge", { cents: 100 }));
    return ctx.step("receipt", () => "sent");
  });
  const report = await crashEverywhere(unguarded, undefined, { recorder: outside });
  expect(kindsOf(report)).toEqual(["effects"]);
  expect(report.failures[0]).toMatchObject({ step: "charge", point: { kind: "step" } });
  expect(report.failures[0]?.message).toMatch(/Step "charge" ran 2 times and does not use its idempotency key.*`key`/);
  expect(report.repeats).toContainEqual(expect.objectContaining({ step: "charge", times: 2, usedKey: false }));

  const fine = await crashEverywhere(guarded, undefined, { recorder: outside });
  expect(fine.toString()).toMatch(/^ok: /);
  expect(fine.repeats).toContainEqual(expect.objectContaining({ step: "charge", times: 2, usedKey: true }));
});

it("I6 catches an effect that each attempt makes anew, and says that it is the attempts", async () => {
  const outside = recorder();
  const charge = (keyOf: (key: string) => string | undefined) =>
    workflow("shop", async (ctx: Context) =>
      ctx.step("charge", ({ key, attempt }) => {
        outside.record("charge", undefined, keyOf(key));
        if (attempt === 1) throw new RetryableError("not yet");
      }),
    );
  const report = await crashEverywhere(
    charge(() => undefined),
    undefined,
    { recorder: outside },
  );
  expect(kindsOf(report)).toEqual(["effects"]);
  expect(report.failures[0]?.message).toMatch(
    /happened 1 time instead of 2\..*Each of its attempts makes it anew.*`key`/,
  );
  const fine = await crashEverywhere(
    charge((key) => key),
    undefined,
    { recorder: outside },
  );
  expect(fine.toString()).toMatch(/^ok: /);
});

it("I6 tells how often the step itself ran, not its namesakes in other runs and generations", async () => {
  const outside = recorder();
  const charge = async (ctx: Context, n: number) => ctx.step("charge", () => outside.record("charge", { n }));
  const child = workflow("child", charge);
  const many = workflow("many", async (ctx: Context) => ctx.map([1, 2, 3], (n) => ctx.call(child, n)));
  const loop = workflow("loop", async (ctx: Context, n: number) => {
    await charge(ctx, n);
    if (n < 3) await ctx.continueAs(n + 1);
  });
  const reports = [
    await crashEverywhere(many, undefined, { recorder: outside, workflows: [child] }),
    await crashEverywhere(loop, 1, { recorder: outside }),
  ];
  for (const { failures } of reports)
    expect([...new Set(failures.map(({ message }) => /ran \d times/.exec(message)?.[0]))]).toEqual(["ran 2 times"]);
});

it("I6 catches a double charge in the test's own fakes, by what they have seen", async () => {
  let charges: number[] = [];
  const shop = workflow("shop", async (ctx: Context, cents: number) => {
    await ctx.step(function charge(amount: number) {
      charges.push(amount);
    }, cents);
    return "paid";
  });
  const report = await crashEverywhere(shop, 500, {
    fresh: () => {
      charges = [];
    },
    observe: () => charges,
  });
  expect(kindsOf(report)).toEqual(["effects"]);
  expect(report.failures[0]).toMatchObject({ step: "charge" });
  expect(report.failures[0]?.message).toMatch(/has seen \[ 500, 500 \] instead of \[ 500 \]/);
  expect(report.repeats).toEqual([expect.objectContaining({ step: "charge", input: [500], times: 2, usedKey: false })]);
});

it("I6 catches what a body does outside of any step, right before its end, in the test's own fakes", async () => {
  let mails = 0;
  const greeting = workflow("greeting", async () => {
    mails++;
    return "sent";
  });
  const report = await crashEverywhere(greeting, undefined, {
    fresh: () => {
      mails = 0;
    },
    observe: () => mails,
  });
  expect(kindsOf(report)).toEqual(["effects"]);
  expect(report.failures[0]?.message).toMatch(/has seen 2 instead of 1\. No step ran twice: .* the body makes outside/);
});

it("I5 catches state that outlives a run, and names the step after which it shows", async () => {
  let total = 0;
  const sum = workflow("sum", async (ctx: Context) => {
    total += await ctx.step("two", () => 2);
    total += await ctx.step("three", () => 3);
    return total;
  });
  const report = await crashEverywhere(sum, undefined);
  expect(kindsOf(report)).toContain("shared-state");
  expect(report.failures.find(({ kind }) => kind === "shared-state")).toMatchObject({ step: "three" });
  expect(report.toString()).toMatch(/first run\.succeeded with 5 after step "three", then run\.succeeded with/);
});

it("I16 catches a body that handles a cancel like any failure, and names the line", async () => {
  const outside = recorder();
  const stubborn = workflow("stubborn", async (ctx: Context) => {
    try {
      await ctx.waitFor("approval");
    } catch {
      outside.record("mail", "nobody approved");
      await ctx.step("fallback", () => 1);
    }
    return "done";
  });
  const report = await crashEverywhere(stubborn, undefined, {
    recorder: outside,
    script: async (run, engine) => {
      await engine.settle();
      await run.cancel();
    },
  });
  expect(kindsOf(report)).toEqual(expect.arrayContaining(["effect-after-cancel", "swallowed-cancel"]));
  const [late] = report.failures.filter(({ kind }) => kind === "swallowed-cancel");
  expect(late?.line).toMatch(HERE);
  expect(late?.message).toMatch(/called step "fallback" at .*Rethrow errors with code "cancelled"/);
});

it("I16 stops a body that tries again for ever after a cancel", async () => {
  const endless = workflow("endless", async (ctx: Context) => {
    for (;;) {
      try {
        return await ctx.waitFor("approval");
      } catch {
        ctx.note("once more");
      }
    }
  });
  const report = await crashEverywhere(endless, undefined, {
    script: async (run, engine) => {
      await engine.settle();
      await run.cancel();
    },
  });
  expect(kindsOf(report)).toEqual(["swallowed-cancel"]);
  expect(report.failures[0]?.line).toMatch(HERE);
});

it("S4-16 catches a step that gives another result when it runs again, and names it", async () => {
  let calls = 0;
  const counting = workflow("counting", async (ctx: Context) => ctx.step("count", () => ++calls));
  const report = await crashEverywhere(counting, undefined, {
    fresh: () => {
      calls = 0;
    },
    observe: () => null,
  });
  expect(kindsOf(report)).toEqual(["result"]);
  expect(report.failures[0]).toMatchObject({ step: "count" });
  expect(report.failures[0]?.message).toMatch(
    /succeeded with 2; undisturbed it succeeded with 1. Step "count" gave another/,
  );
});

it("I6 catches an effect made from a variable that another step sets, and says with what it was made instead", async () => {
  const outside = recorder();
  const forgetful = workflow("forgetful", async (ctx: Context) => {
    let token = "none";
    await ctx.step("log in", () => {
      token = "t-1";
    });
    await ctx.step("use", ({ key }) => outside.record("use", { token }, key));
  });
  const report = await crashEverywhere(forgetful, undefined, { recorder: outside });
  expect(report.failures[0]).toMatchObject({ kind: "effects", step: "use" });
  expect(report.failures[0]?.message).toMatch(
    /^Step "use" made the effect "use" \{ token: "none" \}; undisturbed it made "use" \{ token: "t-1" \}\. .*return it from that step/,
  );
  expect(report.failures.every(({ message }) => message === report.failures[0]?.message)).toBe(true);
});

it("S4-16 tells of a step that finds what another one has done twice which one that is", async () => {
  let lines = 0;
  const log = workflow("log", async (ctx: Context) => {
    await ctx.step("append", () => void lines++);
    return ctx.step("count", () => lines);
  });
  const fresh = () => {
    lines = 0;
  };
  const report = await crashEverywhere(log, undefined, { fresh, modes: ["kill"] });
  const [twice] = report.failures;
  expect(twice?.message).toMatch(/Step "count" gave another result\. Step "append" ran 2 times and does not use its/);
});

it("S4-16 what follows from a step that gave another result is not blamed on the steps after it", async () => {
  const outside = recorder();
  let last = 0;
  const counting = workflow("counting", async (ctx: Context) => {
    const id = await ctx.step("next id", () => ++last);
    await ctx.step("save", ({ key }) => outside.record("save", { id }, key));
    return id;
  });
  const fresh = () => {
    last = 0;
  };
  const report = await crashEverywhere(counting, undefined, { recorder: outside, fresh });
  expect([...new Set(report.failures.map(({ step }) => step))]).toEqual(["next id"]);
});

it("I6 catches an effect that comes with another key each time, and says so", async () => {
  const outside = recorder();
  let drawn = 0;
  const drawing = workflow("drawing", async (ctx: Context) =>
    ctx.step("pay", () => outside.record("pay", {}, `own key ${++drawn}`)),
  );
  const fresh = () => {
    drawn = 0;
  };
  const report = await crashEverywhere(drawing, undefined, { recorder: outside, fresh });
  expect(report.failures[0]?.message).toMatch(/Step "pay" ran 2 times, each time with another key/);
});

it("I5 tells of a replay that leaves the journal by what is recorded and called there", async () => {
  let known: string | null = null;
  const cached = workflow("cached", async (ctx: Context) => {
    known ??= await ctx.step("load", () => "ann");
    await ctx.step("greet", () => `Hello ${known}`);
  });
  const report = await crashEverywhere(cached, undefined);
  expect(report.failures[0]?.message).toMatch(
    /replayed from its journal, it was parked\. Entry 1 is step "load", but the body called step "greet" at /,
  );
});

it("I5 tells of a variable that steps fill that they had better return it", async () => {
  const pages = workflow("pages", async (ctx: Context) => {
    const texts: string[] = [];
    await ctx.step("fetch", () => void texts.push("page 1"));
    return texts;
  });
  const report = await crashEverywhere(pages, undefined);
  expect(report.failures[0]?.message).toMatch(
    /it succeeded with \[\]\. .* a variable that a step's function sets, return it/,
  );
});

it("I6 P13 tells of an effect that is lost what may have lost it: a step that saves too early, or does not wait", async () => {
  const outside = recorder();
  const early = workflow("early", async (ctx: Context) =>
    ctx.step("send", async ({ key, save, saved }) => {
      if (saved === "sent") return;
      await save("sent");
      outside.record("send", {}, key);
    }),
  );
  const report = await crashEverywhere(early, undefined, { recorder: outside });
  expect(report.failures[0]).toMatchObject({ kind: "effects", step: "send" });
  expect(report.failures[0]?.message).toMatch(/happened 0 times instead of 1\. .*waits for it, and saves nothing/);
});

it("I10 tells of a child that the test was not told of how to tell it", async () => {
  const child = workflow("child", async () => 1);
  const parent = workflow("parent", async (ctx: Context) => ctx.call(child));
  const report = await crashEverywhere(parent, undefined);
  expect(report.failures[0]?.message).toMatch(
    /of "child" is accepted .* does not know "child", name it in `workflows`/,
  );
});
