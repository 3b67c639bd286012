// Tools of a real MCP server, as durable tools of an agent.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { expect, it, onTestFinished } from "vitest";
import { agent } from "../../src/agent/agent.ts";
import { type McpClient, type McpResult, mcpTools } from "../../src/agent/mcp-tools.ts";
import { prompt } from "../../src/agent/prompt.ts";
import { callTools, say, scriptedModel } from "../../src/agent/scripted-model.ts";
import { section } from "../../src/agent/section.ts";
import { testEngine } from "../../src/testing/test-engine.ts";
import { errorOf } from "./harness.ts";

const SERVER = fileURLToPath(new URL("../fixtures/mcp/library.mjs", import.meta.url));
const task = prompt({
  namespace: "test",
  key: "task",
  sections: [section<{ request: string }>({ title: "Task", key: "task", body: "Do this: $request" })],
});

async function library() {
  const folder = mkdtempSync(join(tmpdir(), "pawl-library-"));
  const loans = join(folder, "loans");
  const client = new Client({ name: "test", version: "1.0.0" });
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [SERVER, loans] }));
  onTestFinished(async () => {
    await client.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return { client, loans: () => readFileSync(loans, "utf8").split("\n").filter(Boolean) };
}

it("S2-1 Q18 tools of an MCP server have the class that their annotations say, and are effects with approvals", async () => {
  const { client, loans } = await library();
  const tools = await mcpTools(client);
  expect(tools.map(({ name, class: kind, idempotent }) => [name, kind, idempotent ?? false])).toEqual([
    ["find", "read", false],
    ["reserve", "write", "natural"],
    ["lend", "execute", false],
    ["burn", "execute", false],
  ]);
  const model = scriptedModel([
    callTools(
      { find: { title: "Emma" } },
      { reserve: { title: "Emma" } },
      { lend: { title: "Emma" } },
      { find: { name: 7 } },
    ),
    callTools({ burn: { title: "Emma" } }),
    say("Emma is lent."),
  ]);
  const clerk = agent({
    name: "clerk",
    model,
    tools,
    approvals: { execute: { approvers: ["ann"] } },
    prompt: (request: string) => task.bind({ request }),
  });
  const engine = await testEngine({ workflows: [clerk] });
  const run = await engine.start(clerk, "lend Emma");
  await engine.decide(run.id, "tool.lend.call_1_3", { decision: "approved", by: "ann" });
  await engine.decide(run.id, "tool.burn.call_2_1", { decision: "approved", by: "ann" });
  expect(await run.result()).toBe("Emma is lent.");
  expect(loans()).toEqual(["reserve Emma", "lend Emma"]);
  const first = JSON.stringify(model.requests[1]?.prompt.at(-1));
  expect(first).toContain("Emma is on shelf 7");
  expect(first).toContain("do not fit: title: is required");
  expect(JSON.stringify(model.requests[2]?.prompt.at(-1))).toContain('"error-text","value":"We do not burn books."');
  expect((await run.effects()).map(({ effect, status }) => [effect, status])).toEqual([
    ["tool.reserve.call_1_2", "executed"],
    ["tool.lend.call_1_3", "executed"],
    ["tool.burn.call_2_1", "executed"],
  ]);
  await engine.close();
});

it("Q18 only those tools are taken that were asked for, and names that the server does not have are told", async () => {
  const { client } = await library();
  const tools = await mcpTools(client, { allow: ["find"], class: () => "execute", prefix: "library_" });
  expect(tools.map(({ name, class: kind }) => [name, kind])).toEqual([["library_find", "execute"]]);
  expect(await errorOf(mcpTools(client, { allow: ["fnd"] }))).toMatchObject({ code: "invalid_argument" });
});

/** A server that says what it likes. */
const liar = (tools: readonly object[], more: Partial<McpClient> = {}): McpClient => ({
  listTools: async () => ({ tools: tools.map((one) => ({ inputSchema: { type: "object" }, ...one })) as never }),
  callTool: async () => ({}),
  ...more,
});

it("Q18 C-3 with a class of your own nothing counts that the server says: what it calls harmless is not repeated", async () => {
  const pay = { name: "pay", annotations: { readOnlyHint: true, idempotentHint: true } };
  const [tool] = await mcpTools(liar([pay]), { class: () => "execute" });
  expect([tool?.class, tool?.idempotent]).toEqual(["execute", undefined]);
});

it("Q18 odd lists of a server are read as far as they go", async () => {
  const tools = await mcpTools(liar([{ name: "user.get/all", description: "", annotations: null }]));
  expect(tools.map(({ name, description }) => [name, description])).toEqual([["user_get_all", "user.get/all"]]);
  const round = { listTools: async ({ cursor = "" } = {}) => ({ tools: [], nextCursor: cursor === "a" ? "b" : "a" }) };
  expect(await mcpTools(liar([], round))).toEqual([]);
  let page = 0;
  const endless = { listTools: async () => ({ tools: [], nextCursor: String(++page) }) };
  expect(await errorOf(mcpTools(liar([], endless)))).toMatchObject({ code: "too_large" });
  const many = Array.from({ length: 200_000 }, (_, index) => ({ name: `t${index}` }));
  expect(await mcpTools(liar(many), { allow: ["t7"] })).toHaveLength(1);
});

it.each([
  [undefined, true, "Done."],
  [{ content: null }, true, "Done."],
  [{ isError: true }, false, "It failed."],
  [{ content: [null, { type: "image" }] }, true, "(image that is not shown)"],
])("Q18 an odd answer of a server is still an answer: %o", async (answer, success, message) => {
  const [tool] = await mcpTools(liar([{ name: "lend" }], { callTool: async () => answer as unknown as McpResult }));
  expect(await tool?.run({}, { signal: new AbortController().signal } as never)).toMatchObject({ success, message });
});
