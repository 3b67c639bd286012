import { PawlError } from "../base/errors.ts";
import type {
  FinishReason,
  GeneratedPart,
  GeneratedReply,
  Model,
  ModelRequest,
  StreamedPart,
  StreamedReply,
} from "./model.ts";

/** One answer of a script. */
export interface ScriptedReply {
  readonly content: readonly GeneratedPart[];
  readonly finish: FinishReason;
  readonly usage?: { readonly inputTokens: number; readonly outputTokens: number };
}

/** What the model says: answers in order, or a function of the request. An error is thrown. */
export type Script =
  | readonly (ScriptedReply | Error)[]
  | ((request: ModelRequest, round: number) => ScriptedReply | Error | Promise<ScriptedReply | Error>);

export interface ScriptedModelOptions {
  readonly provider?: string;
  readonly modelId?: string;
}

/** A model whose answers are known beforehand. */
export interface ScriptedModel extends Model {
  readonly specificationVersion: "v3";
  readonly supportedUrls: Readonly<Record<string, RegExp[]>>;
  /** Every request so far, in order. */
  readonly requests: readonly ModelRequest[];
}

/**
 * A model for tests and examples. The n-th answer of the script is given to a conversation with n - 1 answers in it, so it has nothing to remember
 * and goes on after a crash.
 *
 * ```ts
 * const model = scriptedModel([callTools({ search: { query: "birds" } }), say("Sixteen species.")]);
 * ```
 */
export function scriptedModel(script: Script, options: ScriptedModelOptions = {}): ScriptedModel {
  const { provider = "scripted", modelId = "script" } = options;
  const requests: ModelRequest[] = [];
  const answer = async (request: ModelRequest): Promise<GeneratedReply> => {
    requests.push(request);
    request.abortSignal?.throwIfAborted();
    const round = request.prompt.filter(({ role }) => role === "assistant").length + 1;
    const reply = typeof script === "function" ? await script(request, round) : script[round - 1];
    if (reply === undefined) throw over(round);
    if (reply instanceof Error) throw reply;
    const { content, finish, usage = { inputTokens: 10, outputTokens: 5 } } = reply;
    const named = content.map((part, index) =>
      part.type === "tool-call" && part.toolCallId === undefined
        ? { ...part, toolCallId: `call_${round}_${index + 1}` }
        : part,
    );
    return {
      content: named,
      finishReason: { unified: finish },
      usage: { inputTokens: { total: usage.inputTokens }, outputTokens: { total: usage.outputTokens } },
    };
  };
  return {
    specificationVersion: "v3",
    provider,
    modelId,
    supportedUrls: {},
    requests,
    doGenerate: answer,
    doStream: async (request): Promise<StreamedReply> => ({ stream: piecesOf(await answer(request)) }),
  };
}

function over(round: number): PawlError {
  return new PawlError(
    "invalid_argument",
    `The script of the model has no answer for round ${round}. Add one, or let the agent end earlier.`,
    { fields: { round } },
  );
}

/** Pieces of a few words each, as a provider would send them. */
async function* piecesOf({ content, finishReason, usage }: GeneratedReply): AsyncGenerator<StreamedPart> {
  yield { type: "stream-start" };
  for (const [index, part] of content.entries()) {
    const id = String(index);
    if (part.type !== "text" && part.type !== "reasoning") {
      yield part;
      continue;
    }
    const { text = "", type, ...rest } = part;
    yield { type: `${type}-start`, id };
    for (const delta of text.match(/\S+\s*|\s+/g) ?? []) yield { type: `${type}-delta`, id, delta };
    yield { ...rest, type: `${type}-end`, id };
  }
  yield { type: "finish", finishReason, usage };
}

/** An answer that is text: the last one, or beside tool calls if `content` is joined. */
export function say(text: string, usage?: ScriptedReply["usage"]): ScriptedReply {
  return { content: [{ type: "text", text }], finish: "stop", ...(usage !== undefined && { usage }) };
}

/**
 * An answer that calls tools, by name: `callTools({ search: { query: "a" } })`. Several objects call the same tool more than once. Ids are made of
 * the round and the place.
 */
export function callTools(...calls: readonly Readonly<Record<string, unknown>>[]): ScriptedReply {
  const content = calls.flatMap((named) =>
    Object.entries(named).map(([toolName, args]) => ({ type: "tool-call", toolName, input: JSON.stringify(args) })),
  );
  return { content, finish: "tool-calls" };
}
