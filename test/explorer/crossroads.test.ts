// Histories that lead back to an earlier one are not played to their end: that must change nothing but the time it takes. A script keeps
// the explorer from doing so, which gives the whole histories to compare with.
import { type Context, workflow } from "pawl";
import { crashEverywhere, type Recorder, recorder } from "pawl/testing";
import { expect, it } from "vitest";

const STEPS = 14;

type Body = (ctx: Context, outside: Recorder, started: () => void) => Promise<unknown>;

async function explore(body: Body, how: "joined" | "whole") {
  const outside = recorder();
  let starts = 0;
  const long = workflow("long", (ctx: Context) => body(ctx, outside, () => void starts++));
  const script = how === "whole" ? { script: async () => {} } : {};
  const report = await crashEverywhere(long, undefined, { recorder: outside, ...script });
  return { report, starts: () => starts };
}

/** Each step adds one to a sum that is kept where a crash does not reach. */
const sound: Body = async (ctx, outside, started) => {
  let sum = 0;
  for (let i = 0; i < STEPS; i++) {
    sum += await ctx.step(`step ${i}`, ({ key }) => {
      started();
      outside.record("act", { i }, key);
      return i;
    });
  }
  return sum;
};

/** A variable that a step sets is lost with the process, be it while the run sleeps, and missed eight steps later. */
const forgetful: Body = async (ctx, outside, started) => {
  let token = "none";
  for (let i = 0; i < STEPS; i++) {
    await ctx.step(`step ${i}`, ({ key }) => {
      started();
      if (i === 3) token = "secret";
      outside.record("act", i === 11 ? { i, token } : { i }, key);
    });
    if (i === 4) await ctx.sleep("1s");
  }
};

/** One effect without a key, late in the run. */
const keyless: Body = async (ctx, outside, started) => {
  for (let i = 0; i < STEPS; i++) {
    await ctx.step(`step ${i}`, ({ key }) => {
      started();
      if (i === 10) outside.record("mail");
      else outside.record("act", { i }, key);
    });
  }
};

/** Counts, late in the run, what was asked for outside: one request more wherever a step has run again. */
const counting: Body = async (ctx, outside, started) => {
  for (let i = 0; i < STEPS; i++) {
    await ctx.step(`step ${i}`, ({ key }) => {
      started();
      outside.record("act", i === 11 ? { i, requests: outside.requests.length } : { i }, key);
    });
  }
};

/** Goes another way where the clock says so, but only at its end. */
const hasty: Body = async (ctx, outside, started) => {
  const sum = await sound(ctx, outside, started);
  if (Date.now() % 2 === 0) await ctx.step("even", () => outside.record("even"));
  return sum;
};

for (const [name, body, isOk] of [
  ["a sound one", sound, true],
  ["one that loses a variable", forgetful, false],
  ["one with an effect that no key guards", keyless, false],
  ["one that reads what was recorded", counting, false],
  ["one that reads the clock", hasty, false],
] as const) {
  it(`S0-12 I5 I6 histories that lead back to an earlier one are told as if they were played to their end: ${name}`, async () => {
    const [joined, whole] = [await explore(body, "joined"), await explore(body, "whole")];
    expect(joined.report.ok).toBe(isOk);
    expect(joined.report.explored).toBe(whole.report.explored);
    expect(joined.report.failures).toEqual(whole.report.failures);
    expect(joined.report.repeats).toEqual(whole.report.repeats);
    // Whoever reads the clock is played to the end everywhere.
    const share = joined.starts() / whole.starts();
    if (body === hasty) expect(share).toBe(1);
    else expect(share).toBeLessThan(0.65);
  }, 120_000);
}
