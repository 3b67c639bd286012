// A run made of phases
// Walks the phases of a plan in their order, over the context alone. Where it stands is in the journal: every step is a call, and what no call
// can tell (a person's decision, work outside) is noted as run state in the same turn.
//
//   PH1. Order comes from the definition; what is done is never executed again.
//   PH2. Nothing begins after a failed step before a person has decided.
//   PH3. What has been adopted is what its statuses say: done is done, in progress is pending, failed blocks.
//   PH4. The body never touches a file: whatever does, runs inside a step.
import { decode } from "../base/codec.ts";
import { hasCode, messageWithCause, PawlError, readProperty } from "../base/errors.ts";
import { adoptedPhases, hasBegun } from "../core/adopted-phases.ts";
import type { Context, StepInfo } from "../core/context.ts";
import { infoWith } from "../core/info-with.ts";
import {
  ADVANCE_SIGNAL,
  ADVANCE_TAG,
  type AdvanceMessage,
  BLOCKED,
  type Block,
  DECISION_SIGNAL,
  type DecisionMessage,
  GATE,
  type Gate,
  MANUAL,
  markKey,
  OUTLINE,
  type OutputFile,
  type PhaseMark,
  questionKey,
} from "../core/outline.ts";
import type { DocumentFile, PhaseRecord, StepRecord } from "../core/state-document.ts";
import { Deeds, firstKey, isDenial } from "./deeds.ts";
import { HeldOutputs } from "./held-outputs.ts";
import { formOf } from "./output-files.ts";
import type { PhasePlan, PlannedPhase, Unit } from "./phase-plan.ts";
import type { PhasesOptions, PhaseWork } from "./phase-spec.ts";

type Loose<T> = { readonly [K in keyof T]: T[K] | undefined } & { readonly file: string };
type Choice = { readonly choice: string; readonly reason?: string };

const NOT_IN_DOCUMENT = "not in the document that the run was taken over from";

export class PhaseRun {
  readonly #ctx: Context;
  readonly #input: unknown;
  readonly #plan: PhasePlan;
  readonly #options: PhasesOptions<never, never>;
  readonly #outputs: HeldOutputs;
  readonly #deeds: Deeds;
  readonly #adopted: Readonly<Record<string, PhaseRecord>>;
  #tickets = 0;
  /** Whether each phase waits until it is told to begin. */
  #isStepwise: boolean;
  /** Somebody has told the next phase to begin. */
  #mayBegin = false;
  /** The phase that was executed last. */
  #last: string | null = null;

  constructor(
    ctx: Context,
    input: unknown,
    plan: PhasePlan,
    options: PhasesOptions<never, never>,
    folder: (run: Context["run"]) => string,
  ) {
    this.#ctx = ctx;
    this.#input = input;
    this.#plan = plan;
    this.#options = options;
    this.#outputs = new HeldOutputs(plan, () => folder(ctx.run));
    this.#deeds = new Deeds(ctx, this.#outputs, {
      folder: () => folder(ctx.run),
      work: (info) => this.#work(info) as never,
      ticket: () => this.#ticket(),
    });
    this.#adopted = adoptedPhases(ctx.run.adopted).phases;
    this.#isStepwise = ctx.run.tags.includes(ADVANCE_TAG);
  }

  async go(): Promise<unknown> {
    this.#ctx.set(OUTLINE, this.#plan.outline);
    // A generation before this one may have left them.
    for (const key of [BLOCKED, GATE, MANUAL]) if (this.#ctx.get(key) != null) this.#ctx.set(key, null);
    for (const [key, value] of Object.entries(adoptedPhases(this.#ctx.run.adopted).state))
      if (this.#ctx.get(key) === undefined) this.#ctx.set(key, decode(JSON.stringify(value)));
    for (const [index, phase] of this.#plan.phases.entries()) await this.#phase(phase, index);
    const { result } = this.#options;
    if (result === undefined) return this.#outputs.summary();
    return this.#ctx.step("pawl:result", (info) => result(this.#work(info) as never));
  }

  async #phase(phase: PlannedPhase, index: number): Promise<void> {
    const adopted = this.#adopted[phase.name];
    if (adopted?.status === "done") return this.#take(phase, adopted);
    if (adopted === undefined && this.#isPassed(index)) {
      return this.#mark(phase.name, { status: "done", skipped: NOT_IN_DOCUMENT });
    }
    await this.#gate(phase);
    if (adopted?.status === "failed" && (await this.#takeFailed(phase, adopted))) return;
    // A phase that has begun elsewhere was on the way.
    const isOn = adopted !== undefined && hasBegun(adopted.status) ? true : await this.#isOnTheWay(phase);
    if (!isOn) return;
    for (const [place, unit] of phase.units.entries()) await this.#unit(unit, place === 0, adopted);
    this.#mayBegin = false;
    this.#last = phase.name;
  }

  /** A phase that is not in a document and lies before one that has begun was not on the way (S0-10). */
  #isPassed(index: number): boolean {
    return this.#plan.phases.slice(index + 1).some(({ name }) => hasBegun(this.#adopted[name]?.status ?? "pending"));
  }

  // Phase by phase

  async #gate(phase: PlannedPhase): Promise<void> {
    if (!this.#isStepwise || this.#mayBegin) return;
    const gate: Gate = { ticket: this.#ticket(), phase: phase.name, after: this.#last };
    this.#ctx.set(GATE, gate);
    const { to } = await this.#message<AdvanceMessage>(ADVANCE_SIGNAL, gate.ticket);
    this.#ctx.set(GATE, null);
    this.#mayBegin = true;
    if (to === "end") this.#isStepwise = false;
  }

  /** A message about an earlier wait, or one that was not made by the engine's methods, is passed over. */
  async #message<M extends { readonly ticket: string }>(signal: string, ticket: string): Promise<M> {
    for (;;) {
      const message = await this.#ctx.waitFor(signal);
      if (readProperty(message, "ticket") === ticket) return message as M;
    }
  }

  /** Asked once, and again if a person wants that; what is skipped has its record from the answer (S0-10). */
  async #isOnTheWay({ name, when, units }: PlannedPhase): Promise<boolean> {
    if (when === undefined) return true;
    for (;;) {
      try {
        return await this.#ctx.step(questionKey(name, "when"), async (info) => {
          this.#outputs.check(true);
          return (await when(this.#work(info) as never)) === true;
        });
      } catch (error) {
        const { choice } = await this.#decision(name, error, units[0]);
        if (choice === "skip") return false;
      }
    }
  }

  // One step

  async #unit(unit: Unit, isFirst: boolean, adopted: PhaseRecord | undefined): Promise<void> {
    const before = unit.step === null ? undefined : adopted?.steps?.[unit.step];
    if (before?.status === "done") return this.#hold(unit, before);
    if (before?.status === "failed" && (await this.#isSkipped(unit, new Error(before.error ?? "it failed")))) return;
    while (!(await this.#isDone(unit, isFirst))) {
      // Each round has been asked for by a person.
    }
  }

  /** False: somebody wants it tried again. */
  async #isDone(unit: Unit, isFirst: boolean): Promise<boolean> {
    try {
      if (!(await this.#isSatisfied(unit))) await this.#deeds.do(unit, isFirst);
      return true;
    } catch (error) {
      return this.#isSkipped(unit, error);
    }
  }

  async #isSatisfied({ at, spec }: Unit): Promise<boolean> {
    const { satisfied } = spec;
    if (satisfied === undefined) return false;
    return this.#ctx.step(questionKey(at, "satisfied"), async (info) => {
      return (await satisfied(this.#work(info) as never)) === true;
    });
  }

  // Failures

  /** Waits for a decision (PH2); true if the step is passed over by it. */
  async #isSkipped(unit: Unit, error: unknown): Promise<boolean> {
    const { choice } = await this.#decision(unit.at, error, unit);
    return choice === "skip";
  }

  async #decision(at: string, error: unknown, unit: Unit | undefined): Promise<Choice> {
    if (this.#ctx.signal.aborted || this.#options.onFailed === "fail" || isDenial(error)) throw error;
    const decision = await this.#block(at, error, unit);
    if (decision.choice === "skip") this.#mark(at, { status: "done", skipped: decision.reason ?? "skipped" });
    if (decision.choice === "rerun") await this.#rerun(error, at);
    return decision;
  }

  async #block(at: string, error: unknown, unit: Unit | undefined): Promise<Choice> {
    const lost = hasCode(error, "output_missing") ? readProperty(readProperty(error, "fields"), "at") : null;
    const of = typeof lost === "string" && this.#find(lost) !== undefined ? lost : null;
    const block: Block = {
      ticket: this.#ticket(),
      reason: of === null ? "phase_blocked" : "output_missing",
      at,
      ...(of !== null && { of }),
      error: messageWithCause(error),
      choices: choicesOf(of !== null, unit),
    };
    this.#mark(at, { status: "failed", error: block.error });
    this.#ctx.set(BLOCKED, block);
    for (;;) {
      const decision = await this.#message<DecisionMessage>(DECISION_SIGNAL, block.ticket);
      if (!block.choices.includes(decision.choice)) continue;
      this.#ctx.set(BLOCKED, null);
      return decision;
    }
  }

  /** What is lost is made again; what stands on it is left as it is, but for approvals: they were about what is lost. `at`: where that was noticed. */
  async #rerun(error: unknown, at: string): Promise<void> {
    const unit = this.#find(String(readProperty(readProperty(error, "fields"), "at")));
    if (unit === undefined) return;
    this.#outputs.forget(unit.at);
    await this.#unit(unit, false, undefined);
    const units = this.#plan.phases.flatMap((phase) => phase.units);
    const here = units.findIndex((one) => one.at === at || one.phase === at);
    for (const gate of units.slice(units.indexOf(unit) + 1, here))
      if (gate.deed === "approve" && this.#outputs.holds(gate.at)) await this.#unit(gate, false, undefined);
  }

  #find(at: string): Unit | undefined {
    return this.#plan.phases.flatMap(({ units }) => units).find((unit) => unit.at === at);
  }

  // What was done elsewhere

  #take(phase: PlannedPhase, adopted: PhaseRecord): void {
    for (const unit of phase.units) {
      const record = unit.step === null ? adopted : adopted.steps?.[unit.step];
      if (record !== undefined) this.#hold(unit, record);
    }
  }

  /** Whether a phase that failed elsewhere, none of whose steps is known to have failed, is passed over. */
  async #takeFailed(phase: PlannedPhase, adopted: PhaseRecord): Promise<boolean> {
    const isKnown = Object.values(adopted.steps ?? {}).some(({ status }) => status === "failed");
    if (isKnown) return false;
    const error = new Error(adopted.error ?? "it failed");
    const { choice } = await this.#decision(phase.name, error, phase.units[0]);
    if (choice === "skip") this.#mayBegin = false;
    return choice === "skip";
  }

  #hold({ at }: Unit, record: StepRecord): void {
    const { output_file, output_hash, output_size, output_form, output_files, output, done_by } = record;
    if (done_by !== undefined) this.#deeds.doneBy(done_by);
    if (output_files !== undefined) return this.#outputs.holdFiles(at, output_files.map(fileOf));
    const only = { file: output_file ?? "", hash: output_hash, size: output_size, form: output_form };
    if (output_file !== undefined) return this.#outputs.holdFiles(at, [fileOf(only)]);
    if (output !== undefined) this.#outputs.holdValue(at, decode(JSON.stringify(output)));
  }

  // Words

  /** A generation that goes on from another one counts from 1 again, but not at the same time. */
  #ticket(): string {
    return `${++this.#tickets}-${this.#ctx.now()}`;
  }

  #mark(at: string, mark: PhaseMark): void {
    this.#ctx.set(markKey(at), mark);
  }

  #work(info: StepInfo): PhaseWork<unknown, object> {
    const outputs = this.#outputs;
    return infoWith(info, {
      input: this.#input,
      outputs: outputs.forStep(),
      run: this.#ctx.run,
      get key() {
        return firstKey(info.key);
      },
      get files() {
        return outputs.files();
      },
    });
  }
}

/** A gate is not skipped: whoever may decide about the run is not who may approve. */
function choicesOf(isLost: boolean, unit: Unit | undefined): readonly string[] {
  const skip = unit?.deed === "approve" ? [] : ["skip"];
  return isLost ? ["rerun", "retry", "abort"] : ["retry", ...skip, "abort"];
}

function fileOf({ file, hash, size, form }: Loose<DocumentFile>): OutputFile {
  if (hash === undefined || size === undefined)
    throw new PawlError(
      "output_missing",
      `The document has no hash and size for the output file ${file}: nobody can tell whether it is what it was. Import the document again.`,
      { fields: { file } },
    );
  return { file, sha256: hash.replace(/^sha256:/, ""), bytes: size, as: form ?? formOf(file) };
}
