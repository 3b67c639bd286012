// Effects and their undoing, crashed at every point.
import { type Context, workflow } from "pawl";
import { crashEverywhere, recorder } from "pawl/testing";
import { expect, it } from "vitest";

it("I6 S2-36 S2-58 C-15 a run that fails after two effects undoes both, wherever it crashes, and nothing happens twice", async () => {
  const outside = recorder();
  const booking = (ctx: Context, name: string) =>
    ctx.effect(name, {
      idempotent: true,
      do: ({ key }) => {
        outside.record(`book ${name}`, {}, key);
        return `${name} is booked`;
      },
      undo: (value, { key }) => outside.record(`release ${name}`, { value }, key),
    });
  const trip = workflow("trip", async (ctx: Context) => {
    await booking(ctx, "flight");
    await ctx.sleep("1 day");
    await booking(ctx, "hotel");
    await ctx.step("car", () => {
      throw new Error("no car left");
    });
  });
  const report = await crashEverywhere(trip, undefined, { recorder: outside });
  expect(report.toString()).toMatch(/^ok: /);
  expect(report.points.length).toBeGreaterThan(20);
});

it("I6 C-3 an effect with a detector happens once, wherever it crashes, though the outside knows nothing of keys", async () => {
  const outside = recorder();
  const sent = new Set<string>();
  const mailing = workflow("mailing", async (ctx: Context) =>
    ctx.effect("send", {
      do: ({ key }) => {
        outside.record("mail");
        sent.add(key);
        return "sent";
      },
      detect: ({ key }) => (sent.has(key) ? { found: true, value: "sent" } : { found: false }),
    }),
  );
  const report = await crashEverywhere(mailing, undefined, { recorder: outside, fresh: () => sent.clear() });
  expect(report.toString()).toMatch(/^ok: /);
});

it("S0-34 its unguarded twin, declared idempotent against the truth, is caught", async () => {
  const outside = recorder();
  const mailing = workflow("mailing", async (ctx: Context) =>
    ctx.effect("send", { idempotent: true, do: () => outside.record("mail") }),
  );
  const report = await crashEverywhere(mailing, undefined, { recorder: outside });
  expect(report.failures[0]).toMatchObject({ kind: "effects", step: "send" });
});

it("C-3 I6 S2-36 an effect that nothing guards happens once, wherever it crashes: the run asks, and a person looks outside", async () => {
  const outside = recorder();
  const mailing = workflow("mailing", async (ctx: Context) => {
    const sent = await ctx.effect("send", {
      do: async () => {
        outside.record("mail");
        return "sent";
      },
    });
    return { sent, answer: await ctx.waitFor<string>("answer") };
  });
  const report = await crashEverywhere(mailing, undefined, {
    recorder: outside,
    // It waits until the run does: meanwhile no time passes, and the person is asked.
    script: async (run, engine) => {
      await engine.until(async () => (await run.status()).state === "waiting");
      await run.signal("answer", "thanks");
    },
  });
  expect(report.toString()).toMatch(/^ok: /);
  expect(report.isComplete).toBe(true);
  expect(report.outcome).toContain("sent");
});

it("S0-34 an effect that nothing guards and that only ever breaks off is given up by the person who is asked", async () => {
  const mailing = workflow("mailing", async (ctx: Context) =>
    ctx.effect("send", {
      do: () => {
        throw Object.assign(new Error("the connection broke"), { code: "ECONNRESET" });
      },
    }),
  );
  const report = await crashEverywhere(mailing, undefined);
  expect(report.toString()).toMatch(/^ok: /);
  expect(report.outcome).toContain("cancelled");
});
