// Machines: every transition that a step can return, in runs on every store.
import { describe, expect, it, vi } from "vitest";
import { DAY, errorOf, HOUR, MINUTE, openWorld, STORES } from "./harness.ts";
import {
  beginAll as beginEach,
  begin as beginOne,
  bookings,
  decide,
  end,
  machineOf,
  positionOf,
} from "./machine-runs.ts";

describe.each(STORES)("a machine on %s", (store) => {
  const begin = (flow: ReturnType<typeof machineOf>, input?: string) => beginOne(store, flow, input);
  const beginAll = (flows: readonly ReturnType<typeof machineOf>[]) => beginEach(store, flows);

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
});
