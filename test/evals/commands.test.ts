import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { begin, pawl as command, hosted, project, type Result } from "../fixtures/cli/command.ts";

/** A shop whose discount is wrong for orders without a coupon. */
const BUGGY = `
import { workflow } from "pawl";

export const sale = workflow({ name: "sale", retry: false }, async (ctx, order) => {
  const prices = await ctx.step("prices", () => ({ cents: 500, mail: "ada@example.org" }));
  const { percent } = await ctx.step("coupon", () => order.coupon === undefined ? { percent: null } : { percent: 10 });
  if (percent === null) throw new TypeError("percent of coupon is null");
  await ctx.effect("charge", { idempotent: true, do: () => { throw new Error("no bank here"); }, dry: { value: { ok: true } } });
  return { cents: prices.cents - prices.cents * percent / 100 };
});
`;
const FIXED = BUGGY.replace('if (percent === null) throw new TypeError("percent of coupon is null");', "").replace(
  "* percent / 100",
  "* (percent ?? 0) / 100",
);

/** The files that these load stay as they are, so that they can share a process. */
const SHARING = new Set(["diff", "eval", "incident", "replay", "run"]);

function pawl(folder: string, ...args: string[]): Promise<Result> {
  return SHARING.has(args[0] ?? "") ? hosted(folder, args) : command(folder, ...args);
}

async function json<T>(folder: string, ...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await pawl(folder, ...args, "--json");
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout) as T;
}

interface EvalAnswer {
  readonly ok: boolean;
  readonly failed: number;
  readonly results: readonly {
    readonly case_id: string;
    readonly broken: readonly { readonly expectation: string }[];
  }[];
}

/** A command in a process of its own, as in a pipeline. */
async function real(folder: string, ...args: string[]) {
  return begin(folder, args).ended;
}

it("D-13 S2-113 S2-86 a stored run becomes a redacted case that fails on the bug and passes after the fix", async () => {
  const folder = project({ "sale.mjs": BUGGY });
  mkdirSync(join(folder, "evals"));
  expect((await pawl(folder, "run", "sale.mjs", "sale", "{}", "--id", "s-1")).code).toBe(1);
  const made = await pawl(folder, "export", "s-1", "--eval", "--owner", "ann", "--out", "evals/no_coupon.json");
  expect(made.code).toBe(0);
  const text = readFileSync(join(folder, "evals/no_coupon.json"), "utf8");
  expect(text).toContain("percent of coupon is null");
  expect(text).not.toContain("ada@example.org");
  expect(JSON.parse(text)).toMatchObject({ workflow: "sale", owner: "ann", status: "draft", source: { run: "s-1" } });

  const before = await real(folder, "eval", "run", "--workflows", "sale.mjs");
  expect(before.code).toBe(1);
  expect(before.stdout).toContain("must_not_end_as: The run has ended just so: failed");
  expect(before.stdout).toContain("0 cases held, 1 did not.");
  writeFileSync(join(folder, "sale.mjs"), FIXED);
  const after = await real(folder, "eval", "run", "--workflows", "sale.mjs", "--json");
  expect(after.code).toBe(0);
  expect(JSON.parse(after.stdout)).toMatchObject({
    ok: true,
    cases: 1,
    failed: 0,
    results: [{ status: ["succeeded"] }],
  });
  writeFileSync(join(folder, "sale.mjs"), BUGGY);
}, 60_000);

it("X-30 S2-94 S2-105 an incident links a case, has an owner and an expiry, and holds the release until its case holds", async () => {
  const folder = project({ "sale.mjs": BUGGY });
  for (const id of ["s-1", "s-2"]) await pawl(folder, "run", "sale.mjs", "sale", "{}", "--id", id);
  const opened = await json<{ id: string; case: string }>(folder, "incident", "open", "s-1", "--title", "no coupon");
  expect(opened).toMatchObject({ id: "incident-1", run: "s-1", status: "draft", recurrenceOf: null, owner: null });
  expect(readFileSync(join(folder, "evals", opened.case), "utf8")).toContain('"run": "s-1"');
  // Asked again, it is the same incident; the second run of its kind is a recurrence.
  expect((await json<{ id: string }>(folder, "incident", "open", "s-1")).id).toBe("incident-1");
  expect(await json(folder, "incident", "open", "s-2")).toMatchObject({ id: "incident-2", recurrenceOf: "incident-1" });
  expect(await json(folder, "incident", "list")).toMatchObject({ recurrence: { recurred: 1, of: 2 }, withoutCase: [] });

  const gate = () => pawl(folder, "incident", "gate", "--workflows", "sale.mjs");
  expect((await gate()).code).toBe(0);
  await pawl(folder, "incident", "set", "incident-2", "--status", "retired");
  await pawl(folder, "incident", "set", "incident-1", "--status", "active");
  const held = await gate();
  expect(held.code).toBe(1);
  expect(held.stdout).toContain("incident-1: it has no owner.");
  expect(held.stdout).toContain("does not hold: must_not_end_as.");
  await pawl(folder, "incident", "set", "incident-1", "--owner", "ann", "--expires", "2020-01-01");
  writeFileSync(join(folder, "fixed.mjs"), FIXED);
  const expired = await pawl(folder, "incident", "gate", "--workflows", "fixed.mjs");
  expect(expired).toMatchObject({ code: 1, stdout: expect.stringContaining("it has expired on 2020-01-01") });
  await pawl(folder, "incident", "set", "incident-1", "--expires", "2999-01-01");
  const free = await pawl(folder, "incident", "gate", "--workflows", "fixed.mjs");
  expect(free).toMatchObject({ code: 0, stdout: expect.stringContaining("the release may go.") });
});

it("X-30 incidents that are opened at the same time have ids of their own, and no case takes the place of another", async () => {
  const folder = project({ "sale.mjs": BUGGY });
  const runs = ["s-1", "s-2", "s-3"];
  for (const id of runs) await pawl(folder, "run", "sale.mjs", "sale", "{}", "--id", id);
  const answers = await Promise.all(runs.map((id) => real(folder, "incident", "open", id, "--json")));
  const opened = answers.map(({ stdout }) => JSON.parse(stdout) as { id: string; run: string; case: string });
  expect(opened.map(({ id }) => id).toSorted()).toEqual(["incident-1", "incident-2", "incident-3"]);
  const list = () => json<{ incidents: { id: string; run: string }[] }>(folder, "incident", "list");
  expect((await list()).incidents.map(({ run }) => run).toSorted()).toEqual(runs);

  // Somebody has taken one away, and made its case better by hand.
  const [first] = opened.filter(({ id }) => id === "incident-1");
  const file = join(folder, "evals", "incidents.json");
  const { incidents } = await list();
  writeFileSync(file, JSON.stringify({ incidents: incidents.filter(({ id }) => id !== "incident-1") }));
  writeFileSync(join(folder, "evals", first?.case ?? ""), "by hand");
  const again = await json<{ id: string; case: string }>(folder, "incident", "open", first?.run ?? "");
  expect([again.id, again.case]).toEqual(["incident-4", first?.case.replace(".json", "-2.json")]);
  expect(readFileSync(join(folder, "evals", first?.case ?? ""), "utf8")).toBe("by hand");
  expect(JSON.parse(readFileSync(join(folder, "evals", again.case), "utf8")).case_id).toBe(again.case.slice(0, -5));
}, 60_000);

it("X-25 S2-65 the four kinds of replay: trace, recorded, sandbox, counterfactual; a packet is read as an export is", async () => {
  const folder = project({ "sale.mjs": FIXED.replace('throw new Error("no bank here");', "return { ok: true };") });
  await pawl(folder, "run", "sale.mjs", "sale", '{"coupon":"x"}', "--id", "s-1");
  expect((await pawl(folder, "export", "s-1", "--packet", "--out", "s-1.json")).code).toBe(0);
  expect(JSON.parse(readFileSync(join(folder, "s-1.json"), "utf8"))).toMatchObject({
    format: "pawl-replay-packet",
    root: "s-1",
    effects: [{ effect: "charge", status: "executed" }],
  });
  // Nobody may call the bank again.
  writeFileSync(join(folder, "broken.mjs"), FIXED);
  const trace = await pawl(folder, "replay", "s-1.json", "--kind", "trace");
  expect(trace.stdout).toMatch(/effect "charge" {2}open: effect "charge"/);
  expect((await pawl(folder, "replay", "s-1.json", "broken.mjs")).code).toBe(0);
  const sandbox = await pawl(folder, "replay", "s-1.json", "broken.mjs", "--kind", "sandbox");
  expect(sandbox).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("Run s-1 takes the same way again: succeeded."),
  });
  const args = ["replay", "s-1.json", "broken.mjs", "--kind", "counterfactual", "--answer", 'coupon={"percent":50}'];
  const other = await pawl(folder, ...args);
  expect(other.stdout).toContain('The ways part at step "coupon"; it was succeeded, and is succeeded now.');
  expect(other.stdout).toContain('Outcome: succeeded {"cents":450}, succeeded {"cents":250}.');
  const misspelt = await pawl(folder, ...args.slice(0, -1), 'coupn={"percent":50}');
  expect(misspelt.stdout).toContain(
    'takes the same way again: succeeded. No call has asked for the answer to "coupn".',
  );
  const changed = BUGGY.replace('ctx.effect("charge"', 'ctx.effect("bill"');
  writeFileSync(join(folder, "other.mjs"), changed);
  const code = await pawl(folder, "replay", "s-1.json", "other.mjs", "--kind", "counterfactual", "--json");
  expect(JSON.parse(code.stdout)).toMatchObject({ diff: { first: { kind: "effect", key: "bill", a: null } } });
  expect((await pawl(folder, "replay", "s-1.json", "other.mjs", "--kind", "wild")).code).toBe(2);
});

it("X-25 pawl fork --effects and pawl diff: side by side, the first difference, effects, outcome", async () => {
  const folder = project({ "sale.mjs": FIXED.replace('throw new Error("no bank here");', "return { ok: false };") });
  await pawl(folder, "run", "sale.mjs", "sale", '{"coupon":"x"}', "--id", "s-1");
  await pawl(folder, "run", "sale.mjs", "sale", "{}", "--id", "s-2");
  const same = await pawl(folder, "diff", "s-1", "s-1");
  expect(same).toMatchObject({ code: 0, stdout: expect.stringContaining("They are the same.") });
  const two = await pawl(folder, "diff", "s-1", "s-2");
  expect(two.code).toBe(1);
  expect(two.stdout).toContain('First difference: step "coupon".');
  expect(two.stdout).toContain("Their inputs differ.");
  const { run } = await json<{ run: string }>(folder, "fork", "s-1", "--at", "charge", "--effects", "dry-run");
  await pawl(folder, "run", "sale.mjs", "sale", "--id", run);
  const { code, stdout } = await pawl(folder, "diff", "s-1", run, "--json");
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({
    first: null,
    sameOutcome: true,
    effects: [{ effect: "charge", a: "executed", b: "executed (dry)" }],
  });
  expect((await pawl(folder, "effects", run)).stdout).toContain("executed (dry)");
});

it("S2-86 pawl eval run: one, all, families; a case that cannot be read is bad usage", async () => {
  const folder = project({ "sale.mjs": FIXED });
  mkdirSync(join(folder, "evals"));
  const tools = { prices: { cents: 500 }, coupon: { percent: 10 }, charge: { ok: true } };
  const one = {
    case_id: "sold",
    input: {},
    events: [],
    tools,
    expected: { final_status: "succeeded", output: { cents: 450 } },
  };
  writeFileSync(join(folder, "evals/sold.json"), JSON.stringify(one));
  writeFileSync(
    join(folder, "evals/wrong.json"),
    JSON.stringify({ ...one, case_id: "wrong", expected: { must_not_charge_sale: true } }),
  );
  const single = await pawl(folder, "eval", "run", "evals/sold.json", "--workflows", "sale.mjs");
  expect(single).toMatchObject({ code: 0, stdout: expect.stringContaining("held  sold  succeeded") });
  const all = await pawl(folder, "eval", "run", "--workflows", "sale.mjs", "--json");
  expect(all.code).toBe(1);
  const answer = JSON.parse(all.stdout) as EvalAnswer;
  expect(answer).toMatchObject({ ok: false, failed: 1 });
  expect(answer.results[1]?.broken.map(({ expectation }) => expectation)).toEqual(["must_not_charge_sale"]);
  const families = await pawl(folder, "eval", "run", "evals/sold.json", "--workflows", "sale.mjs", "--families");
  expect(families).toMatchObject({ code: 0, stdout: expect.stringContaining("sold/restart/in charge") });
  writeFileSync(
    join(folder, "evals/odd.json"),
    JSON.stringify({ ...one, case_id: "odd", expected: { final_status: "fine" } }),
  );
  const odd = await pawl(folder, "eval", "run", "--workflows", "sale.mjs");
  expect(odd.code).toBe(2);
  expect(odd.stderr).toContain('odd.json: expected.final_status is "fine"');
  expect((await pawl(folder, "eval", "run", "evals/sold.json")).code).toBe(2);
});
