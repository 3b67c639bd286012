import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { SAMPLE } from "../../test/fixtures/sample-document.ts";
import type { Entry } from "./journal.ts";
import { nextOf } from "./next-of.ts";
import { BLOCKED, markKey, OUTLINE, type Outline } from "./outline.ts";
import { type DocumentRow, type StateDocument, stateDocument } from "./state-document.ts";
import { readStateDocument } from "./state-document-reader.ts";

const T0 = Date.UTC(2026, 5, 1, 2, 0, 0);
const SCHEMA = JSON.parse(
  readFileSync(new URL("../../docs/reference/state-document.schema.json", import.meta.url), "utf8"),
) as Schema;

const FILE = { file: "info.json", sha256: "a".repeat(64), bytes: 12, as: "json" };

const OUTLINED: Outline = {
  correlation: "jira_key",
  phases: [
    { name: "intake", output: "info.json" },
    { name: "work", steps: [{ name: "one" }, { name: "two" }, { name: "three" }] },
    { name: "close" },
  ],
};

const ROW: DocumentRow = {
  id: "r1",
  workflow: "bug",
  version: "1.3.0",
  state: "running",
  key: "AE-1",
  traceId: "t1",
  createdAt: T0,
  deadline: T0 + 1000,
  parent: null,
  cost: null,
};

type Given = readonly [Entry["type"], string | null, unknown];

function journal(...given: Given[]): Entry[] {
  const first: Given = ["run.started", null, { workflow: "bug", version: "1.3.0", input: { n: 1 }, seed: "r1" }];
  return [first, ...given].map(([type, key, payload], seq) => ({ seq, at: T0 + seq * 1000, type, key, payload }));
}

const outline: Given = ["state.patched", OUTLINE, { value: OUTLINED }];
const documentOf = (row: Partial<DocumentRow>, ...given: Given[]) =>
  stateDocument({ ...ROW, ...row }, journal(...given));

describe("the state document", () => {
  it("S0-3 S0-38 S0-54 S2-13 is there from the first entry, with version, key, start time and an empty phase map", () => {
    const document = documentOf({ state: "accepted" });
    expect(document).toMatchObject({
      workflow_id: "r1",
      workflow: "bug",
      workflow_version: "1.3.0",
      started_at: "2026-06-01T02:00:00.000+00:00",
      status: "pending",
      phase: null,
      phases: {},
      input: { n: 1 },
      trace_id: "t1",
    });
    expect(faultsOf(document)).toEqual([]);
    expect(readStateDocument(document).warnings).toEqual([]);
  });

  it("S0-5 S0-6 T-3 shows what has not begun from the outline, and what has in the words of its entries", () => {
    const document = documentOf(
      {},
      outline,
      ["step.started", "intake", null],
      ["step.completed", "intake", FILE],
      ["step.started", "work.one", null],
      ["step.completed", "work.one", 7],
      ["step.started", "work.two", null],
    );
    expect(document).toMatchObject({ jira_key: "AE-1", correlation_field: "jira_key", phase: "work", step_number: 2 });
    expect(document.phase_order).toEqual(["intake", "work", "close"]);
    expect(document.phases["intake"]).toEqual({
      status: "done",
      started_at: "2026-06-01T02:00:02.000+00:00",
      completed_at: "2026-06-01T02:00:03.000+00:00",
      attempts: 1,
      output_file: "info.json",
      output_hash: `sha256:${"a".repeat(64)}`,
      output_size: 12,
    });
    expect(document.phases["work"]).toMatchObject({ status: "in_progress", step: "two" });
    expect(statuses(document)).toEqual({ intake: "done", work: ["done", "in_progress", "pending"], close: "pending" });
    expect(document.phases["work"]?.steps?.["one"]).toMatchObject({ output: 7 });
    expect(document.phases["close"]).toEqual({ status: "pending" });
    expect(faultsOf(document)).toEqual([]);
  });

  it("S0-15 S0-20 shows a failed step with its error, and what a person may choose", () => {
    const block = {
      ticket: "1",
      reason: "phase_blocked",
      at: "work.one",
      error: "x",
      choices: ["retry", "skip", "abort"],
    };
    const given: Given[] = [
      outline,
      ["step.started", "work.one", null],
      ["step.failed", "work.one", { attempt: 1, error: new Error("x"), retryAt: null }],
      ["state.patched", BLOCKED, { value: block }],
      ["signal.awaited", "pawl.decision", { due: null }],
    ];
    const document = documentOf({ state: "waiting" }, ...given);
    expect(document.status).toBe("in_progress");
    expect(document.waiting_for).toEqual([{ kind: "decision", name: "phase_blocked", choices: block.choices }]);
    expect(document.phases["work"]).toMatchObject({ status: "failed", error: "x", step: "one" });
    const again = documentOf(
      { state: "running" },
      ...given,
      ["signal.received", "pawl.decision", { id: "1", payload: null }],
      ["step.started", "work.one#2", null],
    );
    expect(again.phases["work"]?.steps?.["one"]).toMatchObject({ status: "in_progress", attempts: 2 });
    expect(again.phases["work"]?.error).toBeUndefined();
    expect(again.state).toEqual({});
  });

  it("S4-19 what was skipped is done, with the reason, whoever has decided it", () => {
    const document = documentOf(
      {},
      outline,
      ["step.started", "intake:when", null],
      ["step.completed", "intake:when", false],
      ["step.started", "work.one:satisfied", null],
      ["step.completed", "work.one:satisfied", true],
      ["state.patched", markKey("work.two"), { value: { status: "done", skipped: "ann: not needed" } }],
    );
    expect(document.phases["intake"]).toMatchObject({ status: "done", skipped: "not on this run's way" });
    expect(document.phases["work"]?.steps).toMatchObject({
      one: { status: "done", skipped: "already satisfied" },
      two: { status: "done", skipped: "ann: not needed" },
      three: { status: "pending" },
    });
  });

  it("S0-18 a question about a phase is its beginning; a yes leaves it in progress", () => {
    const asked = documentOf({}, outline, ["step.started", "intake:when", null]);
    expect(asked.phases["intake"]).toMatchObject({ status: "in_progress" });
    const on = documentOf({}, outline, ["step.started", "intake:when", null], ["step.completed", "intake:when", true]);
    expect(on.phases["intake"]).toMatchObject({ status: "in_progress" });
  });

  it("S4-4 S4-5 S2-15 S4-23 holds state, outputs, effects, approvals, cost, pending timers and how far the journal is in it", () => {
    const request = { id: "a1", name: "gate", approvers: ["ann"], at: T0, expiresAt: T0 + 5000, onDenied: "branch" };
    const document = documentOf(
      { state: "waiting", cost: '{"usd":1}' },
      ["state.patched", "color", { value: "red" }],
      ["effect.planned", "mail", { attempt: 1, class: "write", key: "k", guard: "none", undo: false }],
      ["effect.executed", "mail", { id: 3 }],
      ["approval.requested", "gate", request],
      ["timer.set", "sleep", { due: T0 + 9000 }],
    );
    expect(document).toMatchObject({
      sequence: 6,
      schema_version: 1,
      state: { color: "red" },
      cost: { usd: 1 },
      effects: [{ effect: "mail", status: "executed", class: "write" }],
      approvals: [{ id: "a1", status: "requested", expires_at: "2026-06-01T02:00:05.000+00:00" }],
      waiting_for: [
        { kind: "approval", name: "gate" },
        { kind: "timer", name: "sleep", due: "2026-06-01T02:00:09.000+00:00" },
      ],
      phases: { run: { status: "in_progress", steps: { mail: { status: "done", output: { id: 3 } } } } },
    });
    expect(faultsOf(document)).toEqual([]);
  });

  it("S4-6 is a copy: what happens to it afterwards changes nothing", () => {
    const input = { list: [1] };
    const entries = journal(["state.patched", "s", { value: input }]);
    const document = stateDocument(ROW, entries);
    input.list.push(2);
    expect(document.state).toEqual({ s: { list: [1] } });
  });

  it("S4-22 ends with the result, or with the error and why it stopped", () => {
    const done = documentOf({}, ["run.succeeded", null, { ok: true }]);
    expect(done).toMatchObject({ status: "done", result: { ok: true }, stop_reason: "completed" });
    const failed = documentOf({}, ["run.failed", null, { error: new Error("no"), stopReason: "error" }]);
    expect(failed).toMatchObject({ status: "failed", error: "no", stop_reason: "error" });
    expect(documentOf({}, ["run.cancelled", null, { error: new Error("c"), stopReason: "cancelled" }])).toMatchObject({
      status: "failed",
      cancelled: true,
    });
  });

  it("S0-8 goes on from what was adopted, whatever its offset, and lets entries override it", () => {
    const adopted = { started_at: SAMPLE.started_at, phases: { intake: { ...SAMPLE.phases.phase_1, attempts: 9 } } };
    const [first, ...rest] = journal(outline);
    const entries = [{ ...first, payload: { ...(first?.payload as object), adopted } } as Entry, ...rest];
    const document = stateDocument(ROW, entries);
    expect(document.started_at).toBe("2026-06-01T02:00:00.000+00:00");
    expect(document.phases["intake"]).toEqual({
      status: "done",
      completed_at: "2026-06-01T02:02:30.000+00:00",
      output_file: "bug_info.json",
    });
    expect(document.phase).toBe("work");
  });
});

describe("reading a state document", () => {
  it("S0-8 S0-9 S0-10 takes the sample as it stands: any offset, an author's field, missing phases, pointers that are behind", () => {
    const { document, correlation, warnings } = readStateDocument(structuredClone(SAMPLE));
    expect(document.phases["phase_1"]?.status).toBe("done");
    expect(correlation).toEqual({ field: "jira_key", key: "AE-33995" });
    expect(warnings).toEqual([
      'phases.phase_4.step names "step_4_1", which is done, while "step_4_2" is in_progress. The statuses decide.',
    ]);
    expect(faultsOf(SAMPLE)).toEqual([]);
  });

  it("S0-3 E-3 names each mandatory field that is missing", () => {
    for (const field of ["workflow_id", "workflow_version", "started_at", "phases"]) {
      const { [field]: _gone, ...rest } = SAMPLE as Record<string, unknown>;
      expect(() => readStateDocument(rest)).toThrow(expect.objectContaining(invalidAt(field)));
      expect(faultsOf(rest)).toEqual([`${field} is missing`]);
    }
  });

  it.each([
    ["phases.phase_1.status", "finished"],
    ["phases.phase_1.status", undefined],
    ["phases.phase_4.steps.step_4_2.status", "skipped"],
    ["phases.phase_1.completed_at", "2026-06-01T10:00:00"],
    ["phases.phase_1.output_hash", "abc"],
    ["phases.phase_1.output_file", 7],
    ["phases.phase_4.steps", []],
    ["phases.phase_4.steps.step_4_1", "done"],
    ["phases.phase_1", null],
    ["started_at", "yesterday"],
    ["workflow_version", "1.3"],
    ["status", "running"],
    ["schema_version", 2],
    ["phase_order", "phase_1"],
    ["cancelled", false],
  ])("S0-7 E-3 refuses %s = %j, as the schema does", (path, value) => {
    const wrong = withValue(SAMPLE, path, value);
    expect(() => readStateDocument(wrong)).toThrow(expect.objectContaining(invalidAt(path)));
    expect(faultsOf(wrong)).not.toEqual([]);
  });

  it("S0-7 names the allowed words", () => {
    const wrong = withValue(SAMPLE, "phases.phase_1.status", "finished");
    expect(() => readStateDocument(wrong)).toThrow(
      'phases.phase_1.status of the state document is "finished". Give one of pending, in_progress, done, failed.',
    );
    expect(() => readStateDocument([])).toThrow("The state document is []. Give an object");
  });
});

describe("what now", () => {
  it("S0-9 S0-17 C-12 the first unfinished step by status, whatever the pointers and the order of keys", () => {
    const expected = {
      run: SAMPLE.workflow_id,
      action: "run",
      phase: "phase_4",
      step: "step_4_2",
      inputs: { phase_1: "bug_info.json", "phase_4.step_4_1": "candidate_a.json" },
      blocked: null,
    };
    expect(nextOf(SAMPLE)).toMatchObject(expected);
    const { phase_1, phase_4 } = SAMPLE.phases;
    const { step_4_1, step_4_2, step_4_3 } = phase_4.steps;
    const shuffled = {
      ...SAMPLE,
      phases: { phase_4: { ...phase_4, steps: { step_4_3, step_4_2, step_4_1 } }, phase_1 },
    };
    expect(nextOf(shuffled)).toEqual(nextOf(SAMPLE));
  });

  it("S0-15 T-1 T-2 a failed phase is what comes next, and nobody walks past it", () => {
    const document = {
      ...SAMPLE,
      phases: { third: { status: "pending" }, first: { status: "done" }, second: { status: "failed", error: "boom" } },
      phase_order: ["first", "second", "third"],
    };
    expect(nextOf(document)).toMatchObject({
      action: "decide",
      phase: "second",
      blocked: { at: "second", error: "boom", choices: ["retry", "skip", "abort"] },
    });
  });

  it("S0-17 waits are told, and an end has no next", () => {
    const waiting_for = [{ kind: "timer", name: "sleep" }];
    expect(nextOf({ ...SAMPLE, status: "in_progress", waiting_for })).toMatchObject({ action: "wait", waiting_for });
    expect(nextOf({ ...SAMPLE, status: "failed" }).action).toBe("nothing");
    expect(nextOf({ ...SAMPLE, phases: { a: { status: "done" } } }).action).toBe("nothing");
  });
});

function statuses(document: StateDocument): unknown {
  return Object.fromEntries(
    Object.entries(document.phases).map(([name, { status, steps }]) => [
      name,
      steps === undefined ? status : Object.values(steps).map((step) => step.status),
    ]),
  );
}

function invalidAt(path: string) {
  return { code: "invalid_state_document", fields: expect.objectContaining({ path }) };
}

function withValue(document: object, path: string, value: unknown): unknown {
  const copy = structuredClone(document) as Record<string, unknown>;
  const names = path.split(".");
  const last = names.pop() as string;
  let place = copy;
  for (const name of names) place = place[name] as Record<string, unknown>;
  place[last] = value;
  return JSON.parse(JSON.stringify(copy));
}

interface Schema {
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly pattern?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly items?: Schema;
}

/** As much of JSON Schema as the published one needs. */
function faultsOf(value: unknown, schema: Schema = SCHEMA, path = ""): string[] {
  if (schema.$ref !== undefined) return faultsOf(value, SCHEMA.$defs?.[schema.$ref.slice("#/$defs/".length)], path);
  const fault = (is: boolean, what: string) => (is ? [] : [`${path} ${what}`]);
  const types = schema.type === undefined ? null : [schema.type].flat();
  const isTyped =
    types === null || types.includes(typeOf(value)) || (types.includes("number") && typeof value === "number");
  if (!isTyped) return [`${path} is ${typeOf(value)}`];
  const record = typeOf(value) === "object" ? (value as Record<string, unknown>) : {};
  const inner = (name: string) => schema.properties?.[name] ?? schema.additionalProperties;
  return [
    ...fault(schema.enum?.includes(value) ?? true, "is not allowed"),
    ...fault(schema.const === undefined || schema.const === value, "is another value"),
    ...fault(typeof value !== "string" || new RegExp(schema.pattern ?? "").test(value), "has another form"),
    ...(schema.required ?? [])
      .filter((name) => record[name] === undefined)
      .map((name) => `${join(path, name)} is missing`),
    ...Object.keys(record).flatMap((name) => {
      const one = inner(name);
      return one === undefined ? [] : faultsOf(record[name], one, join(path, name));
    }),
    ...(Array.isArray(value) && schema.items !== undefined
      ? value.flatMap((one) => faultsOf(one, schema.items, path))
      : []),
  ];
}

function join(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}
