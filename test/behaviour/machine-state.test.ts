// Machines: how patches of parallel steps meet, and what a run goes on from.
import { describe, expect, it, vi } from "vitest";
import { errorOf, STORES } from "./harness.ts";
import { begin as beginOne, decide, end, machineOf, positionOf, type State } from "./machine-runs.ts";

describe.each(STORES)("a machine on %s", (store) => {
  const begin = (flow: ReturnType<typeof machineOf>, input?: string) => beginOne(store, flow, input);

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
