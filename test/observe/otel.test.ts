// Traces: one over restarts, complete, and without what people must not read there.
import { AsyncLocalStorage } from "node:async_hooks";
import { type Context, context, ROOT_CONTEXT, trace } from "@opentelemetry/api";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { checkTrace, otel, pawlIds } from "pawl/otel";
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { agent } from "../../src/agent/agent.ts";
import { prompt } from "../../src/agent/prompt.ts";
import { callTools, say, scriptedModel } from "../../src/agent/scripted-model.ts";
import { section } from "../../src/agent/section.ts";
import { tool } from "../../src/agent/tool.ts";
import { workflow } from "../../src/core/workflow.ts";
import { gate, HOUR, MINUTE, openWorld } from "../behaviour/harness.ts";

function exported() {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({
    idGenerator: pawlIds,
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  });
  return { spans: () => exporter.getFinishedSpans(), tracer: provider.getTracer("test") };
}

/** What `context.with` needs, as the SDK for Node has it. */
const active = new AsyncLocalStorage<Context>();
beforeAll(() => {
  context.setGlobalContextManager({
    active: () => active.getStore() ?? ROOT_CONTEXT,
    with: (given, fn, self, ...args) => active.run(given, () => fn.call(self as never, ...args)),
    bind: (_given, target) => target,
    enable: () => ({}) as never,
    disable: () => ({}) as never,
  });
});
afterAll(() => context.disable());

const named = (spans: readonly ReadableSpan[], name: string) => spans.filter((span) => span.name === name);
const eventsOf = (span: ReadableSpan | undefined) => span?.events.map(({ name }) => name);
const transient = () => Object.assign(new Error("503"), { status: 503 });
const ids = (span: ReadableSpan | undefined) => span?.spanContext();

const SECRET = "s3cr3t-canary";

/** Reads, asks, pays, and saves a checkpoint on the way. */
function refund() {
  let failures = 1;
  return workflow({ name: "refund", retry: { base: 1000, jitter: false } }, async (ctx, order: { id: string }) => {
    await ctx.step("read", async ({ save }) => {
      await save({ at: 1 });
      if (failures-- > 0) throw transient();
      return { order: order.id, card: SECRET };
    });
    const action = { tool: "bank.refund", arguments: { order: order.id } };
    const approval = await ctx.approve("money", { action, approvers: ["role:finance"], remind: "1h", timeout: "24h" });
    await ctx.effect("pay", { do: () => ({ receipt: SECRET }), needs: { approval, action } });
    return SECRET;
  });
}

it("S2-62 S2-63 S2-74 X-24 the trace of a refund has attempts, checkpoints, the approval and the effect, keeps the contract and no content", async () => {
  const world = await openWorld("memory");
  const { spans, tracer } = exported();
  const flow = refund();
  const pawl = await world.open([flow], { observers: [otel({ tracer })], alerts: false });
  await pawl.start(flow, { id: "7" }, { id: "r" });
  await world.advance(2 * HOUR + MINUTE);
  const { approvals } = await pawl.approvals.list();
  await pawl.approvals.decide(approvals[0]?.id as string, { decision: "approved", by: "ada", roles: ["finance"] });
  await world.advance(MINUTE);
  const [run] = named(spans(), "run refund");
  expect(run?.attributes).toMatchObject({ "pawl.run.stop_reason": "completed", "pawl.run.id": "r" });
  expect(eventsOf(run)).toEqual(["run_started", "run_ended"]);
  expect(named(spans(), "read").map(eventsOf)).toEqual([
    ["step_started", "checkpoint", "retry_scheduled"],
    ["step_started", "checkpoint", "step_result"],
  ]);
  const [approval] = named(spans(), "approval money");
  expect(eventsOf(approval)).toEqual([
    "approval_requested",
    "approval_reminder",
    "approval_reminder",
    "approval_decided",
  ]);
  expect(approval?.duration[0]).toBeGreaterThan(2 * 3600);
  const [pay] = named(spans(), "pay");
  expect(eventsOf(pay)).toEqual(["step_started", "tool_result"]);
  expect(pay?.attributes).toMatchObject({ "pawl.policy.decision": "approved", "pawl.effect.key": expect.any(String) });
  for (const span of spans()) if (span !== run) expect(span.parentSpanContext?.spanId).toBe(ids(run)?.spanId);
  expect(checkTrace(spans())).toEqual([]);
  expect(JSON.stringify(spans().map(({ attributes, events, status }) => [attributes, events, status]))).not.toContain(
    SECRET,
  );
});

it("S2-63 X-24 an approval that nobody decides about leaves approval_timeout, and the check finds what is missing in a trace", async () => {
  const world = await openWorld("memory");
  const { spans, tracer } = exported();
  const flow = workflow("ask", async (ctx) => {
    const action = { tool: "t", arguments: {} };
    await ctx.approve("money", { action, approvers: ["ada"], timeout: "1h", onExpired: "branch" });
  });
  const pawl = await world.open([flow], { observers: [otel({ tracer })], alerts: false });
  await pawl.start(flow);
  await world.advance(2 * HOUR);
  expect(eventsOf(named(spans(), "approval money")[0])).toContain("approval_timeout");
  const without = (field: string) =>
    spans().map((span) => {
      const { [field]: _, ...attributes } = span.attributes;
      return { name: span.name, attributes, spanContext: () => span.spanContext() };
    });
  expect(checkTrace(without("pawl.run.stop_reason")).map(({ rule }) => rule)).toEqual(["stop_reason"]);
  expect(new Set(checkTrace(without("pawl.run.id")).map(({ rule }) => rule))).toEqual(new Set(["correlation"]));
  expect(new Set(checkTrace(without("pawl.redaction")).map(({ rule }) => rule))).toEqual(new Set(["redaction"]));
  expect(checkTrace([]).map(({ rule }) => rule)).toEqual(["run_span"]);
  const effect = { "pawl.span.kind": "effect", "pawl.redaction": "no_content", "gen_ai.tool.call.result": "x" };
  const rules = checkTrace([{ name: "pay", attributes: effect, spanContext: () => ({ traceId: "t", spanId: "s" }) }]);
  expect(rules.map(({ rule }) => rule)).toEqual([
    "run_span",
    "correlation",
    "policy_decision",
    "effect_key",
    "redaction",
  ]);
});

it("S2-62 after a crash the run goes on in the same trace, nothing is told twice, and the attempt that was cut short is there", async () => {
  const world = await openWorld("memory");
  const first = exported();
  const second = exported();
  const stuck = gate();
  let isFirst = true;
  const flow = workflow("order", async (ctx) => {
    await ctx.step("a", () => 1);
    await ctx.sleep("1m");
    await ctx.step("b", async () => (isFirst ? stuck.passed : undefined));
  });
  const options = { alerts: false as const };
  const pawl = await world.open([flow], { ...options, observers: [otel({ tracer: first.tracer })] });
  await pawl.start(flow, undefined, { id: "r" });
  await world.advance(1.5 * MINUTE);
  isFirst = false;
  await world.restart([flow], { ...options, observers: [otel({ tracer: second.tracer })] });
  await world.advance(MINUTE);
  expect(first.spans().map(({ name }) => name)).toEqual(["a", "wait timer sleep"]);
  expect(second.spans().map(({ name, attributes }) => [name, attributes["pawl.step.outcome"]])).toEqual([
    ["b", "interrupted"],
    ["b", "completed"],
    ["run order", undefined],
  ]);
  const all = [...first.spans(), ...second.spans()];
  expect(new Set(all.map((span) => ids(span)?.traceId)).size).toBe(1);
  expect(new Set(all.map((span) => ids(span)?.spanId)).size).toBe(all.length);
  const run = named(all, "run order")[0];
  expect(all.filter((span) => span !== run).every((span) => span.parentSpanContext?.spanId === ids(run)?.spanId)).toBe(
    true,
  );
  expect(checkTrace(all)).toEqual([]);
});

it("S2-64 S2-75 what an agent does inside a run is there call by call: models, proposals, tools, tokens; content only if it is asked for", async () => {
  const without = await agentSpans({});
  expect(without.models.map(({ attributes }) => attributes["gen_ai.operation.name"])).toEqual(["chat", "chat"]);
  expect(without.models[0]?.attributes).toMatchObject({
    "pawl.model.proposed_tools": ["look_up"],
    "gen_ai.usage.input_tokens": expect.any(Number),
    "gen_ai.usage.output_tokens": expect.any(Number),
  });
  expect(without.tools[0]?.attributes).toMatchObject({
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "look_up",
    "pawl.policy.decision": "not_required",
  });
  expect(eventsOf(without.tools[0])).toEqual(["step_started", "tool_result"]);
  expect(checkTrace(without.all)).toEqual([]);
  expect(JSON.stringify(without.all.map(({ attributes }) => attributes))).not.toContain(SECRET);
  const withContent = await agentSpans({ content: true });
  expect(checkTrace(withContent.all)).toEqual([]);
  expect(withContent.tools[0]?.attributes["gen_ai.tool.call.result"]).toContain(SECRET);
});

async function agentSpans(options: { readonly content?: boolean }) {
  const world = await openWorld("memory");
  const { spans, tracer } = exported();
  const task = prompt({
    namespace: "test",
    key: "task",
    sections: [section({ title: "Task", key: "task", body: "Help." })],
  });
  const lookUp = tool({
    name: "look_up",
    description: "Looks a word up.",
    class: "read",
    input: z.object({ word: z.string() }),
    run: () => SECRET,
  });
  const model = scriptedModel([callTools({ look_up: { word: "pawl" } }), say("It is a catch.")]);
  const helper = agent<unknown, string>({ name: "helper", model, prompt: () => task.bind({}), tools: [lookUp] });
  const pawl = await world.open([helper], { observers: [otel({ tracer, ...options })], alerts: false });
  await pawl.start(helper);
  await world.advance(MINUTE);
  const all = spans();
  const isTool = ({ attributes }: ReadableSpan) => "gen_ai.tool.name" in attributes;
  const isModel = ({ attributes }: ReadableSpan) => attributes["gen_ai.operation.name"] === "chat";
  return { all, models: all.filter(isModel), tools: all.filter(isTool) };
}

it("S2-62 spans of libraries that a step uses are below its attempt", async () => {
  const world = await openWorld("memory");
  const { spans, tracer } = exported();
  const flow = workflow("order", async (ctx) => {
    await ctx.step("call", async () => {
      const span = tracer.startSpan("http", {}, context.active());
      span.end();
    });
  });
  const pawl = await world.open([flow], { observers: [otel({ tracer })], alerts: false });
  await pawl.run(flow);
  await world.settle();
  const [http] = named(spans(), "http");
  expect(http?.parentSpanContext?.spanId).toBe(ids(named(spans(), "call")[0])?.spanId);
  expect(trace.getSpanContext(ROOT_CONTEXT)).toBeUndefined();
});
