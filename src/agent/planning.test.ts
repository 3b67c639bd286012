import { describe, expect, it } from "vitest";
import { AddStep, type Plan, plan, SetupPlan, UpdateStep } from "./plan.ts";
import { lintPlan } from "./plan-lint.ts";
import { planningTools } from "./planning-tools.ts";
import { Session } from "./session.ts";
import type { SessionEvent } from "./session-event.ts";
import type { ToolInfo, ToolResult } from "./tool.ts";

/** A session whose model calls planning tools. */
class Planner {
  readonly session = new Session({ id: "s", createdAt: 0, slices: [plan] });
  readonly events: SessionEvent[] = [];

  call(name: string, params: object = {}): ToolResult {
    const tool = planningTools.find((one) => one.name === `planning_${name}`)!;
    const dispatch = (event: SessionEvent) => {
      this.events.push(event);
      this.session.dispatch(event);
    };
    return tool.run(params, { session: this.session, dispatch } as unknown as ToolInfo) as ToolResult;
  }

  get plan(): Plan | null {
    return this.session.query(plan).latest();
  }

  get steps(): readonly string[] {
    return (this.plan?.steps ?? []).map(({ id, title, status }) => `${id} ${title} ${status}`);
  }
}

function planned(...steps: string[]): Planner {
  const planner = new Planner();
  planner.call("setup_plan", { objective: "Ship it", steps });
  return planner;
}

describe("planning tools", () => {
  it("S1-41 are four, with these names and parameters, and change nothing outside", () => {
    const manifest = planningTools.map((tool) => {
      const { properties, required } = tool.jsonSchema as { properties: object; required: string[] };
      return [tool.name, Object.keys(properties), required, tool.class];
    });
    expect(manifest).toEqual([
      ["planning_setup_plan", ["objective", "steps"], ["objective"], "read"],
      ["planning_add_step", ["steps"], ["steps"], "read"],
      ["planning_update_step", ["id", "status", "title"], ["id"], "read"],
      ["planning_read_plan", [], [], "read"],
    ]);
  });

  it("X-6 S1-42 set-up makes a plan with steps from 1, and takes the place of the one before", () => {
    const planner = planned("a", " b ");
    expect(planner.plan).toEqual({
      objective: "Ship it",
      status: "active",
      steps: [
        { id: 1, title: "a", status: "pending" },
        { id: 2, title: "b", status: "pending" },
      ],
    });
    planner.call("update_step", { id: 1, status: "done" });
    expect(planner.call("setup_plan", { objective: " New " })).toMatchObject({
      message: "The plan is set up with 0 steps.",
    });
    expect(planner.plan).toEqual({ objective: "New", status: "active", steps: [] });
    expect(planner.session.query(plan).all()).toHaveLength(1);
  });

  it("X-6 adding goes on with the numbers, and none is used again", () => {
    const planner = planned("a");
    planner.call("update_step", { id: 1, title: "renamed" });
    expect(planner.call("add_step", { steps: ["b", "c"] })).toMatchObject({ message: "Added 2 steps: 2, 3." });
    planner.call("add_step", { steps: ["d"] });
    expect(planner.steps).toEqual(["1 renamed pending", "2 b pending", "3 c pending", "4 d pending"]);
  });

  it("X-6 S1-42 an update changes status, title or both; the last one done completes the plan", () => {
    const planner = planned("a", "b");
    const said = [
      planner.call("update_step", { id: 1, status: "in_progress" }),
      planner.call("update_step", { id: 1, status: "done", title: " A " }),
      planner.call("update_step", { id: 2, title: "B" }),
      planner.call("update_step", { id: 2, status: "in_progress" }),
    ];
    expect(said.map(({ message }) => message)).toEqual([
      "Step 1 is in_progress. 0 of 2 done; next is 1. a (in_progress).",
      "Step 1 is done. 1 of 2 done; next is 2. b (pending).",
      'Step 2 is now called "B". 1 of 2 done; next is 2. B (pending).',
      "Step 2 is in_progress. 1 of 2 done; next is 2. B (in_progress).",
    ]);
    expect([planner.steps, planner.plan?.status]).toEqual([["1 A done", "2 B in_progress"], "active"]);
    expect(planner.call("update_step", { id: 2, status: "done" })).toEqual({
      message: "Step 2 is done. All steps are done: the plan is completed.",
      value: { id: 2, status: "done" },
    });
    expect(planner.plan?.status).toBe("completed");
  });

  it("X-6 reading shows the plan", () => {
    const planner = planned("a", "b");
    planner.call("update_step", { id: 1, status: "done" });
    expect(planner.call("read_plan").message).toBe(
      "Objective: Ship it\n\nDone:\n- ✓ 1. a\n\nRemaining:\n- 2. b (pending)",
    );
  });

  const long = "x".repeat(501);
  it.each<[what: string, tool: string, params: object, message: string]>([
    ["an empty title", "add_step", { steps: ["b", "  "] }, "`steps[1]` must be text, and not empty."],
    [
      "a title too long",
      "add_step",
      { steps: [long] },
      "`steps[0]` has 501 characters, more than 500. Say it shorter.",
    ],
    ["no steps", "add_step", { steps: [] }, "`steps` is empty. Give the title of at least one step."],
    ["steps that are no list", "add_step", { steps: "b" }, "`steps` must be a list of titles."],
    ["an empty objective", "setup_plan", { objective: " " }, "`objective` must be text, and not empty."],
    ["neither title nor status", "update_step", { id: 1 }, "Give `status`, `title`, or both."],
    ["an empty new title", "update_step", { id: 1, title: "" }, "`title` must be text, and not empty."],
    [
      "an unknown status",
      "update_step",
      { id: 1, status: "ok" },
      '`status` cannot be "ok". Use one of: pending, in_progress, done.',
    ],
    ["an unknown step", "update_step", { id: 2, status: "done" }, "There is no step 2. The plan has steps 1 to 1."],
  ])("X-6 %s is told to the model and changes nothing", (_what, tool, params, message) => {
    const planner = planned("a");
    const before = planner.plan;
    expect(planner.call(tool, params)).toEqual({ message, success: false });
    expect(planner.plan).toBe(before);
  });

  it("X-6 titles of 500 characters are fine", () => {
    expect(planned("x".repeat(500)).plan?.steps).toHaveLength(1);
  });

  it.each(["add_step", "update_step", "read_plan"])("X-6 without a plan, %s is refused", (tool) => {
    const planner = new Planner();
    expect(planner.call(tool, { id: 1, status: "done", steps: ["a"] })).toEqual({
      message: "There is no plan yet. Make one with planning_setup_plan.",
      success: false,
    });
    expect(planner.events).toEqual([]);
  });

  it.each(["add_step", "update_step"])("X-6 with a completed plan, %s is refused", (tool) => {
    const planner = planned("a");
    planner.call("update_step", { id: 1, status: "done" });
    expect(planner.call(tool, { id: 1, status: "pending", steps: ["b"] })).toEqual({
      message: "The plan is completed. For more work make a new one with planning_setup_plan.",
      success: false,
    });
    expect(planner.plan?.status).toBe("completed");
  });

  it("a session without the plan's slice is a mistake of the program", () => {
    const planner = new Planner();
    const bare = new Session({ id: "bare", createdAt: 0 });
    const info = { session: bare, dispatch: () => {} } as unknown as ToolInfo;
    expect(() => planningTools[0]?.run({ objective: "o" }, info)).toThrow('Session "bare" has no plan to work on.');
    expect(planner.plan).toBeNull();
  });
});

describe("S1-42 events reach the plan without tools, too", () => {
  it.each<[what: string, events: SessionEvent[], steps: string[]]>([
    ["no plan", [AddStep({ steps: ["a"] }), UpdateStep({ id: 1, status: "done" })], []],
    [
      "an unknown step",
      [SetupPlan({ objective: "o", steps: ["a"] }), UpdateStep({ id: 7, status: "done" })],
      ["1 a pending"],
    ],
    [
      "a completed plan",
      [
        SetupPlan({ objective: "o", steps: ["a"] }),
        UpdateStep({ id: 1, status: "done" }),
        AddStep({ steps: ["b"] }),
        UpdateStep({ id: 1, status: "pending" }),
      ],
      ["1 a done"],
    ],
    [
      "a step that is taken up again",
      [
        SetupPlan({ objective: "o", steps: ["a", "b"] }),
        UpdateStep({ id: 1, status: "done" }),
        UpdateStep({ id: 1, status: "pending" }),
      ],
      ["1 a pending", "2 b pending"],
    ],
  ])("S1-42 with %s", (_what, events, steps) => {
    const planner = new Planner();
    for (const event of events) planner.session.dispatch(event);
    expect(planner.steps).toEqual(steps);
  });
});

describe("S1-46 the use of steps", () => {
  it("S1-46 a step done twice, or before it was in progress, is reported", () => {
    const planner = planned("a", "b", "c");
    const said = [
      planner.call("update_step", { id: 1, status: "done" }).message,
      planner.call("update_step", { id: 1, status: "done" }).message,
    ];
    planner.call("update_step", { id: 2, status: "in_progress" });
    planner.call("update_step", { id: 2, status: "done" });
    planner.call("add_step", { steps: ["d"] });
    planner.call("update_step", { id: 4, status: "done" });
    const early = "was marked done without having been in progress. Set a step to in_progress when you begin it.";
    expect(lintPlan(planner.events)).toEqual([
      { rule: "done_before_in_progress", step: 1, message: `Step 1 ${early}` },
      { rule: "done_twice", step: 1, message: "Step 1 was marked done twice." },
      { rule: "done_before_in_progress", step: 4, message: `Step 4 ${early}` },
    ]);
    expect(said.map((message) => message.split("Note: ")[1])).toEqual([
      `Step 1 ${early}`,
      "Step 1 was marked done twice.",
    ]);
  });

  it("S1-46 a well used plan has no findings, and a new plan begins anew", () => {
    const planner = planned("a");
    planner.call("update_step", { id: 1, status: "in_progress" });
    planner.call("setup_plan", { objective: "o", steps: ["b"] });
    planner.call("update_step", { id: 1, title: "c" });
    expect(lintPlan(planner.events)).toEqual([]);
    planner.call("update_step", { id: 1, status: "done" });
    expect(lintPlan(planner.events)).toMatchObject([{ rule: "done_before_in_progress" }]);
  });
});
