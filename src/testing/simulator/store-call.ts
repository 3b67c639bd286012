import type { Store } from "../../core/store.ts";

export type Method = Exclude<
  keyof Store,
  | "kind"
  | "files"
  | "clock"
  | "leaseClock"
  | "lanes"
  | "open"
  | "close"
  | "pulse"
  | "hints"
  | "inspect"
  | "backup"
  | "transactions"
  | "transact"
  | "enlist"
>;

/** The methods that simulated processes call, and whether they write. */
export const METHODS: Readonly<Record<Method, boolean>> = {
  register: true,
  heartbeat: true,
  workers: false,
  owners: false,
  fence: true,
  retire: true,
  claim: true,
  nextWake: false,
  take: true,
  owned: false,
  commit: true,
  deliver: true,
  emit: true,
  chunks: false,
  run: false,
  runs: false,
  journal: false,
  inbox: false,
  waits: false,
  state: false,
  key: false,
  counters: false,
  unclaimed: false,
  orphans: false,
  adopt: true,
  purge: true,
  hold: true,
  releaseHold: true,
  holds: false,
  counts: false,
  record: true,
  audits: false,
  auditHead: false,
  describe: true,
  workflows: false,
};

/** A call, and when it was made. */
export interface StoreCall {
  readonly pid: number;
  readonly method: Method;
  readonly args: readonly unknown[];
  readonly wall: number;
  readonly monotonic: number;
}

export function callStore(store: Store, method: Method, args: readonly unknown[]): Promise<unknown> {
  return (store[method] as (...args: readonly unknown[]) => Promise<unknown>)(...args);
}

export function noTimer(): never {
  throw new Error("a store sets no timers");
}
