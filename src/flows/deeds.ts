// What a step does
// One kind of call of the context for each kind of step. What a step is to be called with is found out inside a step of its own where a function
// says it: so it may read files, what it found is recorded, and code that was corrected is asked again.
import { hasCode } from "../base/errors.ts";
import type { ApproveOptions } from "../core/approval.ts";
import type { Context, StepInfo, StepOptions } from "../core/context.ts";
import type { EffectOptions, EffectSpec } from "../core/effect.ts";
import { infoWith } from "../core/info-with.ts";
import {
  isOutputFile,
  MANUAL,
  MANUAL_SIGNAL,
  type ManualMessage,
  type ManualWork,
  markKey,
  type OutputFile,
  type PhaseMark,
  questionKey,
} from "../core/outline.ts";
import type { UndoInfo } from "../core/undoable-call.ts";
import type { Workflow } from "../core/workflow.ts";
import type { HeldOutputs } from "./held-outputs.ts";
import { writeOutput } from "./output-files.ts";
import type { Unit } from "./phase-plan.ts";
import type { PhaseWork } from "./phase-spec.ts";

type Work = PhaseWork<never, never>;
type Spec = EffectSpec<unknown>;

export class Deeds {
  readonly #ctx: Context;
  readonly #outputs: HeldOutputs;
  readonly #folder: () => string;
  readonly #work: (info: StepInfo) => Work;
  readonly #calls = new Map<string, number>();
  /** Who has had a part in a step that is done outside. */
  readonly #doers = new Set<string>();
  readonly #ticket: () => string;

  constructor(
    ctx: Context,
    outputs: HeldOutputs,
    ports: { folder(): string; work(info: StepInfo): Work; ticket(): string },
  ) {
    this.#ctx = ctx;
    this.#outputs = outputs;
    this.#folder = ports.folder;
    this.#work = ports.work;
    this.#ticket = ports.ticket;
  }

  doneBy(person: string): void {
    this.#doers.add(person);
  }

  /** Does it, and holds what it gives. `isFirst`: it is the first step of a phase, where all files of earlier ones are compared. */
  async do(unit: Unit, isFirst: boolean): Promise<void> {
    const check = () => this.#outputs.check(isFirst);
    switch (unit.deed) {
      case "run":
        return this.#run(unit, check);
      case "effect":
        return this.#effect(unit, check);
      case "approve":
        return this.#approve(unit);
      case "manual":
        // Days may have passed since: all that it builds on is compared.
        return this.#manual(unit, () => this.#outputs.check(true));
      case "sleep":
        return this.#sleep(unit);
      case "waitFor":
        return this.#waitFor(unit);
      case "call":
        return this.#call(unit);
    }
  }

  async #run({ at, spec }: Unit, check: () => void): Promise<void> {
    const { run, output } = spec;
    const result = await this.#ctx.step(
      at,
      async (info) => {
        check();
        const work = this.#work(info);
        const value = await run?.(work);
        return output === undefined ? value : writeOutput(this.#folder(), output, value, work);
      },
      optionsOf(spec) as StepOptions,
    );
    if (output !== undefined && isOutputFile(result)) this.#outputs.holdFiles(at, [result]);
    else this.#outputs.holdValue(at, result);
  }

  async #effect(unit: Unit, check: () => void): Promise<void> {
    const { at, spec } = unit;
    const given = spec.effect as Spec | ((work: Work) => Spec);
    const made = typeof given === "function" ? await this.#madeLater(at, given) : given;
    this.#outputs.holdValue(at, await this.#ctx.effect(at, guarded(made, check), optionsOf(spec) as EffectOptions));
  }

  /** Its functions are made when they are called; what must be known in advance is recorded. */
  async #madeLater(at: string, make: (work: Work) => Spec): Promise<Spec> {
    const known = await this.#ctx.step(questionKey(at, "with"), (info) => describe(make(this.#work(info))));
    const now = (info: StepInfo) => make(this.#work(info));
    const { hasDetect, hasUndo, ...facts } = known;
    return {
      ...facts,
      do: (info) => now(info).do(info),
      ...(hasDetect && { detect: (info: StepInfo) => now(info).detect?.(info) ?? { found: false } }),
      ...(hasUndo && { undo: (value: unknown, info: UndoInfo) => now(info).undo?.(value, info) }),
    };
  }

  async #approve({ at, spec }: Unit): Promise<void> {
    const { approve } = spec;
    const { action } = approve as { action?: unknown };
    const isMade = typeof approve === "function" || typeof action === "function";
    const options = isMade
      ? await this.#ctx.step(questionKey(at, "with"), (info) => {
          // What people are asked about is what is there.
          this.#outputs.check(true);
          return this.#gate(approve as never, this.#work(info));
        })
      : (approve as ApproveOptions);
    this.#outputs.holdValue(at, await this.#ctx.approve(at, this.#byOthers(options)));
  }

  /** Nobody approves of what they have done themselves. */
  #byOthers(options: ApproveOptions): ApproveOptions {
    const { fourEyes, actor, notBy = [] } = options;
    if (fourEyes !== true || actor !== undefined) return options;
    const involved = [...new Set([...notBy, ...this.#doers])];
    return { ...options, fourEyes: involved.length > 0, notBy: involved };
  }

  #gate(approve: ApproveOptions | ((work: Work) => ApproveOptions), work: Work): ApproveOptions {
    if (typeof approve === "function") return approve(work);
    const action = approve.action as unknown as (work: Work) => ApproveOptions["action"];
    return { ...approve, action: action(work) };
  }

  async #sleep({ at, spec }: Unit): Promise<void> {
    this.#mark(at, { status: "in_progress" });
    await this.#ctx.sleep(spec.sleep ?? 0);
    this.#mark(at, { status: "done" });
  }

  async #waitFor({ at, spec }: Unit): Promise<void> {
    const { signal, ...options } = typeof spec.waitFor === "object" ? spec.waitFor : { signal: spec.waitFor ?? at };
    this.#mark(at, { status: "in_progress" });
    const value = await this.#ctx.waitFor(signal, options);
    this.#mark(at, { status: "done", output: value });
    this.#outputs.holdValue(at, value);
  }

  async #call({ at, spec }: Unit): Promise<void> {
    const { input, call } = spec;
    const given = typeof input === "function" ? await this.#asked(at, input as (work: Work) => unknown) : input;
    const times = (this.#calls.get(at) ?? 0) + 1;
    this.#calls.set(at, times);
    const key = times === 1 ? at : `${at}:${times}`;
    this.#outputs.holdValue(at, await this.#ctx.call(call as Workflow<unknown, unknown>, given, { key }));
  }

  #asked(at: string, ask: (work: Work) => unknown): Promise<unknown> {
    return this.#ctx.step(questionKey(at, "with"), (info) => ask(this.#work(info)));
  }

  // Work that is done outside

  async #manual({ at, spec }: Unit, check: () => void): Promise<void> {
    const { instructions = "", outputs = [] } = spec.manual ?? {};
    let work: ManualWork = { ticket: this.#ticket(), at, instructions, outputs };
    this.#mark(at, { status: "pending" });
    this.#ctx.set(MANUAL, work);
    for (;;) {
      const message = await this.#ctx.waitFor(MANUAL_SIGNAL);
      if (!isAbout(message, work)) continue;
      this.doneBy(message.by);
      if (message.action === "begin") {
        await this.#compared(at, check);
        work = { ...work, begunBy: message.by };
        this.#ctx.set(MANUAL, work);
        this.#mark(at, { status: "in_progress" });
        continue;
      }
      this.#ctx.set(MANUAL, null);
      if (message.action === "fail") throw new Error(message.reason);
      this.#mark(at, { status: "done", output: message.outputs, by: message.by });
      return this.#outputs.holdFiles(at, message.outputs);
    }
  }

  async #compared(at: string, check: () => void): Promise<void> {
    try {
      await this.#ctx.step(questionKey(at, "with"), check);
    } catch (error) {
      this.#ctx.set(MANUAL, null);
      throw error;
    }
  }

  #mark(at: string, mark: PhaseMark): void {
    this.#ctx.set(markKey(at), mark);
  }
}

/** Nobody finishes what was not begun, or without the files that it is for; a message about an earlier time is passed over. */
function isAbout(message: unknown, { ticket, outputs, begunBy }: ManualWork): message is ManualMessage {
  const { ticket: about, action, outputs: given } = (message ?? {}) as Partial<ManualMessage> & { outputs?: unknown };
  if (about !== ticket) return false;
  if (action === "begin") return true;
  if (begunBy === undefined) return false;
  if (action === "fail") return true;
  if (action !== "done" || !Array.isArray(given) || !given.every(isOutputFile)) return false;
  return outputs.every((file) => (given as OutputFile[]).some((one) => one.file === file));
}

/** Whoever says no has decided: nobody else is asked. */
export function isDenial(error: unknown): boolean {
  const codes = ["approval_denied", "approval_expired", "approval_refused", "changes_requested"] as const;
  return codes.some((code) => hasCode(error, code));
}

function optionsOf({ kind, timeout, retry, recovery, spend, breaker }: Unit["spec"]): EffectOptions {
  return {
    ...(kind !== undefined && { kind }),
    ...(timeout !== undefined && { timeout }),
    ...(retry !== undefined && { retry }),
    ...(recovery !== undefined && { recovery }),
    ...(spend !== undefined && { spend }),
    ...(breaker !== undefined && { breaker }),
  };
}

/** What of an effect must be known before it is called. */
function describe({ detect, undo, class: kind, idempotent, key, keyScope, needs }: Spec) {
  return {
    hasDetect: detect !== undefined,
    hasUndo: undo !== undefined,
    ...(kind !== undefined && { class: kind }),
    ...(idempotent !== undefined && { idempotent }),
    ...(key !== undefined && { key }),
    ...(keyScope !== undefined && { keyScope }),
    ...(needs !== undefined && { needs }),
  };
}

/** The same effect, with a key that stays what it was when a person has it tried again, and a look at the files of earlier phases. */
function guarded(spec: Spec, check: () => void): Spec {
  const { detect, undo } = spec;
  return {
    ...spec,
    do(info) {
      check();
      return spec.do(stable(info));
    },
    ...(detect !== undefined && { detect: (info: StepInfo) => detect.call(spec, stable(info)) }),
    ...(undo !== undefined && {
      undo: (value: unknown, info: UndoInfo) =>
        undo.call(spec, value, infoWith(stable(info), { undoes: firstKey(info.undoes) })),
    }),
  };
}

function stable(info: StepInfo): StepInfo {
  return infoWith(info, {
    get key() {
      return firstKey(info.key);
    },
  });
}

/** The key of a step that a person had tried again is that of its first time: what is outside must recognise it. */
export function firstKey(key: string): string {
  return key.replace(/#\d+$/, "");
}
