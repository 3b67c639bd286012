import { describe, expect, it } from "vitest";
import { manualClock } from "../base/clock.ts";
import { RetryableError } from "../base/errors.ts";
import { type DirectCallsOptions, directCalls } from "./direct-calls.ts";
import type { ModelReply } from "./model.ts";
import type { ToolRecord } from "./tool.ts";
import { tool } from "./tool.ts";

const REPLY: ModelReply = { content: [], finish: "stop", usage: { inputTokens: 1, outputTokens: 2 }, model: "m" };
const RECORD: ToolRecord = { message: "done", success: true, events: [], trust: "untrusted" };
const CALL = { id: "c", name: "pay", args: { cents: 5 }, key: "tool.pay.c", round: 1 };
const FACTS = { round: 1, inputHash: "h" };
const payOf = (guard: object = {}) =>
  tool({ name: "pay", description: "Pays.", class: "execute", input: { jsonSchema: {} }, run: () => "paid", ...guard });

const callsOf = (options: Partial<DirectCallsOptions> = {}) => {
  const clock = manualClock();
  return { clock, calls: directCalls({ execution: "e", clock, random: () => 0.5, ...options }) };
};
/** Lets promises go on, and then time: whatever is due next. */
async function settled<T>(clock: ReturnType<typeof manualClock>, work: Promise<T>): Promise<T | Error> {
  let outcome: { readonly value: T | Error } | null = null;
  work.then(
    (value) => (outcome = { value }),
    (error: Error) => (outcome = { value: error }),
  );
  for (let turns = 0; outcome === null && turns < 1000; turns++) {
    await new Promise((resolve) => setImmediate(resolve));
    if (outcome === null) clock.skip();
  }
  return (outcome as unknown as { value: T | Error }).value;
}

describe("direct calls", () => {
  it("X-20 give every attempt the same key, and try a model again that is busy", async () => {
    const seen: string[] = [];
    const spent: unknown[] = [];
    const { clock, calls } = callsOf({ spent: (total) => spent.push(total) });
    const asked = calls.model(FACTS, async ({ key, attempt, spent: say, saved, save }) => {
      seen.push(`${key} ${attempt} ${saved}`);
      say({ tokens: 10 });
      await save(attempt);
      if (attempt < 3) throw new RetryableError("busy");
      return REPLY;
    });
    expect(await settled(clock, asked)).toBe(REPLY);
    expect(seen).toEqual(["e:model.1 1 undefined", "e:model.1 2 1", "e:model.1 3 2"]);
    expect(spent).toEqual([{ tokens: 10 }, { tokens: 20 }, { tokens: 30 }]);
  });

  it("end a call that takes too long, unless it gives a sign of life; whoever watches is told", async () => {
    let beats = 0;
    const { clock, calls } = callsOf({ heartbeat: () => void beats++, retry: false });
    const hangs = () => new Promise<never>(() => {});
    expect(await settled(clock, calls.model(FACTS, hangs))).toMatchObject({ code: "step_timeout" });
    expect(beats).toBeGreaterThanOrEqual(6);
    const slow = calls.model(FACTS, async ({ heartbeat }) => {
      for (let minute = 0; minute < 3; minute++) {
        await new Promise<void>((resolve) => void clock.after(60_000, resolve));
        heartbeat();
      }
      return REPLY;
    });
    expect(await settled(clock, slow)).toBe(REPLY);
  });

  it("C-3 S2-67 what could happen twice is not tried again, and nobody is told that it failed if that is not known", async () => {
    const { clock, calls } = callsOf();
    let begun = 0;
    const torn = async () => {
      begun++;
      throw new RetryableError("the line went dead");
    };
    const unsafe = await settled(clock, calls.tool(CALL, payOf(), torn));
    expect(unsafe).toMatchObject({ code: "unknown_outcome", fields: { tool: "pay" } });
    expect(begun).toBe(1);
    // It has said no: that is an answer.
    const refused = await settled(
      clock,
      calls.tool(CALL, payOf(), () => Promise.reject(new Error("no money"))),
    );
    expect(refused).toMatchObject({ success: false, message: 'Tool "pay" failed: no money' });
  });

  it("C-3 what can be found is looked for before it is tried again", async () => {
    const { clock, calls } = callsOf();
    let begun = 0;
    const torn = async () => {
      begun++;
      throw new RetryableError("the line went dead");
    };
    const found = payOf({ detect: () => ({ found: true, value: "paid before" }) });
    expect(await settled(clock, calls.tool(CALL, found, torn))).toMatchObject({
      message: "paid before",
      success: true,
    });
    expect(begun).toBe(1);
  });

  it("stop with their signal, also between two attempts", async () => {
    const controller = new AbortController();
    const { clock, calls } = callsOf({ signal: controller.signal });
    const reason = new Error("enough");
    const waiting = calls.model(FACTS, async () => {
      queueMicrotask(() => queueMicrotask(() => controller.abort(reason)));
      throw new RetryableError("busy");
    });
    expect(await settled(clock, waiting)).toBe(reason);
    expect(
      await settled(
        clock,
        calls.tool(CALL, payOf(), async () => RECORD),
      ),
    ).toBe(reason);
  });
});
