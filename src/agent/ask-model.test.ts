import { describe, expect, it } from "vitest";
import { hasCode } from "../base/errors.ts";
import { isRetryable, retryDelayMs, retryPolicy } from "../core/retry.ts";
import { askModel } from "./ask-model.ts";
import type { GeneratedReply, Model, ModelChunk, StreamedPart } from "./model.ts";
import { callTools, say, scriptedModel } from "./scripted-model.ts";

const REQUEST = { prompt: [{ role: "user" as const, content: [{ type: "text", text: "hello" }] }] };

const modelOf = (reply: () => Promise<GeneratedReply>, stream: readonly StreamedPart[] = []): Model => ({
  specificationVersion: "v4",
  provider: "acme",
  modelId: "m-1",
  doGenerate: reply,
  doStream: async () => ({
    stream: new ReadableStream<StreamedPart>({
      start(controller) {
        for (const part of stream) controller.enqueue(part);
        controller.close();
      },
    }),
  }),
});
const failing = (error: unknown) => modelOf(() => Promise.reject(error));
const errorOf = (asked: Promise<unknown>) =>
  asked.then(
    () => null,
    (error: unknown) => error,
  ) as Promise<Error & { retryAfter?: number }>;

describe("askModel", () => {
  it("S1-31 brings answers of all specifications into one shape", async () => {
    const content = [
      { type: "reasoning", text: "hm", providerMetadata: { acme: { signature: "s" } } },
      { type: "source", url: "https://example.com" },
      { type: "text", text: "Hello" },
      { type: "tool-call", toolCallId: "c1", toolName: "look", input: '{"n":1}' },
      { type: "tool-call", toolCallId: "c2", toolName: "look", input: "not json" },
      { type: "tool-call", toolCallId: "c3", toolName: "web", input: "", providerExecuted: true },
      { type: "tool-result", toolCallId: "c3", toolName: "web", result: { hits: 3 } },
    ];
    const nested = { inputTokens: { total: 10, cacheRead: 4 }, outputTokens: { total: 5, reasoning: 2 } };
    const reply = await askModel(
      modelOf(async () => ({ content, finishReason: { unified: "tool-calls" }, usage: nested })),
      REQUEST,
    );
    expect(reply).toEqual({
      content: [
        { type: "reasoning", text: "hm", providerOptions: { acme: { signature: "s" } } },
        { type: "text", text: "Hello" },
        { type: "tool-call", toolCallId: "c1", toolName: "look", input: { n: 1 } },
        { type: "tool-call", toolCallId: "c2", toolName: "look", input: "not json" },
        { type: "tool-call", toolCallId: "c3", toolName: "web", input: {}, providerExecuted: true },
        { type: "tool-result", toolCallId: "c3", toolName: "web", output: { type: "json", value: { hits: 3 } } },
      ],
      finish: "tool-calls",
      usage: { inputTokens: 10, outputTokens: 5, cachedTokens: 4, reasoningTokens: 2 },
      model: "acme:m-1",
    });
    const flat = { inputTokens: 7, outputTokens: undefined };
    const older = await askModel(
      modelOf(async () => ({ content: [], finishReason: "unheard-of", usage: flat })),
      REQUEST,
    );
    expect(older).toMatchObject({ finish: "other", usage: { inputTokens: 7, outputTokens: 0 } });
  });

  it.each([
    [null],
    [{ inputTokens: null, outputTokens: null }],
    [{ inputTokens: { total: Number.NaN }, outputTokens: { total: -3 } }],
    [{ inputTokens: Number.POSITIVE_INFINITY, outputTokens: "12" }],
  ])("X-13 usage that cannot be counted is 0, and the answer stays: %o", async (usage) => {
    const given = { content: say("Hello").content, finishReason: "stop", usage } as unknown as GeneratedReply;
    const reply = await askModel(
      modelOf(async () => given),
      REQUEST,
    );
    expect(reply.usage).toEqual({ inputTokens: 0, outputTokens: 0 });
  });

  it.each([[undefined], [{ finishReason: "stop", usage: {} }]])(
    "E-28 an answer without content is prompt_evaluation of the request: %o",
    async (given) => {
      const thrown = await errorOf(
        askModel(
          modelOf(async () => given as unknown as GeneratedReply),
          REQUEST,
        ),
      );
      expect(thrown).toMatchObject({ code: "prompt_evaluation", fields: { phase: "request" } });
    },
  );

  it("S1-31 puts a stream together again, and tells of its pieces", async () => {
    const chunks: ModelChunk[] = [];
    const stream: StreamedPart[] = [
      { type: "stream-start" },
      { type: "reasoning-start", id: "1" },
      { type: "text-start", id: "1" },
      { type: "reasoning-delta", id: "1", delta: "hm" },
      { type: "text-delta", id: "1", delta: "Hel" },
      { type: "text-delta", id: "1", delta: "lo" },
      { type: "reasoning-end", id: "1", providerMetadata: { acme: { signature: "s" } } },
      { type: "text-end", id: "1" },
      { type: "tool-input-start", id: "c1", toolName: "look" },
      { type: "tool-call", toolCallId: "c1", toolName: "look", input: '{"n":1}' },
      { type: "finish", finishReason: { unified: "stop" }, usage: { inputTokens: 1, outputTokens: 2 } },
    ];
    const model = modelOf(() => Promise.reject(new Error("not asked")), stream);
    const reply = await askModel(model, REQUEST, { onChunk: (chunk) => chunks.push(chunk) });
    expect(reply.content).toEqual([
      { type: "reasoning", text: "hm", providerOptions: { acme: { signature: "s" } } },
      { type: "text", text: "Hello" },
      { type: "tool-call", toolCallId: "c1", toolName: "look", input: { n: 1 } },
    ]);
    expect(chunks).toEqual([
      { type: "reasoning", text: "hm" },
      { type: "text", text: "Hel" },
      { type: "text", text: "lo" },
      { type: "tool-call", id: "c1", name: "look" },
    ]);
  });

  it("S1-31 a scripted model says the same, streamed or not", async () => {
    const script = [
      {
        content: [...say("Let me look.").content, ...callTools({ look: { n: 1 } }).content],
        finish: "tool-calls" as const,
      },
    ];
    const whole = await askModel(scriptedModel(script), REQUEST);
    const streamed = await askModel(scriptedModel(script), REQUEST, { onChunk: () => {} });
    expect(streamed).toEqual(whole);
    expect(whole.content[1]).toMatchObject({ toolCallId: "call_1_2", input: { n: 1 } });
    expect(hasCode(await errorOf(askModel(scriptedModel([]), REQUEST)), "prompt_evaluation")).toBe(true);
  });

  it.each([
    [Object.assign(new Error("slow down"), { statusCode: 429, responseHeaders: { "retry-after": "7" } }), true, 7000],
    [
      Object.assign(new Error("at noon"), {
        statusCode: 503,
        responseHeaders: { "retry-after": "Thu, 01 Jan 1970 00:00:09 GMT" },
      }),
      true,
      9000,
    ],
    [Object.assign(new Error("overloaded"), { statusCode: 529, isRetryable: true }), true, null],
    [Object.assign(new Error("busy"), { isRetryable: true, responseHeaders: { "retry-after-ms": "250" } }), true, 250],
    [Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNRESET" } }), true, null],
    [
      Object.assign(new Error("bad key"), {
        statusCode: 401,
        isRetryable: false,
        requestBodyValues: { prompt: "SECRET" },
      }),
      false,
      null,
    ],
  ])("E-28 %s is prompt_evaluation of the request, worth another attempt: %s", async (error, isWorth, after) => {
    const thrown = await errorOf(askModel(failing(error), REQUEST));
    expect(thrown).toMatchObject({ code: "prompt_evaluation", fields: { phase: "request", model: "acme:m-1" } });
    expect(isRetryable(retryPolicy(undefined), thrown)).toBe(isWorth);
    if (after !== null) {
      const delay = retryDelayMs(retryPolicy(undefined), 1, thrown, { random: () => 0, now: () => 0 });
      expect(delay).toBe(after);
    }
    expect(JSON.stringify(thrown, Object.getOwnPropertyNames(thrown))).not.toContain("SECRET");
  });

  it("E-28 a stream that breaks off or tells of an error fails", async () => {
    const ask = (stream: StreamedPart[]) =>
      errorOf(
        askModel(
          modelOf(() => Promise.reject(), stream),
          REQUEST,
          { onChunk: () => {} },
        ),
      );
    const broken = await ask([{ type: "text-start", id: "1" }]);
    expect(broken.message).toContain("ended before");
    expect(isRetryable(retryPolicy(undefined), broken)).toBe(true);
    expect((await ask([{ type: "error", error: new Error("torn") }])).message).toContain("torn");
  });

  it("what was aborted fails with the reason", async () => {
    const reason = new Error("enough");
    const thrown = await errorOf(
      askModel(failing(new Error("aborted")), { ...REQUEST, abortSignal: AbortSignal.abort(reason) }),
    );
    expect(thrown).toBe(reason);
  });
});
