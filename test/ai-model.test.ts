// The AI SDK's functions over a durable model, in the body of a workflow.
import { APICallError, generateText, Output, streamText } from "ai";
import { type BudgetOptions, type Context, Pawl, type RunStatus, type Workflow, workflow } from "pawl";
import { type DurableModelOptions, durableModel, unguarded } from "pawl/ai";
import { type TestEngine, testEngine } from "pawl/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { memoryStore } from "../src/stores/memory/memory-store.ts";
import { withoutColdStart } from "./cold-start.ts";
import { type Asked, GUARD, mockModel, reply, scripted, streamOf, USAGE } from "./fixtures/ai/scripted.ts";

const QUIET = { debug() {}, info() {}, warn() {}, error() {} };

async function engineWith(...workflows: Workflow<never, unknown>[]): Promise<TestEngine> {
  const engine = await testEngine({ workflows, logger: QUIET });
  onTestFinished(() => engine.close());
  return engine;
}

/** Runs a body that asks once. */
async function ask(model: ReturnType<typeof mockModel>, options: DurableModelOptions = {}) {
  const flow = workflow({ name: "ask", guard: GUARD }, async (ctx) => {
    const result = await generateText({ model: durableModel(ctx, model, options), prompt: "Say it." });
    return result.text;
  });
  const engine = await engineWith(flow);
  const run = await engine.start(flow);
  return { engine, run, result: await run.result().catch((error: unknown) => error) };
}

const entriesOf = async (run: { journal(): Promise<readonly { type: string; key: string | null }[]> }) =>
  (await run.journal()).map(({ type, key }) => (key === null ? type : `${type} ${key}`));

describe("a call of a durable model", () => {
  it("X-20 S2-64 is one step, whose record is what the model produced and never the prompt", async () => {
    const flow = workflow({ name: "ask", guard: GUARD }, async (ctx) => {
      const model = durableModel(ctx, scripted([{ text: "forty-two" }]));
      const result = await generateText({ model, system: "Be brief.", prompt: "What is the secret of it all?" });
      return {
        text: result.text,
        total: result.usage.totalTokens,
        at: result.response.timestamp,
        id: result.response.id,
      };
    });
    const engine = await engineWith(flow);
    const run = await engine.start(flow);
    const result = await run.result();
    expect(result).toMatchObject({ text: "forty-two", total: 15, at: new Date(engine.clock.now()) });
    expect(await entriesOf(run)).toEqual([
      "run.started",
      "step.started model",
      "step.spent model",
      "step.completed model",
      "run.succeeded",
    ]);
    const journal = await run.journal();
    expect(JSON.stringify(journal)).not.toMatch(/secret|brief/i);
    expect(journal[3]?.payload).toEqual({
      content: [{ type: "text", text: "forty-two" }],
      finishReason: { unified: "stop", raw: undefined },
      usage: USAGE,
      warnings: [],
      response: { id: result.id, timestamp: result.at, modelId: "mock-model-id" },
    });
    expect((await run.status()).cost).toEqual({ tokens: 15 });
  });

  it("X-20 leaves what providers say of request and response beside the record, and keeps ids, metadata and warnings", async () => {
    const at = new Date("2026-02-03T04:05:06Z");
    const model = mockModel({
      doGenerate: async () => ({
        ...reply({ text: "hi" }),
        warnings: [{ type: "other", message: "careful" }],
        providerMetadata: { mock: { cached: true } },
        request: { body: "the whole prompt" },
        response: { id: "resp-1", timestamp: at, modelId: "mock-2", headers: { a: "b" }, body: { all: "of it" } },
      }),
    });
    const { run } = await ask(model);
    const record = (await run.journal()).find(({ type }) => type === "step.completed")?.payload;
    expect(record).toMatchObject({
      warnings: [{ type: "other", message: "careful" }],
      providerMetadata: { mock: { cached: true } },
      response: { id: "resp-1", timestamp: at, modelId: "mock-2" },
    });
    expect(Object.keys((record as { response: object }).response)).toEqual(["id", "timestamp", "modelId"]);
    expect(record).not.toHaveProperty("request");
  });

  it("gives typed output through the SDK's own Output", async () => {
    const flow = workflow({ name: "typed", guard: GUARD }, async (ctx) => {
      const { output } = await generateText({
        model: durableModel(ctx, scripted([{ text: '{"city":"Rome"}' }])),
        output: Output.object({ schema: z.object({ city: z.string() }) }),
        prompt: "Where?",
      });
      return output.city;
    });
    expect(await (await engineWith(flow)).run(flow)).toBe("Rome");
  });

  it("refuses a name in place of a model, and says what to give", async () => {
    const flow = workflow("named", async (ctx) => void durableModel(ctx, "openai/gpt-5" as never));
    await expect((await engineWith(flow)).run(flow)).rejects.toThrow(/was given the name "openai\/gpt-5".*gateway\(/);
  });
});

describe("in replay", () => {
  /** Runs a body up to its wait for "go", and lets another one replay what it recorded. */
  async function replaced(before: Body, after: Body): Promise<RunStatus> {
    const store = memoryStore();
    const bodyOf = (body: Body) =>
      workflow("replayed", async (ctx) => {
        await body(ctx);
        return ctx.waitFor("go");
      });
    const first = await Pawl.open(store, { workflows: [bodyOf(before)], logger: QUIET });
    await first.start("replayed", undefined, { id: "r" });
    await first.idle();
    await first.close();
    const second = await Pawl.open(store, { workflows: [bodyOf(after)], logger: QUIET });
    await second.signal("r", "go", 1);
    await second.idle();
    const status = await second.get("r").status();
    await second.cancel("r").catch(() => {});
    await second.close();
    return status;
  }
  type Body = (ctx: Context) => Promise<unknown>;

  const asking =
    (system: string, prompt: string, asked: string[] = []): Body =>
    (ctx) =>
      generateText({
        model: durableModel(
          ctx,
          scripted([{ text: "yes" }], () => asked.push(prompt)),
        ),
        system,
        prompt,
      });

  it("X-20 a changed system prompt is the program's business: what was answered stays", async () => {
    const asked: string[] = [];
    const status = await replaced(asking("Be brief.", "Is it?", asked), asking("Be verbose.", "Is it?", asked));
    expect(status).toMatchObject({ status: "succeeded" });
    expect(asked).toEqual(["Is it?"]);
  });

  it("X-20 another conversation parks the run", async () => {
    withoutColdStart("its code leaves the journal on purpose");
    const status = await replaced(asking("Be brief.", "Is it?"), asking("Be brief.", "Is it not?"));
    expect(status).toMatchObject({ state: "parked", parked: { reason: "replay_drift" } });
  });
});

describe("what a call costs", () => {
  const price = ({ inputTokens, outputTokens }: { inputTokens: number; outputTokens: number }) => ({
    usd: (inputTokens * 2 + outputTokens * 10) / 1000,
  });

  const asking = (asked: Asked[], budget: BudgetOptions, options: DurableModelOptions) =>
    workflow({ name: "asking", budget }, async (ctx) => {
      const model = durableModel(
        ctx,
        scripted([{ text: "yes" }], (one) => asked.push(one)),
        options,
      );
      for (let i = 0; i < 5; i++) await generateText({ model, prompt: `Question ${i}` });
    });

  it("X-13 I26 goes to cost and budgets, and none begins once a budget is used up", async () => {
    for (const [budget, calls] of [
      [{ tokens: 31 }, 3],
      [{ tokens: 30 }, 2],
      [{ usd: 0.07 }, 1],
      [{ usd: 0.15 }, 3],
      [{ calls: 4 }, 4],
    ] as const) {
      const asked: Asked[] = [];
      const flow = asking(asked, budget, { price });
      const engine = await engineWith(flow);
      const run = await engine.start(flow);
      await engine.settle();
      expect([budget, asked.length]).toEqual([budget, calls]);
      const { parked, cost } = await run.status();
      expect(parked?.reason).toBe("budget_exceeded");
      expect(cost?.["tokens"]).toBe(15 * calls);
      expect(cost?.["usd"]).toBeCloseTo(0.07 * calls);
    }
  });

  it("X-13 with `spend` a call begins only where there is room for all that it may take", async () => {
    const asked: Asked[] = [];
    const flow = asking(asked, { usd: 0.15 }, { price, spend: { usd: 0.1 } });
    const engine = await engineWith(flow);
    await engine.start(flow);
    await engine.settle();
    expect(asked).toHaveLength(1);
  });
});

describe("errors of a provider", () => {
  const failing = (times: number, error: () => unknown) => {
    let calls = 0;
    const model = mockModel({
      doGenerate: async () => {
        calls += 1;
        if (calls <= times) throw error();
        return reply({ text: "at last" });
      },
    });
    return { model, calls: () => calls };
  };
  const apiError = (statusCode: number, more: Partial<ConstructorParameters<typeof APICallError>[0]> = {}) =>
    new APICallError({
      message: `status ${statusCode}`,
      url: "https://api.example.org",
      requestBodyValues: { prompt: "the secret prompt" },
      statusCode,
      responseBody: "sorry",
      ...more,
    });

  it("X-20 that are worth another call are the engine's to repeat, at a recorded time, and the SDK repeats none", async () => {
    const { model, calls } = failing(2, () => apiError(429, { responseHeaders: { "retry-after-ms": "5000" } }));
    const { run, engine, result } = await ask(model);
    expect(result).toBe("at last");
    expect(calls()).toBe(3);
    const failures = (await run.journal()).filter(({ type }) => type === "step.failed");
    expect(failures.map(({ payload, at }) => (payload as { retryAt: number }).retryAt - at)).toEqual([5000, 5000]);
    expect(engine.clock.now() - (failures[0]?.at ?? 0)).toBe(10_000);
  });

  it("X-20 are recorded without the request, which is the conversation", async () => {
    const { model, calls } = failing(9, () => apiError(400));
    const { run, result } = await ask(model);
    expect(calls()).toBe(1);
    expect(JSON.stringify(await run.journal())).not.toContain("secret");
    expect(result).toMatchObject({ name: "AI_APICallError", statusCode: 400, responseBody: "sorry" });
  });

  it("are final if the provider says so, whatever their status", async () => {
    const { model, calls } = failing(1, () => apiError(503, { isRetryable: false }));
    await ask(model);
    expect(calls()).toBe(1);
  });

  it("follow `retry` where it is given", async () => {
    const { model, calls } = failing(9, () => apiError(503));
    const { result } = await ask(model, { retry: 1 });
    expect(calls()).toBe(2);
    expect(result).toMatchObject({ code: "max_retries_exceeded" });
  });
});

describe("a call ends", () => {
  const hanging = (signals: AbortSignal[]) =>
    mockModel({
      doGenerate: ({ abortSignal }) =>
        new Promise((_, reject) => {
          signals.push(abortSignal as AbortSignal);
          abortSignal?.addEventListener("abort", () => reject(abortSignal.reason));
        }),
    });

  it("with its run", async () => {
    const signals: AbortSignal[] = [];
    const flow = workflow("ask", (ctx) =>
      generateText({ model: durableModel(ctx, hanging(signals)), prompt: "?" }).then(({ text }) => text),
    );
    const engine = await engineWith(flow);
    const run = await engine.start(flow);
    await engine.settle();
    await run.cancel();
    await engine.settle();
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    expect((await run.status()).status).toBe("cancelled");
  });

  it("after its timeout, and is tried again", async () => {
    const signals: AbortSignal[] = [];
    const { result } = await ask(hanging(signals), { timeout: "10s", retry: 1 });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    expect(result).toMatchObject({ cause: { code: "step_timeout" } });
  });

  it("when its caller gives up, and is not tried again", async () => {
    const signals: AbortSignal[] = [];
    const controller = new AbortController();
    const flow = workflow("ask", async (ctx) => {
      await generateText({
        model: durableModel(ctx, hanging(signals)),
        prompt: "?",
        abortSignal: controller.signal,
      });
    });
    const engine = await engineWith(flow);
    const run = await engine.start(flow);
    await engine.settle();
    controller.abort();
    await expect(run.result()).rejects.toThrow();
    expect(signals).toHaveLength(1);
  });
});

describe("streams", () => {
  const REASONED = [
    { type: "stream-start", warnings: [] },
    { type: "response-metadata", id: "resp-1", timestamp: new Date(5), modelId: "mock-2" },
    { type: "reasoning-start", id: "r" },
    { type: "reasoning-delta", id: "r", delta: "hm, " },
    { type: "reasoning-delta", id: "r", delta: "yes" },
    { type: "reasoning-end", id: "r", providerMetadata: { mock: { signature: "s" } } },
    { type: "text-start", id: "t" },
    { type: "text-delta", id: "t", delta: "To" },
    { type: "raw", rawValue: { all: "that" } },
    { type: "text-delta", id: "t", delta: "kyo" },
    { type: "text-end", id: "t" },
    { type: "finish", finishReason: { unified: "stop", raw: undefined }, usage: USAGE },
  ];

  const streaming = (doStream: () => ReadableStream<object>) =>
    workflow({ name: "streaming", guard: "error" }, (ctx) =>
      unguarded(async () => {
        const model = durableModel(ctx, mockModel({ doStream: async () => ({ stream: doStream() }) }));
        const errors: unknown[] = [];
        const result = streamText({ model, prompt: "Where?", onError: ({ error }) => void errors.push(error) });
        const pieces: string[] = [];
        for await (const piece of result.textStream) pieces.push(piece);
        if (errors.length > 0) throw errors[0];
        return { pieces, reasoning: await result.reasoningText, id: (await result.response).id };
      }),
    );

  it("X-20 reach the body as the recorded whole", async () => {
    const flow = streaming(() => streamOf(REASONED));
    const engine = await engineWith(flow);
    const run = await engine.start(flow);
    expect(await run.result()).toEqual({ pieces: ["Tokyo"], reasoning: "hm, yes", id: "resp-1" });
    const record = (await run.journal()).find(({ type }) => type === "step.completed")?.payload;
    expect(record).toMatchObject({
      content: [
        { type: "reasoning", text: "hm, yes", providerMetadata: { mock: { signature: "s" } } },
        { type: "text", text: "Tokyo" },
      ],
      response: { id: "resp-1", timestamp: new Date(5), modelId: "mock-2" },
    });
  });

  it("X-14 go out word by word to whoever reads the run's stream; what broke off is taken back", async () => {
    let calls = 0;
    const secret = new APICallError({
      message: "gone",
      url: "",
      requestBodyValues: { prompt: "secret" },
      isRetryable: true,
    });
    const flow = streaming(() =>
      streamOf(calls++ === 0 ? [...REASONED.slice(0, 8), { type: "error", error: secret }] : REASONED),
    );
    const engine = await engineWith(flow);
    const run = await engine.start(flow);
    const told: string[] = [];
    for await (const event of run.stream()) {
      const part = event.type === "chunk" ? event.value : event;
      const { type, delta } = part as { type: string; delta?: string };
      told.push(delta === undefined ? type : `${type} ${delta}`);
    }
    const thought = ["reasoning-start", "reasoning-delta hm, ", "reasoning-delta yes", "reasoning-end", "text-start"];
    expect(told).toEqual([
      ...thought,
      "text-delta To",
      "retract",
      ...thought,
      "text-delta To",
      "text-delta kyo",
      "text-end",
      "end",
    ]);
  });

  it("X-20 that break are asked for again: nothing of them has reached the body", async () => {
    let calls = 0;
    const broken = [
      () =>
        streamOf([
          ...REASONED.slice(0, 8),
          {
            type: "error",
            error: new APICallError({ message: "gone", url: "", requestBodyValues: {}, isRetryable: true }),
          },
        ]),
      () => streamOf(REASONED.slice(0, 9)),
      () => streamOf(REASONED),
    ];
    const flow = streaming(() => (broken[calls++] as () => ReadableStream<object>)());
    expect(await (await engineWith(flow)).run(flow)).toMatchObject({ pieces: ["Tokyo"] });
    expect(calls).toBe(3);
  });

  it("that cannot be had fail as the SDK's own do", async () => {
    const flow = streaming(() => streamOf([{ type: "error", error: new Error("no credit") }]));
    await expect((await engineWith(flow)).run(flow)).rejects.toThrow("no credit");
  });
});
