// Machines, crashed at every point: with an approval, an effect and its undo, a wait, a retry and parallel steps.
import { machine } from "pawl";
import { crashEverywhere, recorder } from "pawl/testing";
import { expect, it } from "vitest";

it("I6 S2-35 S2-36 S2-44 T-16 a machine that books in parallel, retries, waits and asks ends the same wherever it crashes", async () => {
  const outside = recorder();
  const trip = machine(
    { name: "trip", state: (to: string) => ({ to, booked: [] as readonly string[] }), merge: { booked: "append" } },
    ({ step, effect, parallel, approval }) => {
      const booking = (what: string) =>
        effect({
          next: ["price"],
          idempotent: true,
          do: ({ to }, { key }) => {
            outside.record(`book ${what}`, { to }, key);
            return `${what} to ${to}`;
          },
          undo: (value, { key }) => outside.record(`release ${what}`, { value }, key),
          decide: (_state, value) => ({ transition: "continue", next: "price", patch: { booked: [value] } }),
        });
      return {
        start: "book",
        steps: {
          book: parallel({ branches: ["flight", "hotel"], next: "price" }),
          flight: booking("flight"),
          hotel: booking("hotel"),
          price: step({
            next: ["ask"],
            can: ["retry", "wait"],
            retry: 2,
            run: (_state, { attempt }) =>
              attempt === 1
                ? { transition: "retry", reason: "the agency is busy", delay: "10m" }
                : { transition: "wait", for: "1h", next: "ask" },
          }),
          ask: approval({
            action: ({ to }) => ({ tool: "trip", arguments: to }),
            approvers: ["ann"],
            approved: "end",
            timeout: "1 day",
          }),
          end: step({ can: ["complete"], run: ({ booked }) => ({ transition: "complete", output: booked }) }),
        },
      };
    },
  );
  // Nobody answers: what was booked is released.
  const report = await crashEverywhere(trip, "Rome", { recorder: outside, modes: ["kill"] });
  expect(report.toString()).toMatch(/^ok: /);
  expect(report.points.length).toBeGreaterThan(20);
  const approved = await crashEverywhere(trip, "Oslo", {
    recorder: outside,
    modes: ["kill"],
    script: (run, engine) => engine.decide(run.id, "ask", { decision: "approved", by: "ann" }),
  });
  expect(approved.toString()).toMatch(/^ok: /);
  expect(approved.outcome).toMatch(/^succeeded/);
});

it("I6 S2-36 S2-45 S2-48 a machine that undoes one action, or cancels itself, does so once, wherever it crashes", async () => {
  const outside = recorder();
  const stopping = machine({ name: "stopping", state: (how: "one" | "cancel") => ({ how }) }, ({ step, effect }) => {
    const booking = <N extends string>(name: string, next: N) =>
      effect({
        next: [next],
        idempotent: true,
        do: (_state, { key }) => outside.record(`book ${name}`, {}, key),
        undo: (_value, { key }) => outside.record(`release ${name}`, {}, key),
        decide: () => ({ transition: "continue", next }),
      });
    return {
      start: "a",
      steps: {
        a: booking("a", "b"),
        b: booking("b", "stop"),
        stop: step({
          can: ["compensate", "cancel"],
          run: ({ how }) =>
            how === "one"
              ? { transition: "compensate", reason: "not this one", action: "a" }
              : { transition: "cancel", reason: "not needed", compensate: true },
        }),
      },
    };
  });
  const released = () => outside.effects.map(({ name }) => name).filter((name) => name.startsWith("release"));
  const one = await crashEverywhere(stopping, "one", { recorder: outside, modes: ["kill"] });
  expect(one.toString()).toMatch(/^ok: /);
  expect(one.outcome).toMatch(/^failed/);
  expect(released()).toEqual(["release a"]);
  const cancelled = await crashEverywhere(stopping, "cancel", { recorder: outside, modes: ["kill"] });
  expect(cancelled.toString()).toMatch(/^ok: /);
  expect(cancelled.outcome).toMatch(/^cancelled/);
  expect(released()).toEqual(["release b", "release a"]);
});

it("S4-16 an agent of a machine that leaves its key unused is told from one that reads it", async () => {
  const made = machine({ name: "keys", state: () => ({}) }, ({ agent, step }) => ({
    start: "loose",
    steps: {
      loose: agent({
        next: ["keyed"],
        run: () => ({ outcome: "result", value: "said" }),
        decide: () => ({ transition: "continue", next: "keyed" }),
      }),
      keyed: agent({
        next: ["end"],
        run: (_state, { key }) => ({ outcome: "result", value: key.slice(0, 0) }),
        decide: () => ({ transition: "continue", next: "end" }),
      }),
      end: step({ can: ["complete"], run: () => ({ transition: "complete", output: "done" }) }),
    },
  }));
  const { repeats } = await crashEverywhere(made, undefined, { modes: ["kill"] });
  const used = new Map(repeats.map(({ step, usedKey }) => [step, usedKey]));
  expect([used.get("loose"), used.get("keyed")]).toEqual([false, true]);
});
