// Machines: what a step or an agent returns that the definition does not allow is refused, and changes nothing.
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { machine } from "../../src/flows/machine.ts";
import type { AgentOutcome } from "../../src/flows/machine-step.ts";
import { errorOf, STORES } from "./harness.ts";
import {
  beginAll as beginEach,
  begin as beginOne,
  decide,
  end,
  machineOf,
  notesOf,
  OPTIONS,
  positionOf,
} from "./machine-runs.ts";

describe.each(STORES)("a machine on %s", (store) => {
  const begin = (flow: ReturnType<typeof machineOf>, input?: string) => beginOne(store, flow, input);
  const beginAll = (flows: readonly ReturnType<typeof machineOf>[]) => beginEach(store, flows);

  const REFUSED: readonly (readonly [returned: unknown, code: string, fields: object])[] = [
    ["done", "invalid_transition", { step: "one" }],
    [undefined, "invalid_transition", { step: "one" }],
    [{ transition: "dance" }, "invalid_transition", { step: "one" }],
    [{ transition: "continue", next: "other", patch: { n: 1 } }, "illegal_transition", { step: "one", next: ["end"] }],
    [{ transition: "complete", output: 1, patch: { n: 1 } }, "illegal_transition", { can: ["fail", "continue"] }],
    [
      { transition: "continue", next: "end", patch: { n: 1, nope: 1 } },
      "invalid_transition",
      { step: "one", field: "nope" },
    ],
    [{ transition: "fail" }, "invalid_transition", { step: "one", field: "reason" }],
  ];

  it("S2-2 S2-34 S2-41 S2-42 E-11 a step that returns a bare value, or what its definition does not allow, is refused, that is recorded, and the state stays", async () => {
    const asked = new Map<string, number>();
    const flows = REFUSED.map(([returned], i) =>
      machineOf(
        "one",
        (make) => ({
          one: make.step({
            next: ["end"],
            retry: { max: 3, on: "any" },
            run: () => {
              asked.set(`m${i}`, (asked.get(`m${i}`) ?? 0) + 1);
              return returned as never;
            },
          }),
          end: make.step({ next: ["other"], can: ["complete"], run: () => ({ transition: "complete", output: 1 }) }),
          other: end(make),
        }),
        `m${i}`,
      ),
    );
    const { world, runs } = await beginAll(flows);
    for (const [i, [returned, code, fields]] of REFUSED.entries()) {
      const run = runs[i]!;
      const what = JSON.stringify(returned);
      expect(await errorOf(run.result()), what).toMatchObject({ code, fields });
      expect(asked.get(run.id), what).toBe(1);
      expect(await notesOf(world, run.id)).toEqual([expect.stringMatching(/^proposal_rejected: step "one"/)]);
      expect((await run.status()).data).toMatchObject({
        n: 0,
        "pawl.machine": { step: "one", completed: [], rejected: 1 },
      });
    }
  });

  it("S2-16 S2-34 S2-41 times that are none are refused as any other transition that cannot be used", async () => {
    const given = [
      [{ transition: "wait", for: "soon", next: "end", patch: { n: 1 } }, "for"],
      [{ transition: "wait", until: "tomorrow", next: "end", patch: { n: 1 } }, "until"],
      [{ transition: "wait", signal: "go", timeout: -1, next: "end", patch: { n: 1 } }, "timeout"],
      [{ transition: "retry", reason: "busy", delay: "later" }, "delay"],
    ] as const;
    const flows = given.map(([returned], i) =>
      machineOf(
        "one",
        (make) => ({
          one: make.step({ next: ["end"], can: ["wait", "retry"], run: () => returned as never }),
          end: end(make),
        }),
        `m${i}`,
      ),
    );
    const { world, runs } = await beginAll(flows);
    for (const [i, [, field]] of given.entries()) {
      const run = runs[i]!;
      expect(await errorOf(run.result())).toMatchObject({ code: "invalid_transition", fields: { step: "one", field } });
      expect(await notesOf(world, run.id)).toEqual([expect.stringMatching(/^proposal_rejected: step "one"/)]);
      expect((await run.status()).data).toMatchObject({ n: 0 });
    }
  });

  it("S2-42 a patch that breaks the schema of the state is refused", async () => {
    const flow = machine({ ...OPTIONS, schema: z.object({ n: z.number().max(3) }).loose() }, ({ step }) => ({
      start: "one",
      steps: {
        one: step({ next: ["one"], run: ({ n }) => ({ transition: "continue", next: "one", patch: { n: n + 2 } }) }),
      },
    }));
    const { run } = await begin(flow as never);
    expect(await errorOf(run.result())).toMatchObject({
      code: "schema_mismatch",
      message: expect.stringContaining('after step "one"'),
    });
    expect((await run.status()).data).toMatchObject({ n: 2 });
  });

  const agents = (script: unknown[], proposals?: number, name?: string) => {
    const told: unknown[] = [];
    const flow = machineOf(
      "think",
      (make) => ({
        think: make.agent({
          next: ["end", "other"],
          retry: { base: "1h", cap: "1h", jitter: false },
          ...(proposals !== undefined && { proposals }),
          run: (_state, { rejected }) => {
            told.push(rejected.map(({ reason }) => reason));
            return script.shift() as AgentOutcome<string, "end">;
          },
          decide: (_state, value, next) => ({ transition: "continue", next: next ?? "end", patch: { log: [value] } }),
        }),
        other: make.step({
          next: ["end"],
          run: () => ({ transition: "continue", next: "end", patch: { log: ["other"] } }),
        }),
        end: make.step({
          next: ["pay"],
          can: ["complete"],
          run: ({ log }) => ({ transition: "complete", output: log }),
        }),
        pay: end(make),
      }),
      name,
    );
    return { flow, told };
  };

  it("S2-1 S2-2 E-11 an agent that proposes what is not declared, or wants to decide itself, is told so and asked again; that is recorded and counted", async () => {
    const good = { outcome: "result", value: "v", next: "other" };
    const { flow, told } = agents([{ ...good, next: "pay" }, { transition: "complete", output: "mine" }, good]);
    const { world, pawl, run } = await begin(flow);
    expect(await run.result()).toEqual(["v", "other"]);
    const notes = await notesOf(world);
    expect(notes).toEqual([
      expect.stringMatching(/^proposal_rejected: step "think": it proposes "pay", and its next steps are: end, other/),
      expect.stringMatching(/^proposal_rejected: .*wants to decide \("complete"\)/),
    ]);
    expect((told as string[][]).map((reasons) => reasons.length)).toEqual([0, 1, 2]);
    expect((await positionOf(pawl))?.rejected).toBe(2);
    // What it has done stays in the journal, refused or not.
    expect((await world.journal(run)).filter((line) => /^step.completed think/.test(line)).length).toBe(3);
  });

  it("S2-2 S2-5 E-11 after so many refusals the run fails, and its state is what it was", async () => {
    const { flow } = agents(["not sure", { outcome: "unsure" }, "never asked"], 2);
    const { run } = await begin(flow);
    expect(await errorOf(run.result())).toMatchObject({
      code: "illegal_transition",
      fields: { step: "think", rejected: 2 },
    });
    expect(await run.status()).toMatchObject({
      status: "failed",
      stopReason: "illegal_transition",
      data: { log: [], "pawl.machine": { step: "think", rejected: 2 } },
    });
  });

  it("S2-4 S2-5 an agent comes to a result, a refusal, an error or an escalation, and each leads elsewhere", async () => {
    const OUTCOMES = [
      [
        { outcome: "result", value: "v" },
        { status: "succeeded", stopReason: "completed" },
      ],
      [
        { outcome: "refusal", reason: "I will not" },
        { status: "failed", stopReason: "refused" },
      ],
      [
        { outcome: "error", reason: "busy" },
        { status: "running", state: "retrying" },
      ],
      [
        { outcome: "escalation", reason: "unclear" },
        { status: "waiting", waits: [{ kind: "approval" }] },
      ],
    ] as const;
    const { runs } = await beginAll(OUTCOMES.map(([outcome], i) => agents([outcome], undefined, `m${i}`).flow));
    for (const [i, [, status]] of OUTCOMES.entries()) expect(await runs[i]?.status()).toMatchObject(status);
  });

  it("S2-5 an agent that escalates in a branch does not become success: the run fails", async () => {
    const flow = machineOf("fork", (make) => ({
      fork: make.parallel({ branches: ["a", "b"], next: "end" }),
      a: make.agent({
        next: ["end"],
        run: () => ({ outcome: "escalation", reason: "unclear" }),
        decide: () => ({ transition: "continue", next: "end" }),
      }),
      b: make.step({ next: ["end"], run: () => ({ transition: "continue", next: "end" }) }),
      end: end(make),
    }));
    const { run } = await begin(flow);
    expect(await run.status()).toMatchObject({ status: "failed", stopReason: "escalated" });
  });

  it("S2-3 a run resumes without the conversation that led to it, and has nothing of it in its state", async () => {
    const conversation: string[] = [];
    const flow = machineOf("think", (make) => ({
      think: make.agent({
        next: ["ask"],
        run: () => {
          conversation.push("you are a clerk", "the secret thought");
          return { outcome: "result", value: "pay 5" };
        },
        decide: (_state, value) => ({ transition: "continue", next: "ask", patch: { log: [value] } }),
      }),
      ask: make.approval({ action: () => ({ tool: "t", arguments: 1 }), approvers: ["ann"], approved: "end" }),
      end: end(make),
    }));
    const { world } = await begin(flow);
    expect(conversation.splice(0).length).toBe(2);
    const pawl = await world.restart([flow]);
    expect(JSON.stringify((await pawl.get("r").status()).data)).not.toContain("thought");
    await decide(pawl, "approved", "ann");
    expect(await pawl.get("r").result()).toBe("pay 5");
    expect(conversation).toEqual([]);
  });
});
