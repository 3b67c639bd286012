import { describe, expect, it } from "vitest";
import { EventBus } from "./bus.ts";
import { observeCheckpoints } from "./checkpoint-observer.ts";
import { plan, SetupPlan, UpdateStep } from "./plan.ts";
import { Session } from "./session.ts";
import { ToolInvoked } from "./telemetry.ts";
import { checkpointTrigger, type TriggerFacts } from "./trigger.ts";

const newSession = (id: string) => new Session({ id, createdAt: 0, slices: [plan] });
const invoked = (
  session: Session,
  facts: Partial<{ value: unknown; events: never[]; success: boolean; at: number }> = {},
) => {
  const { value = "seen", events = [], success = true, at = 1 } = facts;
  const record = { message: "", value, success, events, trust: "untrusted" as const };
  return ToolInvoked({ session, tool: "look", callId: "c", params: {}, record, value, events, at, toolCalls: 1 });
};
const done = (id: number) => ({ events: [UpdateStep({ id, status: "done" })] as never[] });

describe("the checkpoint observer", () => {
  it("S1-25 does not ask its trigger about calls without a value, or that failed", async () => {
    const bus = new EventBus();
    const session = newSession("s");
    const asked: TriggerFacts[] = [];
    const saved: string[] = [];
    const trigger = { matches: (facts: TriggerFacts) => asked.push(facts) > 1 };
    const save = async (one: Session) => void saved.push(one.id);
    observeCheckpoints({ bus, session, trigger, since: 5, save });
    await bus.publish(invoked(session, { value: null }));
    await bus.publish(invoked(session, { success: false }));
    expect([asked.length, saved]).toEqual([0, []]);
    await bus.publish(invoked(session, { at: 7 }));
    await bus.publish(invoked(session, { at: 8 }));
    await bus.publish(invoked(session, { at: 9 }));
    expect(saved).toEqual(["s", "s"]);
    // Calls since the last checkpoint, and when that was.
    expect(asked.map(({ toolCalls, checkpointAt }) => [toolCalls, checkpointAt])).toEqual([
      [3, 5],
      [4, 5],
      [1, 8],
    ]);
  });

  it("S1-27 reacts to its own session alone, and to nothing once it is removed", async () => {
    const bus = new EventBus();
    const saved: string[] = [];
    for (const id of ["a", "b", "c"]) {
      const session = newSession(id);
      session.dispatch(SetupPlan({ objective: "o", steps: ["one"] }));
      const save = async (one: Session) => void saved.push(one.id);
      const remove = observeCheckpoints({ bus, session, trigger: checkpointTrigger(), since: 0, save });
      await bus.publish(invoked(session, done(1)));
      remove();
      await bus.publish(invoked(session, done(1)));
    }
    expect(saved).toEqual(["a", "b", "c"]);
  });

  it("S1-1 ten calls that only read and one step done make one checkpoint", async () => {
    const bus = new EventBus();
    const session = newSession("s");
    let saves = 0;
    observeCheckpoints({ bus, session, trigger: checkpointTrigger(), since: 0, save: async () => void saves++ });
    for (let n = 0; n < 10; n++) await bus.publish(invoked(session));
    await bus.publish(invoked(session, done(1)));
    expect(saves).toBe(1);
  });
});
