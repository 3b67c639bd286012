// Calls that can be undone
// A step with an `undo`, an effect, and the undo itself, which is a step of its own.
import { PawlError } from "../base/errors.ts";
import { StepCall, type StepPolicy } from "./call.ts";
import type { StepInfo } from "./context.ts";
import { infoWith } from "./info-with.ts";
import type { EffectPlanned, EffectUnknown, Entry, StepFailed, StepStarted } from "./journal.ts";
import { mayHaveHappened } from "./retry.ts";

export type Detected<T> = { readonly found: true; readonly value: T } | { readonly found: false };

/** What an `undo` receives: the same as a step, and the key that the action itself was given. */
export interface UndoInfo extends StepInfo {
  readonly undoes: string;
}

export type Undo = (value: unknown, info: UndoInfo) => unknown;

/** What the journal tells of an action's earlier attempts: whether one of them may have taken place, though the last one surely did not. */
export class EarlierAttempts {
  mayHaveHappened = false;
  /** What a person is asked about, if it was an error and not a crash. */
  doubt: { readonly error: unknown } | null = null;
  #isAsked = false;

  /** Takes a mark of the action in. */
  take(type: string, payload: unknown): void {
    if (type === "effect.unknown") this.#ask(payload as EffectUnknown);
    if (type === "step.failed") this.#failed(payload as StepFailed);
    if (type !== "step.started") return;
    // A crash cut the one before short. Where a person was asked, they have said that it did not happen.
    if ((payload as StepStarted)?.rerun === true && !this.#isAsked) this.mayHaveHappened = true;
    this.#isAsked = false;
    this.doubt = null;
  }

  #ask({ error }: EffectUnknown): void {
    this.#isAsked = true;
    if (error !== undefined) this.doubt = { error };
  }

  /** What was kept from beginning has not happened. */
  #failed({ error, hasBegun }: StepFailed): void {
    if (hasBegun !== false && mayHaveHappened(error)) this.mayHaveHappened = true;
  }
}

type Ending = { readonly kind: "done"; readonly value: unknown } | { readonly kind: "failed"; readonly error: unknown };

/** Whether an action that the run can take back is planned here. */
export function isUndoable({ type, payload }: Pick<Entry, "type" | "payload">): boolean {
  if (type !== "effect.planned" && type !== "step.started") return false;
  return (payload as { undo?: unknown } | null)?.undo === true;
}

/** Waits until what is under way has ended, but not for ever. */
export type Patience = (ended: Promise<unknown>) => Promise<void>;

export class UndoableCall extends StepCall {
  readonly undo: Undo | null;
  #ending: Ending | null = null;
  /** Attempts whose function has not ended yet, also if nobody waits for it any more. */
  #underWay: Set<Promise<unknown>> | null = null;
  /** Made on demand: most actions need one attempt. */
  #earlier: EarlierAttempts | null = null;

  constructor(
    key: string,
    name: string,
    fn: StepCall["fn"],
    policy: StepPolicy,
    input: StepCall["input"],
    seed: string,
    undo: Undo | null,
  ) {
    super(key, name, undo === null ? fn : (info) => this.#watch(fn(info)), policy, input, seed);
    this.undo = undo;
  }

  override get plan(): object | null {
    return { attempt: 1, ...super.plan, undo: true } satisfies StepStarted;
  }

  /** Remembers what has begun until it ends. Its `then` is called once: for some that is what begins it. */
  #watch(result: unknown): unknown {
    if (typeof (result as { then?: unknown } | null | undefined)?.then !== "function") return result;
    const running = Promise.resolve(result);
    this.#underWay ??= new Set();
    this.#underWay.add(running);
    const forget = () => void this.#underWay?.delete(running);
    running.then(forget, forget);
    return running;
  }

  override marked(type: string, payload: unknown): void {
    this.#earlier ??= new EarlierAttempts();
    this.#earlier.take(type, payload);
  }

  override get doubt(): { readonly error: unknown } | null {
    return this.#earlier?.doubt ?? null;
  }

  /** Its outcome is delivered. */
  ended(type: string, payload: unknown): void {
    this.#ending =
      type === "step.failed"
        ? { kind: "failed", error: (payload as StepFailed).error }
        : { kind: "done", value: payload };
  }

  /** It was done, or nobody can tell. By the journal alone, so that replay says the same. */
  get isToUndo(): boolean {
    if (this.undo === null || this.order < 0) return false;
    if (this.#ending?.kind !== "failed") return true;
    return mayHaveHappened(this.#ending.error) || this.#earlier?.mayHaveHappened === true;
  }

  /** What it returned, or how to find out whether it did anything; `null`: its outcome is unknown. */
  protected get done(): { readonly value: unknown } | null {
    return this.#ending?.kind === "done" ? this.#ending : null;
  }

  /**
   * Takes it back. Without a recorded outcome the value is `undefined`, unless it can be found. What was stopped and has not ended yet could
   * still take effect: looked for or taken back before that, it would be there afterwards.
   */
  async takeBack(info: StepInfo, patience: Patience): Promise<null> {
    const underWay = this.#underWay;
    this.#underWay = null;
    if (underWay !== null && underWay.size > 0) await patience(Promise.allSettled(underWay));
    const undoes = this.idempotencyKey;
    const found = this.done ?? (await this.lookFor(infoWith(info, { key: undoes, undoes })));
    if (found !== null) await this.undo?.(found.value, infoWith(info, { undoes }));
    return null;
  }

  /** `null` if it surely did not happen. */
  protected async lookFor(_info: StepInfo): Promise<{ readonly value: unknown } | null> {
    return { value: undefined };
  }
}

export interface EffectPlan {
  readonly class: EffectPlanned["class"];
  readonly guard: EffectPlanned["guard"];
  /** A key of the business, or the run's own; `null`: one of the step. */
  readonly key: string | null;
  /** The approval that it rests on. */
  readonly approval: string | null;
  readonly detect: ((info: StepInfo) => Detected<unknown> | Promise<Detected<unknown>>) | null;
  /** The journal may have been trimmed (`onMissing: "execute"`): that it says nothing of the action does not mean that it did not happen. */
  readonly mayBeLost: boolean;
}

/** An outside action in the ledger. */
export class EffectCall extends UndoableCall {
  readonly #facts: EffectPlan;
  /** Its key, as the journal has it. */
  #recorded: string | null = null;

  constructor(
    key: string,
    name: string,
    fn: StepCall["fn"],
    policy: StepPolicy,
    seed: string,
    undo: Undo | null,
    facts: EffectPlan,
  ) {
    super(key, name, (info) => this.#run(fn, info), policy, null, seed, undo);
    this.#facts = facts;
  }

  override get startsAs(): "effect.planned" {
    return "effect.planned";
  }

  override get endsAs(): "effect.executed" {
    return "effect.executed";
  }

  override get idempotencyKey(): string {
    return this.#recorded ?? this.#facts.key ?? super.idempotencyKey;
  }

  /** What the outside knows it by was said when it was planned: a fork, or newer code, might make another key of the same call (P10). */
  override planned(payload: unknown): void {
    this.#recorded = (payload as EffectPlanned).key;
  }

  override get plan(): object {
    const { class: kind, guard, approval } = this.#facts;
    const undo = this.undo !== null;
    const planned: EffectPlanned = { attempt: 1, class: kind, key: this.idempotencyKey, guard, undo };
    return approval === null ? planned : { ...planned, approval };
  }

  override get isUnsafe(): boolean {
    return isUnsafe(this.#facts);
  }

  override sharedAction(seed: string): string | null {
    const { approval, guard, class: kind } = this.#facts;
    const key = this.#facts.key === null ? null : this.idempotencyKey;
    return sharedActionOf(this.name, { class: kind, guard, approval, key: key === seed ? null : key });
  }

  override get looksFirst(): boolean {
    return this.#facts.detect !== null;
  }

  /** What was tried before may have happened, and so may what a trimmed journal does not know of: it is looked for first (T-19). */
  #run(fn: StepCall["fn"], info: StepInfo): unknown {
    const mayHaveHappenedBefore = info.attempt > 1 || this.#facts.mayBeLost;
    if (!mayHaveHappenedBefore || this.#facts.detect === null) return fn(info);
    return this.lookFor(info).then((found) => (found === null ? fn(info) : found.value));
  }

  protected override async lookFor(info: StepInfo): Promise<{ readonly value: unknown } | null> {
    const { detect } = this.#facts;
    if (detect === null) return super.lookFor(info);
    const detected = await detect(info);
    if (typeof detected?.found !== "boolean") throw unclear(this.key, detected);
    return detected.found ? { value: detected.value } : null;
  }
}

/** Neither yes nor no: to take it for one of them could do the action twice, or not at all. */
function unclear(effect: string, answer: unknown): PawlError {
  return new PawlError(
    "invalid_argument",
    `\`detect\` of effect "${effect}" returned ${answer === null ? "null" : typeof answer}. Return { found: true, value } or { found: false }.`,
    { fields: { effect, field: "detect" } },
  );
}

/**
 * What another effect that does the same would have in common with this one: its approval, or its name with a key of the business. `null` for one that
 * nobody else can be: what only reads or drafts harms nobody twice, and what is idempotent the outside knows again.
 */
export function sharedActionOf(
  name: string,
  { class: kind, guard, key, approval }: Pick<EffectPlan, "class" | "guard" | "key"> & { approval?: string | null },
): string | null {
  if (kind === "read" || kind === "draft") return null;
  if (approval != null) return `approval ${approval}`;
  return key === null || guard === "idempotent" ? null : `${name} ${key}`;
}

/** An action that changes the world, and that nothing keeps from happening twice. */
export function isUnsafe({ class: kind, guard }: Pick<EffectPlan, "class" | "guard">): boolean {
  return guard === "none" && (kind === "write" || kind === "execute");
}

/** What the key of an undo has more than that of its action. */
export const UNDO_SUFFIX = "/undo";

/** Takes back what a call has done. */
export class UndoCall extends StepCall {
  constructor(undone: UndoableCall, policy: StepPolicy, patience: Patience) {
    const fn = (info: StepInfo) => undone.takeBack(info, patience);
    super(`${undone.key}${UNDO_SUFFIX}`, undone.name, fn, policy, null, "");
    this.#undoes = undone.idempotencyKey;
  }

  readonly #undoes: string;

  override get endsAs(): "effect.compensated" {
    return "effect.compensated";
  }

  override get idempotencyKey(): string {
    return `${this.#undoes}${UNDO_SUFFIX}`;
  }
}
