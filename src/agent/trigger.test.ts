import { describe, expect, it } from "vitest";
import { AddStep, SetupPlan, UpdateStep } from "./plan.ts";
import { eventType, type SessionEvent } from "./session-event.ts";
import { allOf, anyOf, checkpointTrigger, everyInterval, everyToolCalls, type TriggerFacts } from "./trigger.ts";

const Milestone = eventType<string>("MilestoneReached");
const Release = eventType<string>("ReleaseReached", { extends: Milestone });
const Unrelated = eventType("Unrelated");

function call(facts: Partial<TriggerFacts> = {}): TriggerFacts {
  return { tool: "t", params: {}, value: null, events: [], at: 0, checkpointAt: 0, toolCalls: 1, ...facts };
}

const having = (...events: SessionEvent[]) => call({ events });

describe("a checkpoint trigger", () => {
  it("S1-6 listens to updates of steps unless told otherwise, and cannot be changed", () => {
    const trigger = checkpointTrigger();
    expect(trigger.events).toEqual([UpdateStep]);
    expect(() => {
      // @ts-expect-error the set of types is fixed
      trigger.events.push(Milestone);
    }).toThrow(TypeError);
    expect(() => {
      // @ts-expect-error and so is the trigger
      trigger.events = [];
    }).toThrow(TypeError);
    expect(() => {
      // @ts-expect-error in all its parts
      trigger.matches = () => true;
    }).toThrow(TypeError);
    const given = [Milestone];
    const own = checkpointTrigger({ events: given });
    given.pop();
    expect(own.matches(having(Milestone("m")))).toBe(true);
  });

  it.each([
    ["a step that is done", UpdateStep({ id: 1, status: "done" }), true, true],
    ["a step in progress", UpdateStep({ id: 1, status: "in_progress" }), false, false],
    ["a step that is pending again", UpdateStep({ id: 1, status: "pending" }), false, false],
    ["a step with a new title", UpdateStep({ id: 1, title: "t" }), false, false],
    ["a plan", SetupPlan({ objective: "o", steps: [] }), false, true],
    ["more steps", AddStep({ steps: ["a"] }), false, true],
    ["something else", Unrelated(), false, false],
  ])("S1-7 S1-8 after %s", (_what, event, byDefault, widened) => {
    expect(checkpointTrigger().matches(having(event))).toBe(byDefault);
    const wide = checkpointTrigger({ events: [SetupPlan, AddStep, UpdateStep] });
    expect(wide.matches(having(event))).toBe(widened);
  });

  it("S1-8 widened, it takes three checkpoints of a plan that grows and has one step done", () => {
    const wide = checkpointTrigger({ events: [SetupPlan, AddStep, UpdateStep] });
    const script = [
      SetupPlan({ objective: "o", steps: ["a"] }),
      AddStep({ steps: ["b"] }),
      UpdateStep({ id: 1, status: "in_progress" }),
      UpdateStep({ id: 1, status: "done" }),
    ];
    expect(script.filter((event) => wide.matches(having(event)))).toHaveLength(3);
  });

  it("S1-9 S1-10 a milestone of one's own can be the only one, with those that extend it", () => {
    const trigger = checkpointTrigger({ events: [Milestone] });
    expect(trigger.matches(having(UpdateStep({ id: 1, status: "done" })))).toBe(false);
    expect(trigger.matches(having(Milestone("m")))).toBe(true);
    expect(trigger.matches(having(Release("r")))).toBe(true);
    expect(trigger.matches(having(JSON.parse(JSON.stringify(Release("recorded")))))).toBe(true);
  });

  it("S1-10 a step update of one's own type counts only when it is done", () => {
    const Reviewed = eventType<{ id: number; status?: string }>("StepReviewed", { extends: UpdateStep });
    const outcomes = ["done", "pending"].map((status) =>
      checkpointTrigger().matches(having(Reviewed({ id: 1, status }))),
    );
    expect(outcomes).toEqual([true, false]);
  });

  it("T-11 sees what was dispatched whatever the tool returns, and an event that it returns", () => {
    const done = UpdateStep({ id: 1, status: "done" });
    const trigger = checkpointTrigger();
    expect(trigger.matches(call({ events: [done], value: { objective: "the whole plan" } }))).toBe(true);
    expect(trigger.matches(call({ events: [Unrelated(), done] }))).toBe(true);
    expect(trigger.matches(call({ value: done }))).toBe(true);
    expect(trigger.matches(call({ value: UpdateStep({ id: 1, status: "pending" }) }))).toBe(false);
    expect(trigger.matches(call({ params: { id: 1, status: "done" }, value: { type: 3, payload: 1 } }))).toBe(false);
  });

  it("T-11 a trigger of one's own sees tool, parameters and value", () => {
    const deploys = { matches: ({ tool, params }: TriggerFacts) => tool === "deploy" && params === "live" };
    const trigger = anyOf(checkpointTrigger(), deploys);
    expect(trigger.matches(call({ tool: "deploy", params: "live" }))).toBe(true);
    expect(trigger.matches(call({ tool: "deploy", params: "test" }))).toBe(false);
  });
});

describe("other triggers", () => {
  it("X-7 by time: the interval since the last checkpoint", () => {
    const trigger = everyInterval("10s");
    const at = (now: number, checkpointAt: number) => trigger.matches(call({ at: now, checkpointAt }));
    expect([at(9_999, 0), at(10_000, 0), at(19_999, 10_000), at(20_000, 10_000)]).toEqual([false, true, false, true]);
    expect(() => everyInterval("soon")).toThrow("interval of a trigger");
  });

  it("X-7 by number: tool calls since the last checkpoint", () => {
    const trigger = everyToolCalls(3);
    expect([1, 2, 3, 4].map((toolCalls) => trigger.matches(call({ toolCalls })))).toEqual([false, false, true, true]);
    expect(() => everyToolCalls(0)).toThrow("at least 1");
  });

  it("X-7 any of them, all of them", () => {
    const [often, late] = [everyToolCalls(2), everyInterval(10)];
    const table = [
      [1, 0],
      [2, 0],
      [1, 10],
      [2, 10],
    ].map(([toolCalls = 0, at = 0]) => {
      const facts = call({ toolCalls, at });
      return [anyOf(often, late).matches(facts), allOf(often, late).matches(facts)];
    });
    expect(table).toEqual([
      [false, false],
      [true, false],
      [true, false],
      [true, true],
    ]);
    expect([anyOf().matches(call()), allOf().matches(call())]).toEqual([false, false]);
  });
});
