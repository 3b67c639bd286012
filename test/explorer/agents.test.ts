import { agent, callTools, planningSection, prompt, say, scriptedModel, section, tool } from "pawl/agent";
import { crashEverywhere, recorder } from "pawl/testing";
import { describe, expect, it } from "vitest";
import { z } from "zod";

const task = prompt({
  namespace: "test",
  key: "task",
  sections: [section<{ request: string }>({ title: "Task", key: "task", body: "Do this: $request" })],
});
const planned = prompt({
  namespace: "test",
  key: "planned",
  sections: [
    section<{ request: string }>({ title: "Task", key: "task", body: "Do this: $request" }),
    planningSection(),
  ],
});

const NAMES = ["mail", "refund", "close"];

describe("an agent, crashed at every point", () => {
  it("B55 I26 P4 begins each of three tools once, which it calls at once and people approve one by one, in another order", async () => {
    const outside = recorder();
    // Nothing guards them: whoever begins one twice does it twice.
    const tools = NAMES.map((name) =>
      tool({
        name,
        description: `Does ${name}.`,
        class: "execute",
        input: z.object({ order: z.number() }),
        run: ({ order }) => {
          outside.record(name, { order });
          return `${name} of ${order} is done`;
        },
      }),
    );
    const model = scriptedModel([
      callTools(...NAMES.map((name) => ({ [name]: { order: 7 } }))),
      say("All three are done."),
    ]);
    const clerk = agent({
      name: "clerk",
      model,
      tools,
      approvals: { execute: { approvers: ["ann"] } },
      prompt: (request: string) => task.bind({ request }),
    });
    const report = await crashEverywhere(clerk, "settle order 7", {
      recorder: outside,
      script: async (run, engine) => {
        // All are open at the same time: the second is decided first.
        for (const [name, place] of [
          ["refund", 2],
          ["close", 3],
          ["mail", 1],
        ] as const)
          await engine.decide(run.id, `tool.${name}.call_1_${place}`, { decision: "approved", by: "ann" });
      },
    });
    expect(report.toString()).toMatch(/^ok: /);
    expect(report.isComplete).toBe(true);
    expect(report.outcome).toContain("All three are done.");
    expect(outside.requests.map(({ name }) => name)).toEqual(["refund", "close", "mail"]);
  });

  it("S1-1 S1-2 X-20 keeps its plan, and does nothing of it twice", async () => {
    const outside = recorder();
    const note = tool({
      name: "note",
      description: "Writes a note.",
      class: "write",
      idempotent: true,
      input: z.object({ text: z.string() }),
      run: ({ text }, { key }) => outside.record("note", { text }, key),
    });
    const model = scriptedModel([
      callTools(
        { planning_setup_plan: { objective: "two notes", steps: ["first", "second"] } },
        { planning_update_step: { id: 1, status: "in_progress" } },
      ),
      callTools({ note: { text: "one" } }, { note: { text: "two" } }),
      callTools(
        { planning_update_step: { id: 1, status: "done" } },
        { planning_update_step: { id: 2, status: "done" } },
      ),
      say("Both notes are written."),
    ]);
    const writer = agent({
      name: "writer",
      model,
      tools: [note],
      prompt: (request: string) => planned.bind({ request }),
    });
    const report = await crashEverywhere(writer, "write two notes", { recorder: outside });
    expect(report.toString()).toMatch(/^ok: /);
    expect(report.outcome).toContain("Both notes are written.");
    expect(outside.effects.map(({ details }) => (details as { text: string }).text)).toEqual(["one", "two"]);
  });

  it("S4-16 is told which of its tools leave their key unused", async () => {
    const input = z.object({});
    const look = (name: string, run: (given: object, info: { readonly key: string }) => string) =>
      tool({ name, description: `Does ${name}.`, class: "read", input, run });
    const reader = agent({
      name: "reader",
      model: scriptedModel([callTools({ loose: {} }, { keyed: {} }), say("Read.")]),
      tools: [look("loose", () => "read"), look("keyed", (_given, { key }) => `read ${key.slice(0, 0)}`)],
      prompt: (request: string) => task.bind({ request }),
    });
    const { repeats } = await crashEverywhere(reader, "read", { modes: ["kill"] });
    const used = new Map(repeats.map(({ step, usedKey }) => [step, usedKey]));
    expect([used.get("tool.loose.call_1_1"), used.get("tool.keyed.call_1_2")]).toEqual([false, true]);
  });
});
