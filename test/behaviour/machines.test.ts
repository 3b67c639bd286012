// Machines: every transition that a step can return, in runs on every store. What the definition does not allow changes nothing.
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { jsonCodec } from "../../src/base/envelope.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import type { Run } from "../../src/client/run.ts";
import type { MachinePosition } from "../../src/core/machine-position.ts";
import { openEntry } from "../../src/core/values.ts";
import { machine } from "../../src/flows/machine.ts";
import type { AgentOutcome, Steps } from "../../src/flows/machine-step.ts";
import { DAY, errorOf, HOUR, MINUTE, openWorld, STORES, type World } from "./harness.ts";

interface State {
  readonly input: string;
  readonly n: number;
  readonly log: readonly string[];
  readonly got: unknown;
}

const OPTIONS = {
  name: "m",
  state: (input: string): State => ({ input, n: 0, log: [], got: null }),
  merge: { log: "append" as const },
  escalation: { approvers: ["boss"], timeout: "1 day" },
};

type Make = Steps<State>;
/** A machine of one step that counts, and what the steps in hand say. */
const machineOf = <M>(start: string, steps: (make: Make) => M, name = "m") =>
  machine({ ...OPTIONS, name }, ((make: Make) => ({ start, steps: steps(make) })) as never);

const end = ({ step }: Make) =>
  step({ can: ["complete"], run: (state) => ({ transition: "complete", output: state.log.join(" ") }) });
const bookings = (make: Make, done: string[]) => (name: string, next: string) =>
  make.effect({
    next: [next],
    idempotent: true,
    do: () => void done.push(name),
    undo: () => void done.push(`undo ${name}`),
    decide: () => ({ transition: "continue", next }),
  });

const positionOf = async (pawl: Pawl, run = "r") =>
  (await pawl.get(run).status()).data["pawl.machine"] as MachinePosition | undefined;
const notesOf = async (world: World, run = "r") =>
  (await world.store.journal(run))
    .filter(({ type }) => type === "note")
    .map((entry) => (openEntry(jsonCodec, run, entry).payload as { text: string }).text);
const decide = async (pawl: Pawl, decision: "approved" | "denied", by: string) => {
  const [open] = (await pawl.approvals.list({ run: "r" })).approvals;
  return pawl.approvals.decide(open?.id ?? "", { decision, by });
};

describe.each(STORES)("a machine on %s", (store) => {
  const begin = async (flow: ReturnType<typeof machineOf>, input = "go") => {
    const world = await openWorld(store);
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, input as never, { id: "r" });
    run.result().catch(() => {});
    await world.settle();
    return { world, pawl, run };
  };

  /** A run of each, in one world. */
  const beginAll = async (flows: readonly ReturnType<typeof machineOf>[]) => {
    const world = await openWorld(store);
    const pawl = await world.open(flows as never);
    const runs: Run[] = [];
    for (const flow of flows) runs.push(await pawl.start(flow, "go" as never, { id: flow.name }));
    for (const run of runs) run.result().catch(() => {});
    await world.settle();
    return { world, pawl, runs };
  };

  it("S2-14 S2-22 S2-26 S2-40 S2-42 S2-46 S2-71 goes through steps of every kind, and after each commit its current step is in the store", async () => {
    const flow = machineOf("draft", (make) => ({
      draft: make.effect({
        next: ["think"],
        idempotent: true,
        do: ({ input }) => `draft of ${input}`,
        decide: (_state, draft) => ({ transition: "continue", next: "think", patch: { log: [draft] } }),
      }),
      think: make.agent({
        next: ["judge"],
        run: () => ({ outcome: "result", value: "fine" }),
        decide: (_state, value) => ({ transition: "continue", next: "judge", patch: { log: [value] } }),
      }),
      judge: make.evaluator({
        next: ["ask"],
        run: ({ log }) => ({ transition: "continue", next: "ask", patch: { n: log.length } }),
      }),
      ask: make.approval({
        action: ({ n }) => ({ tool: "t", arguments: n }),
        approvers: ["ann"],
        approved: "end",
        patch: (_state, { by }) => ({ log: [`by ${by}`] }),
      }),
      end: end(make),
    }));
    const world = await openWorld(store);
    const pawl = await world.open([flow]);
    const commit = world.store.commit.bind(world.store);
    const seen: (string | undefined)[] = [];
    vi.spyOn(world.store, "commit").mockImplementation(async (batch) => {
      const verdicts = await commit(batch);
      if (batch.runs.some(({ entries }) => entries.length > 0)) seen.push((await positionOf(pawl))?.step);
      return verdicts;
    });
    // Named by an id, a run is there before it begins, and is at no step yet.
    const run = await pawl.start(flow, "x" as never, { id: "r" });
    await world.settle();
    expect(seen.shift()).toBe(undefined);
    expect(await run.status()).toMatchObject({
      status: "waiting",
      data: {
        n: 2,
        log: ["draft of x", "fine"],
        "pawl.machine": { step: "ask", completed: ["draft", "think", "judge"] },
      },
    });
    await decide(pawl, "approved", "ann");
    expect(await run.result()).toBe("draft of x fine by ann");
    expect([...new Set(seen)]).toEqual(["draft", "think", "judge", "ask", "end"]);
    expect((await positionOf(pawl))?.completed).toEqual(["draft", "think", "judge", "ask", "end"]);
  });

  it("S2-37 S2-39 the fields of a workflow's state are there while it waits, and its stop reason when it ends", async () => {
    const done: string[] = [];
    const flow = machineOf("draft", (make) => ({
      draft: bookings(make, done)("draft", "ask"),
      ask: make.approval({ action: () => ({ tool: "t", arguments: 1 }), approvers: ["ann"], approved: "end" }),
      end: end(make),
    }));
    const { pawl, run } = await begin(flow);
    const { id, traceId, status, stopReason, waits, data } = await run.status();
    expect({ id, traceId, status, stopReason }).toEqual({
      id: "r",
      traceId: expect.any(String),
      status: "waiting",
      stopReason: null,
    });
    expect(data["pawl.machine"]).toEqual({ step: "ask", completed: ["draft"], uses: { draft: 1 } });
    const [approval] = (await pawl.approvals.list({ run: "r" })).approvals;
    expect(waits).toMatchObject([{ kind: "approval", name: approval?.id }]);
    expect(await run.effects()).toMatchObject([
      { effect: "draft", status: "executed", key: expect.stringMatching(/./) },
    ]);
    await decide(pawl, "approved", "ann");
    await run.result();
    expect((await run.status()).stopReason).toBe("completed");
  });

  it("S2-23 S2-43 S2-53 wait_for_approval goes on to the step that asks, and keeps its patch over a restart", async () => {
    const flow = machineOf("one", (make) => ({
      one: make.step({
        next: ["ask"],
        can: ["wait_for_approval"],
        run: () => ({ transition: "wait_for_approval", approval: "ask", patch: { log: ["kept"] } }),
      }),
      ask: make.approval({ action: () => ({ tool: "t", arguments: 1 }), approvers: ["ann"], approved: "end" }),
      end: end(make),
    }));
    const { world } = await begin(flow);
    const pawl = await world.restart([flow]);
    expect((await pawl.get("r").status()).data).toMatchObject({ log: ["kept"], "pawl.machine": { step: "ask" } });
    await decide(pawl, "approved", "ann");
    expect(await pawl.get("r").result()).toBe("kept");
  });

  it("S2-53 C-14 an approval that is denied or expires leads where the definition says", async () => {
    const flow = machineOf("ask", (make) => {
      const say = (text: string) =>
        make.step({ can: ["complete"], run: () => ({ transition: "complete", output: text }) });
      return {
        ask: make.approval({
          action: () => ({ tool: "t", arguments: 1 }),
          approvers: ["ann"],
          timeout: "1h",
          approved: "yes",
          denied: "no",
          expired: "late",
        }),
        yes: say("yes"),
        no: say("no"),
        late: say("late"),
      };
    });
    const { world, pawl, run } = await begin(flow);
    const late = await pawl.start(flow, "x" as never, { id: "late" });
    await decide(pawl, "denied", "ann");
    expect(await run.result()).toBe("no");
    await world.advance(2 * HOUR);
    expect(await late.result()).toBe("late");
  });

  it("S2-29 S2-30 S2-53 without a way for it, a denial undoes and fails; a cancel while it waits cancels", async () => {
    const done: string[] = [];
    const flow = machineOf("draft", (make) => ({
      draft: bookings(make, done)("draft", "ask"),
      ask: make.approval({ action: () => ({ tool: "t", arguments: 1 }), approvers: ["ann"], approved: "end" }),
      end: end(make),
    }));
    const { world, pawl, run } = await begin(flow);
    await decide(pawl, "denied", "ann");
    expect(await errorOf(run.result())).toMatchObject({ code: "approval_denied" });
    expect(done).toEqual(["draft", "undo draft"]);
    const second = await pawl.start(flow, "x" as never, { id: "s" });
    await world.settle();
    await second.cancel();
    expect(await errorOf(second.result())).toMatchObject({ code: "cancelled" });
    expect((await positionOf(pawl, "s"))?.step).toBe("ask");
  });

  it("S2-16 S2-48 S2-53 escalate asks people; approved, the step runs again or the run goes on; denied, it fails", async () => {
    let tries = 0;
    const flow = machineOf("hard", (make) => ({
      hard: make.step({
        next: ["end"],
        can: ["escalate"],
        run: ({ input }) => {
          if (tries++ > 0) return { transition: "continue", next: "end", patch: { log: ["again"] } };
          const on = input === "on" ? ({ next: "end" } as const) : {};
          return { transition: "escalate", reason: "too hard", ...on, patch: { log: ["asked"] } };
        },
      }),
      end: end(make),
    }));
    const { world, pawl, run } = await begin(flow);
    expect((await pawl.approvals.list({ run: "r" })).approvals).toMatchObject([
      { kind: "escalation", approvers: ["boss"], action: { tool: "m.hard", arguments: { reason: "too hard" } } },
    ]);
    expect(await positionOf(pawl)).toMatchObject({ step: "hard", pending: { transition: "escalate" } });
    await decide(pawl, "approved", "boss");
    expect(await run.result()).toBe("asked again");
    tries = 0;
    const on = await pawl.start(flow, "on" as never, { id: "on" });
    await world.settle();
    const [question] = (await pawl.approvals.list({ run: "on" })).approvals;
    await pawl.approvals.decide(question?.id ?? "", { decision: "approved", by: "boss" });
    expect(await on.result()).toBe("asked");
    tries = 0;
    const no = await pawl.start(flow, "no" as never, { id: "no" });
    no.result().catch(() => {});
    await world.advance(2 * DAY);
    expect(await errorOf(no.result())).toMatchObject({ code: "approval_expired" });
  });

  it("S2-16 S2-48 wait goes on after a time, or with what a signal brings, or where nobody came", async () => {
    const flow = machineOf("one", (make) => ({
      one: make.step({
        next: ["two"],
        can: ["wait"],
        run: () => ({ transition: "wait", for: "1h", next: "two", patch: { log: ["slept"] } }),
      }),
      two: make.step({
        next: ["three", "late"],
        can: ["wait"],
        run: () => ({ transition: "wait", signal: "paid", into: "got", timeout: "1 day", next: "three", late: "late" }),
      }),
      three: make.step({
        can: ["complete"],
        run: ({ got, log }) => ({ transition: "complete", output: { got, log } }),
      }),
      late: make.step({ can: ["complete"], run: () => ({ transition: "complete", output: "late" }) }),
    }));
    const { world, pawl, run } = await begin(flow);
    const late = await pawl.start(flow, "x" as never, { id: "late" });
    expect(await run.status()).toMatchObject({ waits: [{ kind: "timer" }], data: { log: ["slept"] } });
    await world.advance(59 * MINUTE);
    expect((await positionOf(pawl))?.step).toBe("one");
    await world.advance(MINUTE);
    expect(await positionOf(pawl)).toMatchObject({ step: "two", completed: ["one"], pending: { signal: "paid" } });
    await run.signal("paid", { cents: 5 });
    expect(await run.result()).toEqual({ got: { cents: 5 }, log: ["slept"] });
    await world.advance(DAY);
    expect(await late.result()).toBe("late");
  });

  it("S2-16 S2-24 S2-31 S2-44 retry runs the step again, not before its delay, also after a restart, and as often as its budget allows", async () => {
    let runs = 0;
    let busy = 2;
    const flow = machineOf("busy", (make) => ({
      busy: make.step({
        next: ["end"],
        can: ["retry"],
        retry: 3,
        run: () =>
          runs++ < busy
            ? { transition: "retry", reason: "busy", delay: HOUR }
            : { transition: "continue", next: "end", patch: { log: ["free"] } },
      }),
      end: end(make),
    }));
    const { world } = await begin(flow);
    expect(runs).toBe(1);
    const second = await world.restart([flow]);
    await world.advance(59 * MINUTE);
    expect((await second.get("r").status()).state).toBe("retrying");
    expect(runs).toBe(1);
    await world.advance(MINUTE);
    expect(runs).toBe(2);
    await world.advance(HOUR);
    expect(await second.get("r").result()).toBe("free");
    [runs, busy] = [0, 9];
    const never = await second.start(flow, "x" as never, { id: "s" });
    never.result().catch(() => {});
    await world.advance(DAY);
    expect(await errorOf(never.result())).toMatchObject({ code: "max_retries_exceeded", cause: { message: "busy" } });
    expect(runs).toBe(4);
  });

  it("S2-16 S2-25 S2-32 S2-45 compensate undoes exactly one action, or that and the later ones, or all, the last first, and the run fails", async () => {
    const SCOPES = [
      [{ action: "b" }, ["undo b"]],
      [{ action: "b", later: true }, ["undo c", "undo b"]],
      [{}, ["undo c", "undo b", "undo a"]],
    ] as const;
    const done = SCOPES.map((): string[] => []);
    const flows = SCOPES.map(([scope], i) =>
      machineOf(
        "a",
        (make) => {
          const book = bookings(make, done[i]!);
          return {
            a: book("a", "b"),
            b: book("b", "c"),
            c: book("c", "stop"),
            stop: make.step({
              can: ["compensate"],
              run: () => ({ transition: "compensate", reason: "no room", ...scope }),
            }),
          };
        },
        `m${i}`,
      ),
    );
    const { runs } = await beginAll(flows);
    for (const [i, [, undone]] of SCOPES.entries()) {
      const run = runs[i]!;
      expect(await errorOf(run.result())).toMatchObject({
        code: "no_room",
        fields: { step: "stop", reason: "no room" },
      });
      expect(done[i]?.slice(3)).toEqual(undone);
      expect(await run.status()).toMatchObject({ state: "failed", stopReason: "no_room" });
      const left = (await run.effects()).filter(({ status }) => status === "executed").map(({ effect }) => effect);
      expect(left).toEqual(["a", "b", "c"].filter((name) => !(undone as readonly string[]).includes(`undo ${name}`)));
    }
  });

  it("S2-16 S2-30 S2-48 cancel ends the run as cancelled; what it did stays, unless it says otherwise", async () => {
    const done: string[] = [];
    const flow = machineOf("a", (make) => ({
      a: bookings(make, done)("a", "stop"),
      stop: make.step({
        can: ["cancel"],
        run: ({ input }) => ({ transition: "cancel", reason: "not needed", compensate: input === "undo" }),
      }),
    }));
    const { pawl, run } = await begin(flow);
    expect(await errorOf(run.result())).toMatchObject({ code: "cancelled", fields: { reason: "not needed" } });
    expect(await run.status()).toMatchObject({ status: "cancelled", stopReason: "cancelled" });
    expect(done).toEqual(["a"]);
    const second = await pawl.start(flow, "undo" as never, { id: "s" });
    expect(await errorOf(second.result())).toMatchObject({ code: "cancelled" });
    expect(done).toEqual(["a", "a", "undo a"]);
    expect((await second.status()).state).toBe("cancelled");
  });

  it("S2-16 S2-27 S2-47 fail: the reason becomes the stop reason, as a word", async () => {
    const reasons = ["no_stock", "Nothing left, sorry!", "?"];
    const flows = reasons.map((reason, i) =>
      machineOf("one", ({ step }) => ({ one: step({ run: () => ({ transition: "fail", reason }) }) }), `m${i}`),
    );
    const { runs } = await beginAll(flows);
    const stops = [];
    for (const run of runs) stops.push((await run.status()).stopReason);
    expect(stops).toEqual(["no_stock", "nothing_left_sorry", "failed"]);
    expect((await errorOf(runs[1]!.result())).message).toContain("Nothing left, sorry!");
  });

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

  const parallelOf = (patch: Partial<State>) =>
    machineOf("fork", (make) => {
      const branch = (log: string) =>
        make.step({
          next: ["end"],
          run: ({ n }) => ({ transition: "continue", next: "end", patch: { log: [`${log}${n}`], ...patch } }),
        });
      return {
        fork: make.parallel({ branches: ["a", "ask", "b"], next: "end" }),
        a: branch("a"),
        b: branch("b"),
        ask: make.approval({
          action: () => ({ tool: "t", arguments: 1 }),
          approvers: ["ann"],
          approved: "end",
          patch: () => ({ log: ["asked"] }),
        }),
        end: end(make),
      };
    });

  it("T-16 parallel steps lose nothing of each other: their patches are merged by the rules of the fields", async () => {
    const { world, run } = await begin(parallelOf({}));
    expect((await run.status()).data["pawl.machine"]).toEqual({ step: "fork", completed: [], uses: {} });
    const pawl = await world.restart([parallelOf({})]);
    await decide(pawl, "approved", "ann");
    expect(await pawl.get("r").result()).toBe("a0 asked b0");
    expect((await positionOf(pawl))?.completed).toEqual(["a", "ask", "b", "fork", "end"]);
  });

  it("T-16 parallel steps that change one field without a rule are in conflict, and nothing is lost silently", async () => {
    const { pawl, run } = await begin(parallelOf({ n: 1 }));
    await decide(pawl, "approved", "ann");
    expect(await errorOf(run.result())).toMatchObject({
      code: "patch_conflict",
      fields: { field: "n", steps: ["a", "b"] },
    });
    expect((await run.status()).data).toMatchObject({ n: 0, log: [] });
  });

  it("E-14 an effect that needs a step's approval does not begin without it, nor for another action", async () => {
    const done: string[] = [];
    const flow = machineOf("one", (make) => ({
      one: make.step({
        next: ["ask", "pay"],
        run: ({ input }) => ({ transition: "continue", next: input === "skip" ? "pay" : "ask" }),
      }),
      ask: make.approval({
        action: ({ n }) => ({ tool: "pay", arguments: n }),
        approvers: ["ann"],
        approved: "pay",
        patch: ({ input }) => ({ n: input === "change" ? 7 : 0 }),
      }),
      pay: make.effect({
        next: ["end"],
        needs: "ask",
        idempotent: true,
        do: () => void done.push("paid"),
        decide: () => ({ transition: "continue", next: "end" }),
      }),
      end: end(make),
    }));
    const { pawl, run } = await begin(flow);
    await decide(pawl, "approved", "ann");
    await run.result();
    expect(done).toEqual(["paid"]);
    const skipped = await pawl.start(flow, "skip" as never);
    expect(await errorOf(skipped.result())).toMatchObject({
      code: "approval_mismatch",
      fields: { reason: "not_approved" },
    });
    const changed = await pawl.start(flow, "change" as never, { id: "changed" });
    changed.result().catch(() => {});
    await vi.waitFor(async () => expect((await pawl.approvals.list({ run: "changed" })).approvals.length).toBe(1));
    const [open] = (await pawl.approvals.list({ run: "changed" })).approvals;
    await pawl.approvals.decide(open?.id ?? "", { decision: "approved", by: "ann" });
    expect(await errorOf(changed.result())).toMatchObject({
      code: "approval_mismatch",
      fields: { reason: "changed_action" },
    });
    expect(done).toEqual(["paid"]);
  });

  it("P10 C-23 S2-40 another generation goes on at the step in its state; what it does again has another key", async () => {
    const keys: string[] = [];
    const rests: string[] = [];
    const flow = machineOf("again", (make) => ({
      again: make.effect({
        next: ["rest"],
        idempotent: true,
        do: (_state, { key }) => void keys.push(key),
        decide: ({ n }) => ({ transition: "continue", next: "rest", patch: { n: n + 1 } }),
      }),
      rest: make.step({
        next: ["again", "end"],
        can: ["wait"],
        run: ({ n }, { key }) => {
          rests.push(key);
          return { transition: "wait", signal: "go", next: n < 3 ? "again" : "end", patch: { log: [`${n}`] } };
        },
      }),
      end: end(make),
    }));
    const { world, pawl, run } = await begin(flow);
    await run.signal("go");
    await world.settle();
    const { data } = await run.status();
    expect(data).toMatchObject({
      n: 2,
      "pawl.machine": { step: "rest", uses: { again: 2, rest: 2 }, pending: { signal: "go" } },
    });
    await pawl.rewrite("r", { cause: "edit", by: "ann", reason: "a typo", state: { ...data, input: "edited" } });
    await world.settle();
    // It waits where it waited, without its step being run again.
    expect(await run.status()).toMatchObject({
      waits: [{ kind: "signal" }],
      data: { log: ["1", "2"], input: "edited" },
    });
    await run.signal("go");
    await world.settle();
    await run.signal("go");
    expect(await run.result()).toBe("1 2 3");
    expect([new Set(keys).size, new Set(rests).size]).toEqual([3, 3]);
    expect((await run.effects()).map(({ effect }) => effect)).toEqual(["again", "again#2", "again.3"]);
  });

  it("S2-40 a machine whose state names a step that it does not have fails with the name of it", async () => {
    const flow = machineOf("ask", (make) => ({
      ask: make.approval({ action: () => ({ tool: "t", arguments: 1 }), approvers: ["ann"], approved: "end" }),
      end: end(make),
    }));
    const { pawl, run } = await begin(flow);
    const { data } = await run.status();
    const state = { ...data, "pawl.machine": { step: "gone" } };
    await pawl.rewrite("r", { cause: "edit", by: "ann", reason: "a test", state });
    expect(await errorOf(run.result())).toMatchObject({
      code: "illegal_transition",
      fields: { run: "r", step: "gone" },
    });
  });

  it("S2-40 a loop keeps its list of completed steps short, and counts its effects", async () => {
    const done: string[] = [];
    const flow = machineOf("again", (make) => ({
      again: make.effect({
        next: ["check"],
        idempotent: true,
        do: ({ n }) => void done.push(`do ${n}`),
        undo: () => void done.push("undo"),
        decide: ({ n }) => ({ transition: "continue", next: "check", patch: { n: n + 1 } }),
      }),
      check: make.step({
        next: ["again"],
        can: ["compensate"],
        run: ({ n }) =>
          n < 3
            ? { transition: "continue", next: "again" }
            : { transition: "compensate", reason: "enough", action: "again#2" },
      }),
    }));
    const { pawl, run } = await begin(flow);
    expect(await errorOf(run.result())).toMatchObject({ code: "enough" });
    expect(done).toEqual(["do 0", "do 1", "do 2", "undo"]);
    expect((await run.effects()).map(({ status }) => status)).toEqual(["executed", "compensated", "executed"]);
    expect((await positionOf(pawl))?.completed).toEqual(["again", "check"]);
  });
});
