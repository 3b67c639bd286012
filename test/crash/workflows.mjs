// Workflows for processes that are frozen, blocked, killed and stopped.
import { workflow } from "pawl";
import { book } from "./book.mjs";
import { passGate } from "./gates.mjs";
import { reach } from "./kill-point.mjs";

/** One step that waits at a gate, named by the input, and one after it. */
export const gated = workflow("gated", async (ctx, { gate }) => {
  const by = await ctx.step("first", async (info) => {
    book("first", info);
    await passGate(gate);
    return process.pid;
  });
  // Another pass sees another number: only what a step returns is the same again.
  const attempt = await ctx.step("second", (info) => book("second", info) ?? ctx.run.attempt);
  return { by, attempt };
});

/** Stands still with its whole event loop, when it is tried first. */
export const blocking = workflow("blocking", async (ctx, { ms }) => {
  return ctx.step("block", (info) => {
    book("block", info);
    if (info.attempt === 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    return process.pid;
  });
});

/** Brings its process down, whenever it is tried. */
export const poison = workflow("poison", async (ctx) => {
  await ctx.step("abort", (info) => {
    book("abort", info);
    process.abort();
  });
});

export const harmless = workflow("harmless", async (ctx, n) => {
  const a = await ctx.step("a", (info) => book("a", info) ?? n);
  const b = await ctx.step("b", (info) => book("b", info) ?? n + 1);
  return a + b;
});

/** One step of three parts that saves after each; "part" is reached before one, "saved" once that is durable. */
export const saving = workflow("saving", async (ctx) => {
  return ctx.step("session", async (info) => {
    const session = info.saved ?? { parts: [] };
    for (let n = session.parts.length + 1; n <= 3; n++) {
      book(`part ${n}`, info);
      reach("part");
      session.parts.push({ n, attempt: info.attempt });
      await info.save(session);
      reach("saved");
    }
    return session.parts;
  });
});

/** Fails for good, and says so to whoever waits. */
export const failing = workflow("failing", async (ctx) => {
  await ctx.step("fail", (info) => {
    book("fail", info);
    throw new Error("no such account");
  });
});

/** Fails once, and tells when it was tried again. */
export const flaky = workflow("flaky", async (ctx, { wait }) => {
  const retry = { max: 1, base: wait, jitter: false, on: "any" };
  return ctx.step(
    "try",
    (info) => {
      book("try", info);
      if (info.attempt === 1) throw new Error("not yet");
      return { attempt: info.attempt, at: Date.now() };
    },
    { retry },
  );
});
