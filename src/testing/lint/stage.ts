// The stage of a play
// Runs the functions of a workflow's operations and watches what they do outside. What a crash would run again is run again at once; a
// detector is asked twice before and twice after its effect was made.
//
//   L1. What a function did is what the recorder has seen in its own frame: others may run beside it.
//   L2. The first run counts for the workflow, whatever the second one returns.
//   L3. Only what was seen to act is repeated: the rest would use up scripted answers, and show nothing.
import { encode } from "../../base/codec.ts";
import { messageOf } from "../../base/errors.ts";
import type { StepInfo } from "../../core/context.ts";
import type { EffectSpec } from "../../core/effect.ts";
import { nodeHost } from "../../worker/node-host.ts";
import { answerOf, judgeDetector, requestText } from "../check-detector.ts";
import type { Effect, Recorder } from "../recorder.ts";
import type { Declared, Operation, Operations } from "./operation.ts";

/** Something that the body of a workflow did by itself. */
export interface BodyAct {
  readonly workflow: string;
  readonly name: string;
  readonly line: string;
}

type Fn = (info: StepInfo) => unknown;

export class Stage {
  readonly #recorder: Recorder | null;
  readonly #operations: Operations;
  /** Keys under which effects were made, in earlier plays, too: fakes may remember them. */
  readonly #made: Set<string>;
  readonly #places = new Map<string, Operation>();
  /** Where a function was run a second time, or a detector asked: once is enough. */
  readonly #tried = new Set<string>();
  readonly #workflows = new Map<string, string>();

  constructor(recorder: Recorder | null, operations: Operations, made: Set<string>) {
    this.#recorder = recorder;
    this.#operations = operations;
    this.#made = made;
  }

  /** A body runs, for the first time or in replay. */
  enterBody(run: string, workflow: string): void {
    this.#workflows.set(run, workflow);
  }

  /** Names of the workflows of which a body ran. */
  get entered(): Iterable<string> {
    return this.#workflows.values();
  }

  operation(declared: Declared): Operation {
    return this.#operations.of(declared);
  }

  /** Runs the function of a step. */
  async step(operation: Operation, fn: Fn, info: StepInfo): Promise<unknown> {
    const place = this.#enter(operation);
    return this.#actTwice(operation, place, fn, info);
  }

  /** Runs `do` of an effect. */
  async effect(operation: Operation, spec: EffectSpec<unknown>, info: StepInfo): Promise<unknown> {
    const place = this.#enter(operation);
    const { detect } = spec;
    const act: Fn = (given) => spec.do(given);
    try {
      if (detect === undefined || this.#tried.has(place.name)) return await this.#actTwice(operation, place, act, info);
      return await this.#judge(operation, place, spec as EffectSpec<unknown> & { detect: Fn }, info);
    } finally {
      this.#made.add(info.key);
    }
  }

  /** Runs an `undo`, and if it does anything outside, once more. */
  async undo(operation: Operation, fn: () => unknown): Promise<void> {
    const place = this.#place();
    operation.isUndone = true;
    const before = place.mark();
    await fn();
    if (place.since(before).length === 0) return;
    const between = place.mark();
    try {
      await fn();
    } catch (error) {
      operation.undoError ??= messageOf(error);
    }
    for (const { name } of done(place.since(between))) operation.undoneAgain.add(name);
  }

  /** To be called when the play is over: what steps did after they had returned, and what bodies did by themselves. */
  finish(): BodyAct[] {
    const requests = done(this.#recorder?.requests ?? []);
    for (const { name, run, step } of requests) {
      const operation = this.#places.get(placeOf(run, step));
      if (operation?.declared.kind === "step") operation.did.add(name);
    }
    const inBodies = requests.filter(({ where, run }) => where === "body" && this.#workflows.has(run ?? ""));
    return inBodies.map(({ name, run, line }) => ({
      workflow: this.#workflows.get(run ?? "") ?? "",
      name,
      line: line ?? "an unknown line",
    }));
  }

  async #actTwice(operation: Operation, place: Place, fn: Fn, info: StepInfo): Promise<unknown> {
    const value = await this.#act(operation, place, fn, info);
    const isRerun = operation.declared.recovery === "rerun" && !this.#tried.has(place.name);
    if (isRerun && place.since(place.start).length > 0) await this.#again(operation, place, fn, info);
    return value;
  }

  /** Also a function that fails may have done something. */
  async #act(operation: Operation, place: Place, fn: Fn, info: StepInfo): Promise<unknown> {
    const before = place.mark();
    try {
      return await fn(seenInfo(info, operation));
    } finally {
      const requests = place.since(before);
      operation.usedKey ||= requests.some(({ key }) => key !== null);
      for (const { name } of done(requests)) operation.did.add(name);
    }
  }

  async #again(operation: Operation, place: Place, fn: Fn, info: StepInfo): Promise<void> {
    const before = place.mark();
    this.#tried.add(place.name);
    operation.isRepeated = true;
    try {
      await fn(seenInfo(info, operation, 2));
    } catch (error) {
      operation.repeatError ??= messageOf(error);
    }
    for (const { name } of done(place.since(before))) operation.again.add(name);
  }

  async #judge(
    operation: Operation,
    place: Place,
    spec: EffectSpec<unknown> & { detect: Fn },
    info: StepInfo,
  ): Promise<unknown> {
    const wasMade = this.#made.has(info.key);
    let made: { readonly value: unknown } | null = null;
    const ask = async () => (await spec.detect(seenInfo(info, operation, 2))) as { readonly found: boolean };
    const judging = judgeDetector({
      look: async () => {
        const before = place.mark();
        const answer = await answerOf(ask);
        return { answer, wrote: place.since(before).map(requestText) };
      },
      act: async () => {
        made = { value: await this.#act(operation, place, (given) => spec.do(given), info) };
        return encode(made.value);
      },
    });
    const report = await judging.catch((error: unknown) => {
      // A value that cannot be written is the engine's to refuse; an effect that fails is the run's matter.
      if (made === null) throw error;
      return null;
    });
    const failures = report?.failures ?? [];
    this.#tried.add(place.name);
    operation.isDetectorAsked = true;
    operation.detectorFailures.push(...failures.filter(({ kind }) => !(wasMade && kind === "found_too_early")));
    return (made as { readonly value: unknown } | null)?.value;
  }

  #enter(operation: Operation): Place {
    const place = this.#place();
    operation.isWatched ||= this.#recorder !== null;
    operation.places.add(place.name);
    this.#places.set(place.name, operation);
    return place;
  }

  #place(): Place {
    const frame = nodeHost.frame();
    const [run, step] = [frame?.run ?? null, frame?.step?.call.key ?? null];
    const name = placeOf(run, step);
    const requests = () => this.#recorder?.requests ?? [];
    const start = requests().length;
    return {
      name,
      start,
      mark: () => requests().length,
      since: (mark) =>
        requests()
          .slice(mark)
          .filter((one) => one.run === run && one.step === step),
    };
  }
}

/** Where a function runs: its run and step, and what was asked of the outside from there. */
interface Place {
  readonly name: string;
  readonly start: number;
  mark(): number;
  since(mark: number): readonly Effect[];
}

function placeOf(run: string | null, step: string | null): string {
  return JSON.stringify([run, step]);
}

function done(requests: readonly Effect[]): readonly Effect[] {
  return requests.filter(({ did }) => did);
}

/** The same info, which tells whether its key was asked for; in a second run with another attempt. */
function seenInfo(info: StepInfo, operation: Operation, attempt = info.attempt): StepInfo {
  return new Proxy(info, {
    get(target, name) {
      if (name === "key") operation.usedKey = true;
      return name === "attempt" ? attempt : (Reflect.get(target, name, target) as unknown);
    },
  });
}
