// Effects
// An outside action as the user gives it, and what the engine makes of it: its guard, and what becomes of it after a crash.
import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import type { ApprovalAction, ApprovalRecord } from "./approval.ts";
import type { StepPolicy } from "./call.ts";
import type { StepInfo, StepOptions } from "./context.ts";
import { assertDry, type Dry } from "./dry.ts";
import type { EffectClass } from "./journal.ts";
import { type Detected, type EffectPlan, isUnsafe, type UndoInfo } from "./undoable-call.ts";

/** An action outside, and how it is recognised and taken back. */
export interface EffectSpec<T> {
  /** Does it. `info.key` is the same in every attempt: pass it on as an idempotency key. */
  do(info: StepInfo): T | Promise<T>;
  /** Finds out whether it happened; asked before it is tried again, and with `onMissing: "execute"` before the first attempt as well. It must not change anything. */
  detect?(info: StepInfo): Detected<T> | Promise<Detected<T>>;
  /** Takes it back if the run fails later. Gets what `do` returned, or `undefined` if nobody can tell whether it happened; must be safe to repeat. */
  undo?(value: T | undefined, info: UndoInfo): unknown;
  /** A key of the business, such as an order number: used as it is. */
  readonly key?: string;
  /** What `info.key` is derived from: this step (default), or the run as a whole. */
  readonly keyScope?: "step" | "run";
  /** What it may change. Default "write". */
  readonly class?: EffectClass;
  /** The outside recognises a repetition by the key, or by itself; "natural": doing it again leaves the same, as overwriting does. Default false. */
  readonly idempotent?: boolean | "natural";
  /** Somebody must have approved this very action: with anything else than that, it does not begin (`approval_mismatch`). */
  readonly needs?: NeededApproval;
  /** What it comes to in a dry run, where nothing is recorded: an answer, or "run" if it changes nothing. Default: "run" for class "read". */
  readonly dry?: Dry<T>;
}

/** What `ctx.approve` gave, and the action as it is about to be done. */
export interface NeededApproval {
  readonly approval: ApprovalRecord;
  readonly action: ApprovalAction;
  /** The policy that is in force now. Default: that of the approval. */
  readonly policyVersion?: string;
  /** Who must have approved by the rules of today. Default: whoever was asked. */
  readonly approvers?: readonly string[];
}

/** How an effect is run. */
export interface EffectOptions extends Pick<StepOptions, "kind" | "timeout" | "retry" | "spend" | "breaker"> {
  /**
   * What happens if a crash interrupts it. Default: "detect" with a `detect`; "rerun" if it is idempotent, reads or drafts; otherwise "ask", which
   * parks the run until a person has looked.
   */
  readonly recovery?: StepPolicy["recovery"];
}

const CLASSES: readonly EffectClass[] = ["read", "draft", "write", "execute"];

/** What a spec says about its action, checked. */
export function planOf(name: string, spec: EffectSpec<unknown>, seed: string, mayBeLost: boolean): EffectPlan {
  if (typeof spec?.do !== "function") {
    throw invalid(name, "do", `needs a function \`do\`: ctx.effect("${name}", { do: async ({ key }) => … }).`);
  }
  for (const part of ["detect", "undo"] as const) {
    if (spec[part] !== undefined && typeof spec[part] !== "function")
      throw invalid(name, part, `\`${part}\` is a function.`);
  }
  const { class: kind = "write", keyScope = "step", key, detect, idempotent = false } = spec;
  if (!CLASSES.includes(kind))
    throw invalid(name, "class", `\`class\` is "${kind}". Give one of ${CLASSES.join(", ")}.`);
  if (keyScope !== "step" && keyScope !== "run")
    throw invalid(name, "keyScope", `\`keyScope\` is "${keyScope}". Give "step" or "run", or a \`key\` of your own.`);
  if (typeof idempotent !== "boolean" && idempotent !== "natural")
    throw invalid(name, "idempotent", `\`idempotent\` is "${idempotent}". Give true, false or "natural".`);
  if (key !== undefined) assertName("key of ctx.effect", key);
  assertDry(`ctx.effect("${name}")`, spec.dry);
  return {
    class: kind,
    guard: detect !== undefined ? "detect" : idempotent === false ? "none" : "idempotent",
    key: key ?? (keyScope === "run" ? seed : null),
    approval: spec.needs?.approval?.id ?? null,
    detect: detect === undefined ? null : (info) => detect.call(spec, info),
    mayBeLost,
  };
}

/** What becomes of it after a crash, or an error that leaves open whether it happened. Refuses what would repeat it blindly. */
export function recoveryOf(
  name: string,
  plan: EffectPlan,
  spec: EffectSpec<unknown>,
  { recovery, retry }: EffectOptions,
): StepPolicy["recovery"] {
  const unsafe = isUnsafe(plan);
  if (unsafe && (recovery === "rerun" || (retry !== undefined && retry !== false))) throw unsafeRetry(name, plan.class);
  if (recovery === "detect" && plan.detect === null)
    throw invalid(name, "recovery", 'recovery "detect" needs a function `detect`.');
  if (recovery === "compensate" && spec.undo === undefined)
    throw invalid(name, "recovery", 'recovery "compensate" needs a function `undo`.');
  if (recovery !== undefined) return recovery;
  if (unsafe) return "ask";
  return plan.guard === "detect" ? "detect" : "rerun";
}

function invalid(name: string, field: string, what: string): PawlError {
  return new PawlError("invalid_argument", `ctx.effect("${name}"): ${what}`, { fields: { effect: name, field } });
}

function unsafeRetry(name: string, kind: EffectClass): PawlError {
  return new PawlError(
    "unsafe_retry",
    `Effect "${name}" has class "${kind}" and nothing that keeps it from happening twice, so it is not repeated by itself. ` +
      'Give it a `detect`, or `idempotent: true` if the outside recognises its key; or leave out `retry` and recovery "rerun".',
    { fields: { effect: name, class: kind } },
  );
}
