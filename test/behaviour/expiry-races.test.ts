// Somebody answers in the very moment in which the time is over: the worker has looked and found nothing, and has not written that yet.
import { describe, expect, it } from "vitest";
import type { Decision } from "../../src/client/approvals.ts";
import type { ApproveOptions } from "../../src/core/approval.ts";
import type { Commit, Message, RunCommit } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, HOUR, openWorld, STORES, type World } from "./harness.ts";

const OPTIONS: ApproveOptions = {
  action: { tool: "refunds.issue", arguments: { cents: 4200 } },
  approvers: ["ann"],
  timeout: HOUR,
};
const SECRET = "a secret that has enough characters";

/** Does something once, between the look into the inbox and the commit that writes what followed from it. */
function beforeCommitOf(
  world: World,
  isIt: (entry: RunCommit["entries"][number]) => boolean,
  act: () => Promise<unknown>,
) {
  const { store } = world;
  const commit = store.commit.bind(store);
  const done = { value: null as unknown, count: 0 };
  Object.assign(store, {
    commit: async (given: Commit) => {
      if (done.count === 0 && given.runs.some(({ entries }) => entries.some(isIt))) {
        done.count++;
        done.value = await act();
      }
      return commit(given);
    },
  });
  return done;
}

/** By the store's clock, which has the last word, it is a moment earlier than the worker thinks. */
async function aMomentEarlier<T>({ clock }: World, act: () => Promise<T>): Promise<T> {
  const { now } = clock;
  Object.assign(clock, { now: () => now() - 1 });
  try {
    return await act();
  } finally {
    Object.assign(clock, { now });
  }
}

const isDecision = ({ type }: { readonly type: string }) => type === "approval.decided" || type === "run.cancelling";

describe.each(STORES)("what is acknowledged while something expires, on %s", (store) => {
  it.each<[string, Partial<ApproveOptions>, Decision["decision"]]>([
    ["an expiry", {}, "approved"],
    ["an expiry that cancels", { onExpired: "cancel" }, "approved"],
    ["a level that denies", { escalate: [{ after: HOUR, action: "deny" }] }, "approved"],
    ["a level that cancels", { escalate: [{ after: HOUR, action: "cancel" }] }, "approved"],
    [
      "a level that approves",
      { escalate: [{ after: HOUR, action: "approve" }], autoApprove: { maxRisk: "medium" }, onDenied: "branch" },
      "denied",
    ],
  ])(
    "I15 S4-37 P5 a vote that the store has taken before %s is written counts, as its sender was told",
    async (_name, more, decision) => {
      const world = await openWorld(store);
      const flow = workflow("asking", async (ctx) => {
        const { decision, by } = await ctx.approve("refund", { ...OPTIONS, onDenied: "branch", ...more });
        return { decision, by };
      });
      const client = await world.open();
      const pawl = await world.open([flow]);
      const run = await pawl.start(flow, undefined, { id: "r" });
      await world.settle();
      const [asked] = (await client.approvals.list()).approvals;
      const vote = beforeCommitOf(world, isDecision, () =>
        aMomentEarlier(world, () => client.approvals.decide(asked?.id ?? "", { decision, by: "ann" })),
      );
      await world.advance(HOUR);
      expect(vote).toMatchObject({ count: 1, value: { missing: 0, decision } });
      expect(await run.result()).toEqual({ decision, by: "ann" });
      expect((await world.journal(run)).filter((entry) => entry.startsWith("approval.decided"))).toHaveLength(1);
    },
  );

  it("I12 P5 other mail in that moment has it looked at again, and it expires all the same", async () => {
    const world = await openWorld(store);
    const flow = workflow("asking", async (ctx) => ctx.approve("refund", OPTIONS));
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    const signal = beforeCommitOf(world, isDecision, () => pawl.signal("r", "hello"));
    await world.advance(HOUR);
    expect(signal.count).toBe(1);
    expect(await errorOf(run.result())).toMatchObject({ code: "approval_expired" });
  });

  it("B50 P5 an answer that the store has taken before the end of its time is written counts, as its sender was told", async () => {
    const world = await openWorld(store);
    let token = "";
    const flow = workflow("paying", async (ctx) => {
      const reply = ctx.callback<string>("payment", { timeout: HOUR });
      await ctx.step("tell the bank", () => {
        token = reply.token;
      });
      return reply.value();
    });
    const pawl = await world.open([flow], { secret: SECRET });
    const run = await pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    const isEnd = ({ type }: { readonly type: string }) => type === "callback.ended";
    const answer = beforeCommitOf(world, isEnd, () => pawl.callbacks.answer(token, "paid"));
    await world.advance(HOUR);
    expect(answer).toMatchObject({ count: 1, value: { repeated: false } });
    expect(await run.result()).toBe("paid");
    expect((await world.journal(run)).filter((entry) => entry.startsWith("callback.ended"))).toHaveLength(1);
  });

  it.each(["denied", "approved"] as const)(
    "I15 whoever says %s after somebody else has decided and the run has ended, between their look and their message, is told who and what",
    async (decision) => {
      const world = await openWorld(store);
      const flow = workflow("asking", async (ctx) => {
        await ctx.approve("refund", { ...OPTIONS, approvers: ["ann", "bob"] });
        return "refunded";
      });
      const first = await world.open();
      const second = await world.open();
      const pawl = await world.open([flow]);
      const run = await pawl.start(flow, undefined, { id: "r" });
      await world.settle();
      const [asked] = (await first.approvals.list()).approvals;
      const id = asked?.id as string;
      const deliver = world.store.deliver.bind(world.store);
      let overtaken = 0;
      Object.assign(world.store, {
        deliver: async (message: Message) => {
          if (overtaken++ === 0) {
            await pawl.approvals.decide(id, { decision: "approved", by: "ann" });
            expect(await run.result()).toBe("refunded");
          }
          return deliver(message);
        },
      });
      const error = await errorOf(second.approvals.decide(id, { decision, by: "bob" }));
      expect(error).toMatchObject({
        code: "approval_decided",
        fields: { approval: id, by: "ann", decision: "approved" },
      });
      expect(error.message).toContain("ann");
      expect(overtaken).toBe(2);
    },
  );
});
