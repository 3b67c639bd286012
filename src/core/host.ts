import type { KeyScope } from "./key-scope.ts";

/** What the pure engine needs from the machine it runs on; simulations bring their own. */
export interface Host {
  /** Runs `fn` in the next check phase, with all microtasks drained before and after; calls keep their order. */
  immediate(fn: () => void): void;
  /** Runs `fn` as soon as the microtasks that are queued now, and those they queue, have run. */
  tick(fn: () => void): void;
  /** A collision-free digest of a text or of bytes, in 22 characters. */
  digest(data: string | Uint8Array): string;
  /** The async context: which run, and whether its body or one of its steps is running. */
  enter<T>(frame: Frame | undefined, fn: () => T): T;
  enter<T, A>(frame: Frame | undefined, fn: (arg: A) => T, arg: A): T;
  frame(): Frame | undefined;
}

/** Where code is running: in the body of a run, or inside one attempt of one of its steps. */
export interface Frame {
  readonly where: "body" | "step";
  readonly run: string;
  /** The pass this frame belongs to; opaque here. */
  readonly pass: object;
  readonly scope: KeyScope;
  readonly guard: "warn" | "error" | "off";
  readonly step?: StepFrame;
}

/** Inside a step, time and chance come from a stream of (run, key, attempt) (P7). */
export interface StepFrame {
  readonly call: { readonly key: string; readonly start: string };
  readonly attempt: number;
  random(): number;
  uuid(): string;
}
