import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createProject, errorOf, hosted, pawl, removeProject } from "./fixtures/cli/command.ts";

const FLOWS = `
import { machine, workflow } from "pawl";

export const refund = machine(
  { name: "refund", state: (cents: number) => ({ cents, findings: [] as readonly string[] }), merge: { findings: "append" } },
  ({ step, effect, approval, parallel }) => ({
    start: "draft",
    steps: {
      draft: effect({ next: ["look"], idempotent: true, do: () => "drafted", undo: () => {}, decide: () => ({ transition: "continue", next: "look" }) }),
      look: parallel({ branches: ["policy", "history"], next: "weigh" }),
      policy: step({ next: ["weigh"], run: () => ({ transition: "continue", next: "weigh", patch: { findings: ["fits"] } }) }),
      history: step({ next: ["weigh"], can: ["retry"], run: () => ({ transition: "continue", next: "weigh", patch: { findings: ["none"] } }) }),
      weigh: step({
        next: ["ask", "issue"],
        run: ({ cents }) => (cents < 0 ? { transition: "fail", reason: "odd" } : { transition: "continue", next: cents > 100 ? "ask" : "issue" }),
      }),
      ask: approval({ action: ({ cents }) => ({ tool: "refund", arguments: cents }), approvers: ["ann"], approved: "issue", changes: "draft" }),
      issue: step({ can: ["complete"], run: ({ findings }) => ({ transition: "complete", output: findings.length }) }),
    },
  }),
);

export const plain = workflow("plain", async (ctx) => {
  await ctx.step("one", () => 1);
  await ctx.step('two "quoted" <b>', () => 2);
  await ctx.waitFor("go");
});
`;

const folder = createProject({ "flows.ts": FLOWS });
const graph = (...args: string[]) => hosted(folder, ["graph", "flows.ts", ...args]);
interface Drawn {
  readonly way: { readonly nodes: Record<string, string>; readonly edges: string[][] } | null;
  readonly graph: { readonly nodes: { readonly id: string; readonly label: string }[] };
}
const drawn = async (...args: string[]) => JSON.parse((await graph(...args, "--json")).stdout) as Drawn;
const edges = ({ way }: Drawn) => way?.edges.map(([from, to]) => `${from} > ${to}`);

beforeAll(async () => {
  const codes = [];
  for (const [name, id, input] of [
    ["refund", "small", "50"],
    ["refund", "large", "500"],
    ["refund", "odd", "-1"],
    ["plain", "plain", "null"],
  ] as const)
    codes.push((await hosted(folder, ["run", "flows.ts", name, "--id", id, "--no-wait", "--", input])).code);
  expect(codes).toEqual([0, 4, 1, 4]);
});
afterAll(() => removeProject(folder));

describe("pawl graph", () => {
  it("S2-11 draws a machine as Mermaid without a run and without a store", async () => {
    const { code, stdout } = await graph("refund");
    expect(code).toBe(0);
    expect(stdout.split("\n")).toEqual([
      "flowchart TD",
      '  n0[["draft"]]',
      '  n1[\\"look"\\]',
      '  n2["policy"]',
      '  n3["history<br/><small>retry</small>"]',
      '  n4["weigh"]',
      '  n5{{"ask"}}',
      '  n6["issue"]',
      '  n7(("completed"))',
      "  n0 --> n1",
      "  n1 --> n2",
      "  n1 --> n3",
      "  n2 --> n4",
      "  n3 --> n4",
      "  n4 --> n5",
      "  n4 --> n6",
      '  n5 -->|"approved"| n6',
      '  n5 -->|"changes"| n0',
      "  n6 --> n7",
      "",
    ]);
  });

  it("S2-40 shows the way of a run: what is done, where it is, which edges it took", async () => {
    const small = await drawn("refund", "small");
    expect(small.way?.nodes).toEqual({
      draft: "done",
      look: "done",
      policy: "done",
      history: "done",
      weigh: "done",
      issue: "done",
      "/complete": "done",
    });
    expect(edges(small)?.sort()).toEqual([
      "draft > look",
      "history > weigh",
      "issue > /complete",
      "look > history",
      "look > policy",
      "policy > weigh",
      "weigh > issue",
    ]);
    const large = await drawn("refund", "large");
    expect(large.way?.nodes).toMatchObject({ weigh: "done", ask: "current" });
    expect(large.way?.nodes["issue"]).toBe(undefined);
    const odd = await drawn("refund", "odd");
    expect(odd.way?.nodes).toMatchObject({ draft: "undone", weigh: "failed" });
    const { stdout } = await graph("refund", "large");
    expect(stdout).toContain("  n4 ==> n5");
    expect(stdout).toContain("  class n5 current");
  });

  it("writes SVG that names every step once, with the way of a run in it", async () => {
    expect(await graph("refund", "large", "--out", "run.svg")).toMatchObject({
      code: 0,
      stdout: "The graph is in run.svg.\n",
    });
    const svg = readFileSync(join(folder, "run.svg"), "utf8");
    expect(svg).toMatch(/^<svg xmlns=/);
    for (const label of ["draft", "look", "policy", "history", "weigh", "ask", "issue", "completed"])
      expect(svg.match(new RegExp(`>${label}</text>`, "g"))?.length, label).toBe(1);
    expect(svg).toContain("<title>ask: approval, current</title>");
    expect(svg.match(/<path [^>]*marker-end/g)?.length).toBe(10);
    expect((await graph("refund", "--format", "svg")).stdout).not.toContain("current");
  });

  it("draws what a run of a plain workflow has done, in order", async () => {
    const { graph: taken, way } = await drawn("plain", "plain");
    expect(taken.nodes.map(({ label }) => label)).toEqual(["one", 'two "quoted" <b>', "go"]);
    expect(Object.values(way?.nodes ?? {})).toEqual(["done", "done", "current"]);
    expect((await graph("plain", "plain")).stdout).toContain("two #quot;quoted#quot; #lt;b#gt;");
    expect((await graph("plain", "plain", "--format", "svg")).stdout).toContain("two &quot;quoted&quot; &lt;b&gt;");
  });

  it.each([
    [["nope"], 3, "unknown_workflow", /has no workflow "nope"/],
    [["plain"], 2, "invalid_argument", /Name a run/],
    [["refund", "plain"], 2, "invalid_argument", /one of workflow "plain"/],
    [["refund", "nothing"], 3, "run_not_found", /no run "nothing"/],
    [["refund", "--format", "png"], 2, "invalid_argument", /neither mermaid nor svg/],
    [["refund", "--out", "no/such/folder.svg"], 2, "invalid_argument", /cannot be written/],
  ])("refuses %j", async (args, code, error, message) => {
    const result = await graph(...args, "--json");
    expect({ code: result.code, error: errorOf(result).code }).toEqual({ code, error });
    expect(errorOf(result).message).toMatch(message);
    expect((await pawl(folder, "ls")).code).toBe(0);
  });
});
