import type { StepInfo } from "../core/context.ts";

/** What a detector says: it happened, with what came of it, or it did not. */
export type Detected<T> = { readonly found: true; readonly value: T } | { readonly found: false };

export interface UndoInfo extends StepInfo {
  readonly undoes: string;
}

/** What `ctx.effect` takes. */
export interface EffectSpec<T> {
  do(info: StepInfo): T | Promise<T>;
  /** Did it happen? Must not write. Asked before `do` is tried again. */
  detect?(info: StepInfo): Detected<T> | Promise<Detected<T>>;
  /** Takes it back; gets what `do` returned. Must be safe to repeat. */
  undo?(value: T | undefined, info: UndoInfo): unknown;
  readonly key?: string;
  readonly keyScope?: "step" | "run";
  readonly class?: "read" | "draft" | "write" | "execute";
  readonly idempotent?: boolean;
}
