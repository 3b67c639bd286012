import { PawlError } from "../base/errors.ts";
import { outsideMemory } from "./outside-memory.ts";

/** What may go with a prompt: the step's idempotency key, and the signal that ends the call. */
export interface ModelCallOptions {
  readonly key?: string;
  readonly signal?: AbortSignal;
}

/** One call as the model saw it. */
export interface ModelCall {
  /** Counted from 1. */
  readonly n: number;
  readonly prompt: string;
  /** The idempotency key that came with it; `null`: none. */
  readonly key: string | null;
  /** `null`: none was given, because the call failed or hangs. */
  readonly answer: string | null;
}

/** What the model says: answers in order, or a function of the prompt. */
export type ModelScript = readonly string[] | ((prompt: string, n: number) => string | Promise<string>);

export interface FakeModelOptions {
  /** The calls that fail, counted from 1, each with its error: `{ 2: new RetryableError("busy") }`. */
  readonly fail?: Readonly<Record<number, Error>>;
  /** The calls that never answer; a `signal` ends them. */
  readonly hang?: readonly number[];
}

/** A stand-in for a language model, usable wherever `async (prompt) => text` is. */
export interface FakeModel {
  (prompt: string, options?: ModelCallOptions): Promise<string>;
  /** Every call so far, in order; those that a known key answered, too. */
  readonly calls: readonly ModelCall[];
  /** Forgets calls, keys and its place in the script: what `fresh` of a crash test is for. */
  reset(): void;
}

/**
 * A scripted model for tests. A call with a key that was answered before gets the same answer again, as from a service that knows
 * idempotency keys; without a key, the script goes on.
 *
 * ```ts
 * const model = fakeModel(["Paris", "Rome"]);
 * const plan = workflow("plan", (ctx) => ctx.step("ask", ({ key, signal }) => model("Where to?", { key, signal })));
 * ```
 */
export function fakeModel(script: ModelScript, options: FakeModelOptions = {}): FakeModel {
  const lines = outsideMemory<ModelLine>("model");

  const say = async (prompt: string, n: number): Promise<string> => {
    if (typeof script === "function") return script(prompt, n);
    const used = lines.items.filter(({ isScripted }) => isScripted).length;
    const answer = script[used];
    if (answer === undefined) throw noAnswerLeft(n, script.length);
    return answer;
  };

  const ask = async (prompt: string, { key, signal }: ModelCallOptions = {}): Promise<string> => {
    const call = { n: callsIn(lines.items).length + 1, prompt, key: key ?? null };
    lines.add({ ...call, answer: null, isScripted: false });
    signal?.throwIfAborted();
    const failure = options.fail?.[call.n];
    if (failure !== undefined) throw failure;
    if (options.hang?.includes(call.n)) return await untilAborted(signal);
    const known = lines.items.find((line) => key !== undefined && line.key === key && line.answer !== null);
    const answer = known?.answer ?? (await say(prompt, call.n));
    lines.add({ ...call, answer, isScripted: known === undefined });
    return answer;
  };

  const model = Object.assign(ask, { calls: [], reset: lines.clear });
  return Object.defineProperty(model, "calls", { get: () => callsIn(lines.items) });
}

/** A call when it comes, without an answer, and once more when it has one. */
interface ModelLine extends ModelCall {
  readonly isScripted: boolean;
}

function callsIn(lines: readonly ModelLine[]): ModelCall[] {
  const calls: ModelCall[] = [];
  for (const { isScripted: _, ...call } of lines) calls[call.n - 1] = call;
  return calls;
}

function untilAborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

function noAnswerLeft(n: number, count: number): PawlError {
  return new PawlError(
    "invalid_argument",
    `The fake model has ${count} ${count === 1 ? "answer" : "answers"}, and all were used before call ${n}. Give it more, or a function; and pass the step's key, so that a repeated call gets its answer again.`,
    { fields: { call: n, answers: count } },
  );
}
