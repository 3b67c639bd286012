// Observation
// Everybody who watches one engine: its own counters and its watch for alerts, the log, and whoever the user has given. What one of them throws is
// told once and stops nothing.
import type { Codec } from "../base/envelope.ts";
import { messageOf } from "../base/errors.ts";
import type { Ids } from "../base/ids.ts";
import { ALERTS_WORKFLOW, type AlertKind, type AlertRules } from "../core/alert.ts";
import type { Log } from "../core/context.ts";
import type { Frame, Host } from "../core/host.ts";
import type { StoredEntry } from "../core/journal.ts";
import type { ObservedAttempt, ObservedRun, Observer } from "../core/observer.ts";
import type { Owners } from "../core/owners.ts";
import type { RunCommit, Store } from "../core/store.ts";
import { openEntry, openKey } from "../core/values.ts";
import { OperatingCounters } from "../observe/operating-counters.ts";
import type { RunFacts } from "../observe/run-facts.ts";
import { runLog } from "../observe/run-log.ts";
import type { Registry } from "../worker/registry.ts";
import type { WorkerEvents } from "../worker/worker-events.ts";
import { alertRules } from "./alert-options.ts";
import { AlertWatch, isRetry } from "./alert-watch.ts";
import { AlertReader } from "./alerts-run.ts";
import { recentFacts } from "./metrics.ts";
import type { PawlOptions } from "./pawl-options.ts";

export interface ObservationPorts {
  readonly store: Store;
  readonly codec: Codec;
  readonly host: Host;
  readonly ids: Ids;
  readonly log: Log;
  readonly registry: Registry;
  readonly rules: AlertRules | null;
  /** A message has been sent. */
  sent(): void;
}

/** Which of a workflow's owners an alert is for. */
const MATTERS_OF: Readonly<Record<AlertKind, keyof Owners>> = {
  retry_storm: "failed",
  stuck_approval: "waiting",
  duplicate_effect: "failed",
  replay_failure: "stuck",
  stranded_run: "stuck",
  orphaned_run: "stuck",
  parked_run: "stuck",
  compensation_incomplete: "compensating",
  budget_near: "stuck",
  budget_exceeded: "stuck",
};

const USUAL_RULES = alertRules() as AlertRules;

export class Observation {
  readonly ports: ObservationPorts;
  readonly counters: OperatingCounters = new OperatingCounters();
  readonly watch: AlertWatch | null;
  /** Whoever looks for none here can still ask for those that others have found. */
  readonly rules: AlertRules;
  readonly reader: AlertReader;
  /** The machine as runs see it: observers may be around what their steps do. */
  readonly host: Host;
  /** What runs that have ended have come to, for metrics. */
  readonly facts: Map<string, RunFacts> = new Map();
  readonly #observers: readonly Observer[];
  readonly #broken = new Set<Observer>();
  readonly #lookups = new Set<Promise<void>>();

  constructor({ observers = [], logger }: PawlOptions, ports: ObservationPorts) {
    this.ports = ports;
    const { rules, registry } = ports;
    const ownerOf = (workflow: string, kind: AlertKind) =>
      registry.newest(workflow)?.definition.owners[MATTERS_OF[kind]] ?? null;
    this.rules = rules ?? USUAL_RULES;
    this.reader = new AlertReader({ ...ports, rules: this.rules });
    const own = {
      ownerOf,
      reader: this.reader,
      isKeeper: registry.names.includes(ALERTS_WORKFLOW),
      factsSince: (time: number) => recentFacts(this, time),
    };
    this.watch = rules === null ? null : new AlertWatch({ ...ports, rules, ...own });
    // Without a logger only what somebody should act on is shown: the rest is not worth making.
    this.#observers = [...observers, ...(logger === undefined ? [] : [runLog(ports.log)])];
    this.host = this.#hostOf(ports.host);
    const journal = async (run: string) =>
      (await ports.store.journal(run)).map((entry) => ({
        ...openEntry(ports.codec, run, entry),
        hash: entry.hash,
      }));
    for (const observer of this.#observers) this.#guarded(observer, () => observer.watch?.({ journal }));
  }

  get events(): Pick<WorkerEvents, "committed" | "executed" | "orphaned" | "died" | "took" | "claimed" | "renewed"> {
    const { counters, watch } = this;
    return {
      committed: (run, commit) => this.#committed(run, commit),
      executed: (run, effect, action) => watch?.executed(run, effect, action),
      orphaned: (runs) => watch?.orphaned(runs),
      died: () => watch?.died(),
      took: ({ entries, ms }) => counters.took(entries, ms),
      claimed: (runs) => counters.claimed(runs),
      renewed: () => counters.missedLease(),
    };
  }

  /** Only a process that keeps alerts looks through the store by itself; all others tell what they see. */
  start(): void {
    if (this.watch?.isKeeper) this.watch.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#lookups);
    await this.#patiently(async () => this.watch?.stop());
    for (const observer of this.#observers) await this.#patiently(async () => observer.flush?.());
  }

  /** A start or a signal that had come before. */
  duplicate(run: string): void {
    this.counters.duplicate();
    if (this.watch === null) return;
    const lookup = this.#patiently(async () => {
      const row = await this.ports.store.run(run);
      if (row !== null) this.watch?.duplicate(run, row.workflow);
    }).finally(() => this.#lookups.delete(lookup));
    this.#lookups.add(lookup);
  }

  #committed(run: ObservedRun, commit: RunCommit): void {
    const { entries, waits } = commit;
    const named = this.#named(commit);
    this.counters.committed(run.id, named.entries, (entry) => isRetry(entry, waits));
    this.watch?.committed(run, named);
    if (this.#observers.length === 0 || entries.length === 0) return;
    const open = (entry: StoredEntry) => openEntry(this.ports.codec, run.id, entry);
    for (const observer of this.#observers) this.#guarded(observer, () => observer.committed?.({ run, entries, open }));
  }

  /** Where names are sealed, entries have them as they are kept, and everything else as it is. */
  #named(commit: RunCommit): RunCommit {
    const { codec } = this.ports;
    if (codec.names === undefined) return commit;
    return { ...commit, entries: commit.entries.map((entry) => ({ ...entry, key: openKey(codec, entry) })) };
  }

  #hostOf(host: Host): Host {
    const around = this.#observers.filter((observer) => observer.around !== undefined);
    if (around.length === 0) return host;
    const enter = <T, A>(frame: Frame | undefined, fn: (arg: A) => T, arg?: A): T => {
      const { step } = frame ?? {};
      if (frame === undefined || step === undefined) return host.enter(frame, fn, arg as A);
      const { row: run } = frame.pass as { readonly row: ObservedRun };
      const attempt = { run, step: step.call.key, attempt: step.attempt, start: step.call.start };
      const call = () => host.enter(frame, fn, arg as A);
      return around.reduce<() => T>((inner, one) => () => this.#around(one, attempt, inner), call)();
    };
    return { ...host, enter };
  }

  /** Whatever an observer throws around a step's function, the step comes to what its function came to. */
  #around<T>(observer: Observer, attempt: ObservedAttempt, inner: () => T): T {
    let came: { readonly value: T } | { readonly error: unknown } | null = null;
    const watched = (): T => {
      try {
        const value = inner();
        came = { value };
        return value;
      } catch (error) {
        came = { error };
        throw error;
      }
    };
    const settled = () => came;
    try {
      return observer.around?.(attempt, watched) as T;
    } catch (error) {
      const done = settled();
      if (done !== null && "error" in done) throw done.error;
      this.#failed(observer, error);
      return done === null ? inner() : done.value;
    }
  }

  #guarded(observer: Observer, body: () => void): void {
    try {
      body();
    } catch (error) {
      this.#failed(observer, error);
    }
  }

  #failed(observer: Observer, error: unknown): void {
    if (this.#broken.has(observer)) return;
    this.#broken.add(observer);
    this.ports.log.warn(`An observer has failed; the runs go on without it. ${messageOf(error)}`);
  }

  async #patiently(body: () => Promise<unknown>): Promise<void> {
    try {
      await body();
    } catch (error) {
      this.ports.log.warn(`What was observed could not be passed on. ${messageOf(error)}`);
    }
  }
}
