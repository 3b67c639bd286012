// A check of detectors
// A detector is asked by a process that knows nothing of the one that died, perhaps several times, and decides whether an outside effect is
// made again. So it must not write, must not rely on what its process remembers, and must find exactly what was done.
import { decode, encode } from "../base/codec.ts";
import { messageOf, PawlError } from "../base/errors.ts";
import type { StepInfo } from "../core/context.ts";
import type { EffectSpec } from "../core/effect.ts";
import { secretFor } from "../core/secret-source.ts";
import { show } from "./explorer/run-end.ts";
import type { Effect, Recorder } from "./recorder.ts";

/** An effect whose detector is checked, and the fakes that stand for the outside world. At first, nothing of it may have happened there. */
export interface DetectorTest<T = unknown> {
  /** Makes the effect anew for each look, so that nothing is kept in its closure. */
  readonly effect: () => EffectSpec<T> | Promise<EffectSpec<T>>;
  /** The key that `do` and `detect` are given. Default "run-1/effect". */
  readonly key?: string;
  /** What the outside world was asked to do: while the detector looks, nothing may be added. Default: none. */
  readonly recorder?: Recorder;
  /** What the outside world looks like: the same before and after a look. Default: none. */
  readonly observe?: () => unknown;
}

/** Something that a detector must not do. */
export interface DetectorFailure {
  readonly kind: "wrote" | "unsteady" | "found_too_early" | "not_found" | "other_value" | "threw";
  /** What happened, and what to do about it. */
  readonly message: string;
}

/** What `checkDetector` has found. */
export interface DetectorReport {
  readonly ok: boolean;
  readonly failures: readonly DetectorFailure[];
  /** For people. */
  toString(): string;
}

/** One look: the answer, its value as the codec writes it, and what was written meanwhile. */
export interface DetectorLook {
  readonly answer: { readonly found: boolean; readonly value: string } | { readonly error: string };
  readonly wrote: readonly string[];
}

/** Who looks and who acts: this process, or a fresh one each time. */
export interface DetectorHand {
  look(): Promise<DetectorLook>;
  /** Calls `do`; what it returned, as the codec writes it. */
  act(): Promise<string>;
}

/** Describes a check of a detector; export it for `pawl test --detectors FILE`. */
export function detectorTest<T>(test: DetectorTest<T>): DetectorTest<T> {
  return test;
}

/**
 * Asks an effect's detector twice, calls `do`, asks twice again, and tells whether the detector wrote, changed its mind, missed what was
 * done or found what was not. `pawl test --detectors FILE` does the same with a fresh process for each.
 *
 * ```ts
 * const report = await checkDetector({ effect: () => refund(order), recorder: bank });
 * assert(report.ok, report.toString());
 * ```
 */
export async function checkDetector<T>(test: DetectorTest<T>): Promise<DetectorReport> {
  return judgeDetector({ look: () => lookOnce(test), act: () => actOnce(test) });
}

export async function judgeDetector(hand: DetectorHand): Promise<DetectorReport> {
  const before = [await hand.look(), await hand.look()] as const;
  const done = await hand.act();
  const after = [await hand.look(), await hand.look()] as const;
  const failures = [
    ...[...before, ...after].flatMap(wroteOrThrew),
    ...[before, after].flatMap(unsteady),
    ...(isFound(before[0]) ? [FOUND_TOO_EARLY] : []),
    ...missed(after[0], done),
  ];
  const told = failures.filter((one, i) => failures.findIndex((other) => other.message === one.message) === i);
  return { ok: told.length === 0, failures: told, toString: () => textOf(told) };
}

export async function lookOnce<T>({ effect, key, recorder, observe }: DetectorTest<T>): Promise<DetectorLook> {
  const { detect } = await effect();
  if (detect === undefined) throw noDetector();
  const asked = recorder?.requests.length ?? 0;
  const world = encode(await observe?.());
  const answer = await answerOf(async () => detect(infoFor(key, 2)));
  const wrote = (recorder?.requests.slice(asked) ?? []).map(requestText);
  if (encode(await observe?.()) !== world) wrote.push("what `observe` sees");
  return { answer, wrote };
}

export async function actOnce<T>({ effect, key }: DetectorTest<T>): Promise<string> {
  const spec = await effect();
  return encode(await spec.do(infoFor(key, 1)));
}

function infoFor(key = "run-1/effect", attempt: number): StepInfo {
  return {
    key,
    attempt,
    signal: new AbortController().signal,
    heartbeat() {},
    spent() {},
    async save() {},
    saved: undefined,
    emit() {},
    secret: (secret) => secretFor(null, { run: "of a test", call: { key } }, secret),
  };
}

/** What was asked of the outside, for people. */
export function requestText({ name, details }: Effect): string {
  return `"${name}" ${show(details)}`;
}

export async function answerOf(
  ask: () => Promise<{ readonly found: boolean; readonly value?: unknown }>,
): Promise<DetectorLook["answer"]> {
  try {
    const { found, value } = await ask();
    return { found, value: encode(value) };
  } catch (error) {
    return { error: messageOf(error) };
  }
}

function isFound({ answer }: DetectorLook): boolean {
  return "found" in answer && answer.found;
}

function wroteOrThrew({ answer, wrote }: DetectorLook): DetectorFailure[] {
  const failures: DetectorFailure[] = wrote.map((what) => ({
    kind: "wrote",
    message: `The detector wrote: ${what}. It may only look, because it is asked again and again.`,
  }));
  if ("error" in answer)
    failures.push({
      kind: "threw",
      message: `The detector failed: ${answer.error}. Let it say { found: false } where there is nothing yet.`,
    });
  return failures;
}

function unsteady([first, second]: readonly [DetectorLook, DetectorLook]): DetectorFailure[] {
  const [one, two] = [told(first), told(second)];
  if (one === two) return [];
  const message = `Asked twice in a row, the detector said ${one}, then ${two}. Let its answer depend on the outside alone.`;
  return [{ kind: "unsteady", message }];
}

const FOUND_TOO_EARLY: DetectorFailure = {
  kind: "found_too_early",
  message:
    "The detector says that it happened before anything was done. Let it look for this effect's key, and begin with fakes that are empty.",
};

function missed(look: DetectorLook, done: string): DetectorFailure[] {
  const { answer } = look;
  if ("error" in answer) return [];
  if (!answer.found) {
    const message =
      "The detector does not find what was done. Let it look outside, by the key that it is given, and not in what a process remembers.";
    return [{ kind: "not_found", message }];
  }
  if (answer.value === done) return [];
  const message = `The detector found ${show(decode(answer.value))}, and \`do\` had returned ${show(decode(done))}: after a crash the run would go on with another value. Let both return the same.`;
  return [{ kind: "other_value", message }];
}

function told({ answer }: DetectorLook): string {
  if ("error" in answer) return `the error "${answer.error}"`;
  return answer.found ? `{ found: true, value: ${show(decode(answer.value))} }` : "{ found: false }";
}

function textOf(failures: readonly DetectorFailure[]): string {
  if (failures.length === 0) return "The detector only looks, and finds what was done.";
  return failures.map(({ kind, message }) => `${kind}: ${message}`).join("\n");
}

function noDetector(): PawlError {
  return new PawlError("invalid_argument", "The effect has no `detect`, so there is nothing to check. Give it one.");
}
