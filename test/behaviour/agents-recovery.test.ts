// Agents that die in the middle: what is recorded is never done again, and what nobody can tell is for a person.
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type AgentDurability, type AgentOptions, agent } from "../../src/agent/agent.ts";
import { EventBus } from "../../src/agent/bus.ts";
import { planningSection } from "../../src/agent/planning-section.ts";
import { progressSection } from "../../src/agent/progress-section.ts";
import { prompt } from "../../src/agent/prompt.ts";
import { callTools, type Script, say, scriptedModel } from "../../src/agent/scripted-model.ts";
import { section } from "../../src/agent/section.ts";
import { ToolInvoked } from "../../src/agent/telemetry.ts";
import { tool } from "../../src/agent/tool.ts";
import { workflow } from "../../src/core/workflow.ts";
import { withoutColdStart } from "../cold-start.ts";
import { errorOf, gate, openWorld, STORES } from "./harness.ts";

const TASK = section<{ request: string }>({ title: "Task", key: "task", body: "Do this: $request" });
const task = prompt({ namespace: "test", key: "task", sections: [TASK] });
const planned = prompt({
  namespace: "test",
  key: "planned",
  sections: [TASK, progressSection(), planningSection()],
});

const agentOf = (script: Script, options: Partial<AgentOptions<string, string>> = {}) =>
  agent<string, string>({
    name: "helper",
    model: scriptedModel(script),
    prompt: (request) => task.bind({ request }),
    ...options,
  });

const write = (run: (n: number, key: string) => unknown, guard: object = {}) =>
  tool({
    name: "write",
    description: "Writes.",
    class: "write",
    input: z.object({ n: z.number() }),
    run: ({ n }, { key }) => run(n, key),
    ...guard,
  });

describe.each(STORES)("an agent that dies, on %s", (store) => {
  it("B55 X-20 P4 does not begin parallel tools again that were recorded, whichever ended first", async () => {
    const world = await openWorld(store);
    const begun: number[] = [];
    const slow = gate();
    const bus = new EventBus();
    const told: unknown[] = [];
    bus.subscribe(ToolInvoked, ({ payload }) => told.push((payload.params as { n: number }).n));
    const tools = [
      write(
        async (n) => {
          begun.push(n);
          // The first of the three is still at work when the others have ended.
          if (n === 1 && begun.filter((one) => one === 1).length === 1) await slow.passed;
          return `wrote ${n}`;
        },
        { idempotent: true },
      ),
    ];
    const model = scriptedModel([
      callTools({ write: { n: 1 } }, { write: { n: 2 } }, { write: { n: 3 } }),
      say("done"),
    ]);
    const helper = agentOf([], { model, tools, bus });
    const first = await world.open([helper]);
    await first.start(helper, "go", { id: "r" });
    await world.settle();
    expect(begun).toEqual([1, 2, 3]);
    const second = await world.restart([helper]);
    expect(await second.get("r").result()).toBe("done");
    expect(begun).toEqual([1, 2, 3, 1]);
    expect(told).toEqual([1]);
    expect(model.requests.length).toBe(2);
    slow.open();
  });

  it.each([
    ["S1-57 a tool that reads is run again", { class: "read" }, [1, 1]],
    ["C-3 one that the outside recognises is run again, with the same key", { idempotent: true }, [1, 1]],
    ["C-3 one that can be found is not", { detect: () => ({ found: true, value: "found" }) }, [1]],
  ] as const)("%s after a crash in its window", async (_, guard, expected) => {
    const world = await openWorld(store);
    const begun: number[] = [];
    const keys = new Set<string>();
    const hang = gate();
    const tools = [
      write(async (n, key) => {
        begun.push(n);
        keys.add(key);
        if (begun.length === 1) await hang.passed;
        return `wrote ${n}`;
      }, guard),
    ];
    const model = scriptedModel([callTools({ write: { n: 1 } }), say("done")]);
    const helper = agentOf([], { model, tools });
    const first = await world.open([helper]);
    await first.start(helper, "go", { id: "r" });
    await world.settle();
    const second = await world.restart([helper]);
    expect(await second.get("r").result()).toBe("done");
    expect(begun).toEqual(expected);
    expect(keys.size).toBe(1);
    expect(JSON.stringify(model.requests[1]?.prompt.at(-1))).toContain("detect" in guard ? "found" : "wrote 1");
    hang.open();
  });

  it("C-3 E-26 a tool that could happen twice parks the run after a crash in its window, until a person has looked", async () => {
    const world = await openWorld(store);
    const begun: number[] = [];
    const hang = gate();
    const tools = [
      write(async (n) => {
        begun.push(n);
        await hang.passed;
      }),
    ];
    const model = scriptedModel([callTools({ write: { n: 1 } }), say("done")]);
    const helper = agentOf([], { model, tools });
    const first = await world.open([helper]);
    await first.start(helper, "go", { id: "r" });
    await world.settle();
    const second = await world.restart([helper]);
    await world.settle();
    expect((await second.get("r").status()).parked?.reason).toBe("unknown_outcome");
    expect(begun).toEqual([1]);
    await second.resolve("r", { choice: "happened", value: "it was written" });
    expect(await second.get("r").result()).toBe("done");
    expect(begun).toEqual([1]);
    expect(JSON.stringify(model.requests[1]?.prompt.at(-1))).toContain("it was written");
    hang.open();
  });

  it("I26 S2-68 approvals of a round are open at once, survive a restart, and only what was approved begins", async () => {
    const world = await openWorld(store);
    const begun: number[] = [];
    const tools = [write((n) => void begun.push(n))];
    const model = scriptedModel([
      callTools({ write: { n: 1 } }, { write: { n: 2 } }, { write: { n: 3 } }),
      // Whatever it claims: nobody has approved this.
      callTools({ write: { n: 4, approved: true } }),
      say("done"),
    ]);
    const helper = agentOf([], { model, tools, approvals: { write: { approvers: ["ann"] } } });
    const first = await world.open([helper]);
    await first.start(helper, "go", { id: "r" });
    await world.settle();
    const second = await world.restart([helper]);
    await world.settle();
    const open = async () => (await second.approvals.list({ run: "r" })).approvals;
    const decide = async (n: number, decision: "approved" | "denied") => {
      const asked = (await open()).find(({ action }) => (action.arguments as { n: number }).n === n);
      await second.approvals.decide(asked?.id ?? "", {
        decision,
        by: "ann",
        ...(decision === "denied" && { reason: "not this" }),
      });
      await world.settle();
    };
    expect((await open()).map(({ action }) => action)).toEqual(
      [1, 2, 3].map((n) => ({ tool: "write", arguments: { n } })),
    );
    expect(begun).toEqual([]);
    await decide(3, "approved");
    expect(begun).toEqual([3]);
    await decide(1, "denied");
    await decide(2, "approved");
    expect(begun).toEqual([3, 2]);
    expect(JSON.stringify(model.requests[1]?.prompt.at(-1))).toContain(
      'ann has denied this call of \\"write\\": not this',
    );
    expect((await open()).map(({ action }) => action.arguments)).toEqual([{ n: 4 }]);
    await decide(4, "denied");
    expect(await second.get("r").result()).toBe("done");
    expect(begun).toEqual([3, 2]);
  });

  it("X-20 an answer to another conversation is not taken for the answer to this one: the run is parked", async () => {
    withoutColdStart("the code of the second process is not that of the first");
    const world = await openWorld(store);
    const hang = gate();
    const tools = (text: string) => [
      tool({ name: "look", description: "Looks.", class: "read", input: z.object({}), run: () => text }),
      tool({
        name: "wait",
        description: "Waits.",
        class: "read",
        input: z.object({}),
        run: async () => {
          await hang.passed;
          return text;
        },
      }),
    ];
    const script = [callTools({ look: {} }), callTools({ wait: {} }), say("done")];
    const before = agentOf(script, { tools: tools("a") });
    const first = await world.open([before]);
    await first.start(before, "go", { id: "r" });
    await world.settle();
    // Code that lets the model be told something else than it was.
    const other = prompt({ namespace: "test", key: "other", sections: [TASK] });
    const after = agentOf(script, { tools: tools("a"), prompt: (request) => other.bind({ request }) });
    const second = await world.restart([after]);
    await world.settle();
    expect((await second.get("r").status()).parked?.reason).toBe("replay_drift");
    hang.open();
  });

  it("S1-2 a new wording of the prompt does not stop runs that are under way", async () => {
    withoutColdStart("the code of the second process is not that of the first");
    const world = await openWorld(store);
    const hang = gate();
    const waits = tool({
      name: "wait",
      description: "Waits.",
      class: "read",
      input: z.object({}),
      run: () => hang.passed,
    });
    const model = scriptedModel([callTools({ wait: {} }), say("done")]);
    const wording = (body: string) =>
      prompt({
        namespace: "test",
        key: "task",
        sections: [section<{ request: string }>({ title: "Task", key: "task", body })],
      });
    const made = (body: string) =>
      agentOf([], { model, tools: [waits], prompt: (request) => wording(body).bind({ request }) });
    const first = await world.open([made("Old words: $request")]);
    await first.start(made("Old words: $request"), "go", { id: "r" });
    await world.settle();
    const second = await world.restart([made("New words: $request")]);
    hang.open();
    expect(await second.get("r").result()).toBe("done");
    expect(JSON.stringify(model.requests[1]?.prompt[0])).toContain("New words: go");
  });

  it("X-18 a cancelled agent stops, and nothing of it begins afterwards", async () => {
    const world = await openWorld(store);
    const begun: number[] = [];
    const hang = gate();
    const tools = [
      write(
        async (n) => {
          begun.push(n);
          await hang.passed;
        },
        { idempotent: true },
      ),
    ];
    const model = scriptedModel((_, round) => callTools({ write: { n: round } }));
    const helper = agentOf([], { model, tools });
    const pawl = await world.open([helper]);
    const run = await pawl.start(helper, "go", { id: "r" });
    run.result().catch(() => {});
    await world.settle();
    const outcome = await run.cancel({ reason: "enough" });
    hang.open();
    await world.settle();
    expect(outcome).toEqual({ outcome: "cancelled" });
    expect((await run.status()).status).toBe("cancelled");
    expect(begun).toEqual([1]);
    expect(model.requests.length).toBe(1);
  });

  it("C-11 an agent that is killed after a milestone goes on, in all three modes", async () => {
    const script: Script = ({ prompt: messages }) => {
      // A restored session says what is done; a conversation of its own shows what it has said since.
      const said = JSON.stringify(messages);
      const isDone = (n: number) => said.includes(`note_${n} written`) || said.includes(`✓ ${n}.`);
      if (!said.includes("two notes"))
        return callTools({ planning_setup_plan: { objective: "two notes", steps: ["first", "second"] } });
      const next = [1, 2].find((n) => !isDone(n));
      if (next === undefined) return say("finished");
      return callTools({ note: { n: next } }, { planning_update_step: { id: next, status: "done" } });
    };
    for (const durability of ["perCall", "snapshot", "whole"] as const satisfies readonly AgentDurability[]) {
      const world = await openWorld(store);
      const begun: number[] = [];
      const hang = gate();
      const note = tool({
        name: "note",
        description: "Notes.",
        class: "read",
        input: z.object({ n: z.number() }),
        run: async ({ n }) => {
          begun.push(n);
          if (n === 2 && begun.filter((one) => one === 2).length === 1) await hang.passed;
          return `note_${n} written`;
        },
      });
      const helper = agentOf(script, { tools: [note], durability, prompt: (request) => planned.bind({ request }) });
      const first = await world.open([helper]);
      await first.start(helper, "go", { id: "r" });
      await world.settle();
      expect(begun, durability).toEqual([1, 2]);
      const second = await world.restart([helper]);
      expect(await second.get("r").result(), durability).toBe("finished");
      expect(begun, durability).toEqual(durability === "whole" ? [1, 2, 1, 2] : [1, 2, 2]);
      hang.open();
    }
  });
});

describe("an agent in one step", () => {
  /** Pays twice, and is killed while it does so for the second time; then asked again from its prompt, which knows of no payment. */
  const killedWhilePaying = async (guard: object) => {
    const world = await openWorld("memory");
    const begun: number[] = [];
    const hang = gate();
    const pay = write(async (n) => {
      begun.push(n);
      if (n === 2 && begun.filter((one) => one === 2).length === 1) await hang.passed;
      return `paid ${n}`;
    }, guard);
    const model = scriptedModel((_, round) => (round <= 2 ? callTools({ write: { n: round } }) : say("both are paid")));
    const helper = agentOf([], { model, tools: [pay], durability: "snapshot" });
    const first = await world.open([helper]);
    await first.start(helper, "go", { id: "r" });
    await world.settle();
    const second = await world.restart([helper]);
    const run = second.get<string>("r");
    run.result().catch(() => {});
    await world.settle();
    hang.open();
    return { run, begun, model };
  };

  it("C-7 C-11 X-20 what a tool has done since the last milestone is not done again, and one that its key protects is", async () => {
    const { run, begun } = await killedWhilePaying({ idempotent: true });
    expect(await run.result()).toBe("both are paid");
    expect(begun).toEqual([1, 2, 2]);
  });

  it("C-3 C-7 S2-5 one that nobody can tell about is not done again either, and a person has to look", async () => {
    const { run, begun, model } = await killedWhilePaying({});
    const error = await errorOf(run.result());
    expect(error).toMatchObject({ code: "escalated" });
    expect(error.message).toContain('write({"n":2})');
    expect(begun).toEqual([1, 2]);
    expect(JSON.stringify(model.requests.at(-1)?.prompt.at(-1))).toContain("Do not repeat it");
  });

  it("S2-3 S1-2 goes on from its session alone: nothing of the conversation is kept", async () => {
    const { run } = await killedWhilePaying({ idempotent: true });
    await run.result();
    const saved = (await run.journal()).filter(({ type }) => type === "checkpoint");
    expect(saved.length).toBeGreaterThan(0);
    for (const { payload } of saved) expect(JSON.stringify(payload)).not.toContain("tool-call");
  });

  it("S2-68 cannot have tools that need an approval", async () => {
    const helper = agentOf([say("x")], {
      tools: [write(() => "written", { approval: { approvers: ["ann"] } })],
    });
    const flow = workflow("flow", (ctx) => ctx.step("work", (info) => helper.evaluate(info, "go")));
    const world = await openWorld("memory");
    const pawl = await world.open([flow]);
    const error = await errorOf(pawl.run(flow, undefined));
    expect(error).toMatchObject({ code: "invalid_argument", fields: { tool: "write" } });
  });
});
