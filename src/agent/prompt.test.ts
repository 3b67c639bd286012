import { describe, expect, it } from "vitest";
import { z } from "zod";
import { SectionOpened } from "./opened-sections.ts";
import { parseOutput } from "./output.ts";
import { plan, SetupPlan, UpdateStep } from "./plan.ts";
import { planningSection } from "./planning-section.ts";
import { progressSection, resultsSection } from "./progress-section.ts";
import { prompt } from "./prompt.ts";
import { render } from "./render.ts";
import { type Section, type SectionSpec, section } from "./section.ts";
import { Session } from "./session.ts";
import type { SessionEvent } from "./session-event.ts";
import { slice } from "./slice.ts";
import { parseSnapshot, snapshotText } from "./snapshot.ts";
import { type ToolInfo, type ToolResult, tool } from "./tool.ts";

const analyses = slice<{ path: string; summary: string; metrics: Record<string, number> }>("analyses");

const fresh = () => new Session({ id: "s", createdAt: 0, slices: [plan, analyses] });

/** A session as another process would go on with it. */
function restored(session: Session): Session {
  const next = fresh();
  next.restore(parseSnapshot(snapshotText(session.snapshot())));
  return next;
}

const look = (name: string, description = "Looks.") =>
  tool({ name, description, class: "read", input: z.object({}), run: () => "seen" });

function promptOf<P>(...sections: Section<P>[]) {
  return prompt({ namespace: "code", key: "review", sections });
}

const textOf = (spec: Omit<SectionSpec<unknown>, "title" | "key">, params: unknown = {}) =>
  render(promptOf(section({ title: "Task", key: "task", ...spec })).bind(params), fresh()).text;

const errorOf = (work: () => unknown): unknown => {
  try {
    work();
  } catch (error) {
    return error;
  }
  return null;
};

describe("rendering", () => {
  it("S1-32 S1-33 numbers the sections, with their titles, in order; bodies are texts or functions", () => {
    const review = promptOf<{ readonly path: string; readonly lines: number }>(
      section({ title: "Task", key: "task", body: "Review $path ($lines lines, $$3)." }),
      section({ title: "Style", key: "style", body: ({ lines }) => (lines > 100 ? "Be brief.\n" : "Be thorough.") }),
      section({ title: "Never", key: "never", body: "never", enabled: ({ lines }) => lines < 10 }),
      section({ title: "Tail", key: "tail", body: `See \${path}.` }),
    );
    expect(review).toMatchObject({ namespace: "code", key: "review", name: "code:review", version: "1.0.0" });
    expect(render(review.bind({ path: "a.ts", lines: 200 }), fresh()).text).toBe(
      ["## 1. Task", "Review a.ts (200 lines, $3).", "## 2. Style", "Be brief.", "## 3. Tail", "See a.ts.\n"].join(
        "\n\n",
      ),
    );
  });

  it.each<[body: string, params: object, text: string]>([
    ["$a-$b", { a: 1, b: true }, "1-true"],
    ["$a", { a: ["x"] }, '[\n  "x"\n]'],
    ["$a", { a: new Date(0) }, "1970-01-01T00:00:00.000Z"],
    [`costs $5, \${a}b`, { a: "x" }, "costs $5, xb"],
    ["$a", { a: `$b \${b} $$` }, `$b \${b} $$`],
    ["$a", { a: "" }, ""],
  ])("S1-33 %s is filled", (body, params, text) => {
    expect(textOf({ body }, params)).toBe(`## 1. Task\n\n${text}`.trimEnd().concat("\n"));
  });

  it.each<[what: string, params: unknown]>([
    ["missing", {}],
    ["undefined", { name: undefined }],
    ["null", { name: null }],
    ["inherited", Object.create({ name: "x" })],
    ["of no object", null],
  ])("S1-33 E-28 a parameter that is %s is an error that names it", (_what, params) => {
    expect(errorOf(() => textOf({ body: "Hello $name" }, params))).toMatchObject({
      code: "prompt_render",
      message: expect.stringContaining('in section "task", parameter "name" has no value.'),
      fields: { phase: "request", prompt: "code:review", section: "task", field: "name" },
    });
  });

  it.each<[field: string, spec: Partial<SectionSpec<unknown>>]>([
    ["body", { body: (params) => (params as { a: { b: string } }).a.b }],
    ["body", { body: () => 3 as unknown as string }],
    ["summary", { body: "", visibility: "summary", summary: (params) => (params as { a: { b: string } }).a.b }],
    ["enabled", { body: "", enabled: (params) => (params as { a: { b: boolean } }).a.b }],
  ])("E-28 a %s that fails is told with its section", (field, spec) => {
    expect(errorOf(() => textOf({ body: "", ...spec }))).toMatchObject({
      code: "prompt_render",
      fields: { phase: "request", section: "task", field },
    });
  });

  it("gives the tools of the sections that are shown, each once", () => {
    const [find, other] = [look("find"), look("other")];
    const review = promptOf(
      section({ title: "A", key: "a", body: "", tools: [find] }),
      section({ title: "B", key: "b", body: "", tools: [other], enabled: () => false }),
      section({ title: "C", key: "c", body: "", tools: [find] }),
    );
    expect(render(review.bind({}), fresh()).tools).toEqual([find]);
    const clash = promptOf(
      section({ title: "A", key: "a", body: "", tools: [find] }),
      section({ title: "B", key: "b", body: "", tools: [look("find")] }),
    );
    expect(errorOf(() => render(clash.bind({}), fresh()))).toMatchObject({
      code: "prompt_render",
      fields: { section: "b", field: "tools" },
    });
  });

  it("the hash follows the text and what is said of the tools", () => {
    const hashOf = (body: string, ...tools: ReturnType<typeof look>[]) =>
      render(promptOf(section({ title: "A", key: "a", body, tools })).bind({}), fresh()).hash;
    const hashes = [hashOf("x"), hashOf("y"), hashOf("x", look("a")), hashOf("x", look("a", "Looks well."))];
    expect(new Set(hashes).size).toBe(4);
    expect(hashOf("x", look("a"))).toBe(hashes[2]);
    expect(hashes[0]).toMatch(/^[0-9a-f]{64}$/);
  });

  it("definitions that cannot be are refused", () => {
    const body = "";
    expect(() => section({ title: "A", key: "a b", body })).toThrow("has a key that cannot be one");
    expect(() => section({ title: "A\nB", key: "a", body })).toThrow("needs a title of one line");
    expect(() => section({ title: "A", key: "a", body, visibility: "summary" })).toThrow(
      "shown as a summary and has none",
    );
    const [one, two] = [section({ title: "A", key: "a", body }), section({ title: "B", key: "a", body })];
    expect(() => promptOf(one, two)).toThrow('two sections with the key "a"');
    expect(() => promptOf()).toThrow("has no sections");
    expect(() => prompt({ namespace: "n", key: "k", version: "1", sections: [one] })).toThrow("not a version");
  });

  it("parameters are checked where a schema is given", () => {
    const review = prompt({
      namespace: "n",
      key: "k",
      params: z.object({ path: z.string().default("a.ts") }),
      sections: [section({ title: "Task", key: "task", body: "$path" })],
    });
    expect(render(review.bind({} as { path: string }), fresh()).text).toContain("a.ts");
    expect(errorOf(() => review.bind({ path: 3 as unknown as string }))).toMatchObject({ code: "schema_mismatch" });
  });
});

describe("visibility", () => {
  const manual = promptOf<{ readonly by: string }>(
    section({ title: "Task", key: "task", body: "Build it." }),
    section({ title: "Manual", key: "manual", body: "All of it, by $by.", visibility: "summary", summary: "By $by." }),
  );

  function open(session: Session, key: string): ToolResult {
    const { tools } = render(manual.bind({ by: "Ada" }), session);
    const dispatch = (event: SessionEvent) => session.dispatch(event);
    return tools[0]?.run({ key }, { session, dispatch } as unknown as ToolInfo) as ToolResult;
  }

  it("S1-34 a summary is shown with a hint how to open the section", () => {
    const { text, tools } = render(manual.bind({ by: "Ada" }), fresh());
    expect(text).toBe(
      '## 1. Task\n\nBuild it.\n\n## 2. Manual\n\nBy Ada.\n\n(Summary. Call `open_section` with key "manual" to read the whole section.)\n',
    );
    expect(tools.map(({ name, class: kind }) => [name, kind])).toEqual([["open_section", "read"]]);
    expect(tools[0]?.jsonSchema).toMatchObject({ properties: { key: { enum: ["manual"] } }, required: ["key"] });
  });

  it("S1-34 once opened it is shown in full, also after a restore", () => {
    const session = fresh();
    expect(open(session, "manual")).toEqual({ message: "All of it, by Ada." });
    for (const one of [session, restored(session)]) {
      const { text, tools } = render(manual.bind({ by: "Ada" }), one);
      expect([text, tools]).toEqual(["## 1. Task\n\nBuild it.\n\n## 2. Manual\n\nAll of it, by Ada.\n", []]);
    }
  });

  it("S1-34 a section that is none cannot be opened, and opening twice is once", () => {
    const session = fresh();
    const { slices } = session.snapshot();
    expect(open(session, "task")).toEqual({
      message: 'There is no section "task" to open. Sections: manual.',
      success: false,
    });
    expect(session.snapshot().slices).toEqual(slices);
    for (let n = 0; n < 2; n++) session.dispatch(SectionOpened({ key: "manual" }));
    expect(session.snapshot().slices.find((one) => one.slice === "opened_sections")?.items).toEqual(["manual"]);
  });
});

describe("progress", () => {
  const progressOf = (session: Session) => render(promptOf(progressSection()).bind({}), session).text;
  const files =
    "Files that you made earlier may be gone. Rely on what this prompt lists and on what tools look up, and make a file again if you need it.\n";

  it("S1-35 without a plan says that nothing is done, and to make one", () => {
    expect(progressOf(fresh())).toBe("## 1. Progress\n\nNothing is done yet. Begin by making a plan.\n");
    expect(progressOf(new Session({ id: "bare", createdAt: 0 }))).toBe(progressOf(fresh()));
  });

  it("S1-36 S1-56 shows what is done with check marks and the rest with its status", () => {
    const session = fresh();
    const seen = [
      SetupPlan({ objective: "Ship it", steps: ["Build", "Test", "Send"] }),
      UpdateStep({ id: 1, status: "done" }),
      UpdateStep({ id: 2, status: "in_progress" }),
      UpdateStep({ id: 2, status: "done" }),
      UpdateStep({ id: 3, status: "done" }),
    ].map((event) => {
      session.dispatch(event);
      return progressOf(session);
    });
    const head = "## 1. Progress\n\nObjective: Ship it\n\n";
    expect(seen[0]).toBe(`${head}Remaining:\n- 1. Build (pending)\n- 2. Test (pending)\n- 3. Send (pending)\n`);
    expect(seen[2]).toBe(
      `${head}Done:\n- ✓ 1. Build\n\nRemaining:\n- 2. Test (in_progress)\n- 3. Send (pending)\n\n${files}`,
    );
    expect(seen[4]).toBe(`${head}Done:\n- ✓ 1. Build\n- ✓ 2. Test\n- ✓ 3. Send\n\nEvery step is done.\n\n${files}`);
  });

  it("S1-3 S1-37 S1-2 after a restore only the sections of the session's state differ from a fresh prompt", () => {
    const review = promptOf<{ readonly path: string }>(
      section({ title: "Task", key: "task", body: "Review $path." }),
      progressSection(),
      planningSection({ strategy: "react" }),
    );
    const session = fresh();
    const before = render(review.bind({ path: "a.ts" }), session);
    session.dispatch(SetupPlan({ objective: "o", steps: ["a", "b"] }));
    session.dispatch(UpdateStep({ id: 1, status: "done" }));
    const after = render(review.bind({ path: "a.ts" }), restored(session));
    expect(after).toEqual(render(review.bind({ path: "a.ts" }), session));
    const partsOf = (text: string) => text.split(/^(?=## )/m);
    const differ = partsOf(after.text).filter((part, index) => part !== partsOf(before.text)[index]);
    expect(differ).toHaveLength(1);
    expect(differ[0]).toMatch(/^## 2\. Progress\n/);
    expect(after.tools).toEqual(before.tools);
    expect(progressSection).toHaveLength(0);
  });

  it("S1-55 S1-54 results that tools have left are listed after a restore", () => {
    const found = resultsSection({
      title: "Analyses",
      key: "analyses",
      slice: analyses,
      line: ({ path, summary, metrics }) => `${path}: ${summary} (coverage ${metrics["coverage"]})`,
    });
    const session = fresh();
    expect(render(promptOf(found).bind({}), session).text).toBe("## 1. Analyses\n\nNone yet.\n");
    session.add(analyses, { path: "a.ts", summary: "3 issues", metrics: { coverage: 0.85 } });
    expect(render(promptOf(found).bind({}), restored(session)).text).toBe(
      "## 1. Analyses\n\n- a.ts: 3 issues (coverage 0.85)\n",
    );
  });
});

describe("planning", () => {
  const rendered = (options?: Parameters<typeof planningSection>[0]) =>
    render(promptOf(planningSection(options)).bind({}), fresh());

  it("S1-40 each strategy has guidance of its own; the tools come with the section", () => {
    const strategies = ["react", "plan-act-reflect", "goal-decompose-route-synthesise"] as const;
    const texts = strategies.map((strategy) => rendered({ strategy, durable: false }).text);
    expect(texts.map((text) => [...text.matchAll(/^\d\. (\w+):/gm)].map((match) => match[1]))).toEqual([
      ["Reason", "Act", "Observe"],
      ["Plan", "Act", "Reflect"],
      ["Goal", "Decompose", "Route", "Synthesise"],
    ]);
    expect(rendered({ durable: false }).text).toBe(texts[1]);
    expect(rendered().tools.map(({ name }) => name)).toEqual([
      "planning_setup_plan",
      "planning_add_step",
      "planning_update_step",
      "planning_read_plan",
    ]);
  });

  it("S1-4 S1-43 S1-46 where progress is saved, planning is required, and good steps are described", () => {
    const { text } = rendered({ strategy: "react" });
    expect(text.slice(text.indexOf("### "))).toBe(
      [
        "### Planning is required\n",
        "For work of more than one step:\n",
        "- Begin with `planning_setup_plan`: it states the objective.",
        "- Break the work down into steps. A step found later is added with `planning_add_step`.",
        "- Set a step to `in_progress` when you begin it and to `done` when it is finished, with `planning_update_step`.",
        "- Progress is saved by itself whenever a step is done.",
        "- Work outside of the plan cannot be saved: after an interruption it is lost.\n",
        "A good step is\n",
        "- meaningful: worth saving once it is done,",
        "- resumable: the next step needs nothing of it but what tools have stored,",
        "- atomic: done or not done, never half.\n",
      ].join("\n"),
    );
    expect(rendered({ strategy: "react", durable: false }).text).not.toContain("Planning is required");
  });
});

describe("S1-38 typed output", () => {
  const output = z.object({ score: z.number().max(10) });
  const rated = prompt({
    namespace: "n",
    key: "k",
    output,
    sections: [section({ title: "Task", key: "t", body: "Rate." })],
  });

  it("S1-38 tells the model the schema", () => {
    const { text } = render(rated.bind({}), fresh());
    expect(text).toContain("## 2. Answer\n\nWhen everything is done, answer with one JSON value and nothing else.");
    expect(text).toContain('"score"');
    expect(render(promptOf(section({ title: "A", key: "a", body: "" })).bind({}), fresh()).text).not.toContain(
      "Answer",
    );
  });

  it.each([
    ["plain", '{"score":7}'],
    ["with spaces", ' \n{"score": 7}\n'],
    ["in a code block", 'Here it is:\n\n```json\n{"score":7}\n```\nDone.'],
    ["in the last of two", '```json\n{"score":1}\n```\nno:\n```\n{"score":7}\n```'],
  ])("S1-38 an answer %s is parsed", async (_what, text) => {
    expect(await parseOutput(rated.bind({}), text)).toEqual({ score: 7 });
  });

  it.each([
    ["no JSON", "seven", "it holds no JSON value."],
    ["nothing", "", "it holds no JSON value."],
    ["JSON that does not fit", '{"score":11}', "does not fit its schema: score: "],
  ])("S1-38 E-28 %s is a typed error", async (_what, text, message) => {
    await expect(parseOutput(rated.bind({}), text)).rejects.toMatchObject({
      code: "prompt_evaluation",
      message: expect.stringContaining(message),
      fields: { phase: "response", prompt: "n:k" },
    });
  });

  it("S1-38 without a schema the text is the answer", async () => {
    expect(await parseOutput(promptOf(section({ title: "A", key: "a", body: "" })).bind({}), "{}")).toBe("{}");
  });
});
