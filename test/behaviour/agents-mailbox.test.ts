// Requests that many workers share, on every store: what becomes of one that fails.
import { describe, expect, it } from "vitest";
import { mailbox, type Reply } from "../../src/agent/mailbox.ts";
import { RetryableError, TerminalError } from "../../src/base/errors.ts";
import { workflow } from "../../src/core/workflow.ts";
import { MINUTE, openWorld, STORES_AT_ONCE } from "./harness.ts";

const failure = (code: string, more: object = {}) =>
  Object.assign(new TerminalError(`it is ${code}`), { code, ...more });

describe.each(STORES_AT_ONCE)("a mailbox on %s", (store) => {
  /** A mailbox whose handler fails as often as it is told to. */
  async function opened(errors: readonly Error[], options: object = {}) {
    const world = await openWorld(store);
    const deliveries: number[] = [];
    const replies: Reply<string>[] = [];
    const handler = workflow({ name: "handler", retry: false }, (ctx, request: string) =>
      ctx.step("work", () => {
        deliveries.push(world.clock.now());
        const error = errors[deliveries.length - 1];
        if (error !== undefined) throw error;
        return `did ${request}`;
      }),
    );
    const box = mailbox({ name: "letters", handler, reply: (reply) => void replies.push(reply), ...options });
    const pawl = await world.open(box.workflows);
    const start = world.clock.now();
    const minutes = () => deliveries.map((at) => (at - start) / MINUTE);
    return { world, pawl, box, replies, minutes, handler };
  }

  it("X-10 X-11 delivers again after a minute, then two, and tells the sender once", async () => {
    const { world, pawl, box, replies, minutes } = await opened([failure("a"), failure("b")]);
    const run = await box.send(pawl, "this", { replyTo: "ada" });
    await world.settle();
    expect(replies).toEqual([]);
    await world.advance(MINUTE);
    await world.advance(2 * MINUTE);
    expect(await run.result()).toBe("did this");
    expect(minutes()).toEqual([0, 1, 3]);
    expect(replies).toEqual([{ ok: true, value: "did this" }]);
    expect(await box.deadLetters(pawl)).toEqual([]);
  });

  it("X-11 is dead after five deliveries, says why, and is delivered once more on demand", async () => {
    const told: unknown[] = [];
    const errors = Array.from({ length: 5 }, () => failure("broken"));
    const { world, pawl, box, replies, minutes } = await opened(errors, {
      onDeadLetter: (dead: object) => void told.push(dead),
    });
    const run = await box.send(pawl, "this", { replyTo: "ada" });
    for (const pause of [0, 1, 2, 3, 4]) await world.advance(pause * MINUTE);
    await expect(run.result()).rejects.toMatchObject({ code: "broken" });
    expect(minutes()).toEqual([0, 1, 3, 6, 10]);
    expect(replies).toEqual([{ ok: false, code: "broken", message: "it is broken" }]);
    const dead = {
      run: run.id,
      request: "this",
      replyTo: "ada",
      deliveries: 5,
      code: "broken",
      message: "it is broken",
    };
    expect(told).toEqual([dead]);
    expect(await box.deadLetters(pawl)).toMatchObject([dead]);
    const again = await box.replay(pawl, run.id);
    await world.settle();
    expect(await again.result()).toBe("did this");
    expect(replies.at(-1)).toEqual({ ok: true, value: "did this" });
  });

  it("X-11 some errors are final at once, and some never", async () => {
    const first = await opened([failure("refused")]);
    const refused = await first.box.send(first.pawl, "this");
    await first.world.settle();
    await expect(refused.result()).rejects.toMatchObject({ code: "refused" });
    expect(first.minutes().length).toBe(1);

    const errors = Array.from({ length: 3 }, () => failure("busy"));
    const second = await opened(errors, { maxDeliveries: 2, never: ["busy"], backoff: () => "1m" });
    const busy = await second.box.send(second.pawl, "this");
    for (let n = 0; n < 4; n++) await second.world.advance(MINUTE);
    expect(await busy.result()).toBe("did this");
    expect(second.minutes()).toEqual([0, 1, 2, 3]);
  });

  it("X-10 X-11 an error says itself when to come again, and pauses end at a quarter of an hour", async () => {
    const asked = new RetryableError("later", { retryAfter: "5m" });
    const { world, pawl, box, minutes } = await opened([asked, ...Array.from({ length: 18 }, () => failure("a"))], {
      maxDeliveries: 30,
    });
    const run = await box.send(pawl, "this");
    for (let n = 0; n < 260; n++) await world.advance(MINUTE);
    expect(await run.result()).toBe("did this");
    const pauses = minutes().map((at, n, all) => at - (all[n - 1] ?? 0));
    expect(pauses.slice(0, 4)).toEqual([0, 5, 2, 3]);
    expect(Math.max(...pauses)).toBe(15);
  });

  it("X-12 a delivery that gives no sign of life is ended and made again; one that does is left alone", async () => {
    const world = await openWorld(store);
    const stuck: AbortSignal[] = [];
    const handler = workflow({ name: "handler", retry: false, timeout: "5m" }, (ctx, request: string) =>
      ctx.step("work", async ({ signal, heartbeat }) => {
        if (request === "lively") {
          for (let n = 0; n < 4; n++) {
            heartbeat();
            await new Promise<void>((resolve) => void world.clock.at(world.clock.now() + 4 * MINUTE, resolve));
          }
          return "did lively";
        }
        stuck.push(signal);
        return stuck.length === 1 ? new Promise<string>(() => {}) : "did it at last";
      }),
    );
    const box = mailbox({ name: "letters", handler });
    const pawl = await world.open(box.workflows);
    const runs = [await box.send(pawl, "stuck"), await box.send(pawl, "lively")];
    for (let n = 0; n < 20; n++) await world.advance(MINUTE);
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(["did it at last", "did lively"]);
    expect(stuck.map(({ aborted }) => aborted)).toEqual([true, false]);
  });

  it("X-10 a full mailbox takes no more", async () => {
    const { world, pawl, box } = await opened([failure("a"), failure("a"), failure("a")], { capacity: 2 });
    const runs = [await box.send(pawl, "one"), await box.send(pawl, "two")];
    await world.settle();
    await expect(box.send(pawl, "three")).rejects.toMatchObject({ code: "mailbox_full" });
    for (let n = 0; n < 4; n++) await world.advance(MINUTE);
    await Promise.all(runs.map((run) => run.result()));
    await box.send(pawl, "three");
    await world.settle();
  });
});

it("X-11 refuses options that cannot be meant", () => {
  const handler = workflow("handler", (_ctx, request: string) => request);
  for (const options of [{ maxDeliveries: 0 }, { capacity: 1.5 }, { backoff: () => "soon" }])
    expect(() => mailbox({ name: "letters", handler, ...options })).toThrow(
      expect.objectContaining({ code: "invalid_argument" }),
    );
});
