// The store port
// A store applies, it never decides: every rule travels inside the value it is handed, and the answer says per run what became of it. Every method is
// one atomic transition, durable when its promise resolves; of streams, what their port says (`streams.ts`). Only store time is compared.
//
//   ST1. A commit of a worker whose row is gone changes nothing at all (fencing, P20, P21).
//   ST2. (run, seq) is unique and dense; a commit whose `head` is not the next position conflicts (P15, I3).
//   ST3. A run's commit applies whole or not at all; its neighbours' fate does not depend on it (P16).
//   ST4. Whatever reaches a run from outside is an inbox row and a raised wake counter in one transaction (P18).
//   ST5. `commit` rejects with `storage_unavailable`: nothing was applied; with anything else: unknown, fence yourself before you look (P17).
import type { Clock } from "../base/clock.ts";
import type { AuditKeeper } from "./audit.ts";
import type { CatalogueKeeper } from "./catalogue.ts";
import type { CounterRefusal } from "./counters.ts";
import type { HoldKeeper } from "./holds.ts";
import type { StoredEntry } from "./journal.ts";
import type { PurgeRequest, RunReader } from "./run-query.ts";
import type { Isolation, Sql } from "./sql.ts";
import type { FileKeeper } from "./store-files.ts";
import type { StreamKeeper } from "./streams.ts";
import type { RunState } from "./transition.ts";
import type { Trigger } from "./trigger.ts";

export interface Store extends FileKeeper, StreamKeeper, RunReader, HoldKeeper, AuditKeeper, CatalogueKeeper {
  readonly kind: string;
  /** Store time as this process estimates it, and the timers that follow it. */
  readonly clock: Clock;
  /** The clock that leases are counted on: monotonic, not moved with `clock` by tests. */
  readonly leaseClock: Clock;
  /** How many commits may be under way at once; runs are spread over lanes by id. */
  readonly lanes: number;

  open(): Promise<void>;
  close(): Promise<void>;

  register(worker: NewWorker): Promise<void>;
  /** Renews the lease. `alive: false`: this incarnation was fenced. */
  heartbeat(worker: string): Promise<{ readonly alive: boolean; readonly others: number }>;
  /**
   * Renews the lease from outside the event loop, where a store can, until stopped. `beat()` tells it that the main loop still moves;
   * it stops renewing when that has not happened for `stallMs` (P26).
   */
  pulse?(worker: string, everyMs: number, stallMs: number): Pulse;
  workers(): Promise<WorkerRow[]>;
  /** Who owns runs, and how many. It counts them all: for people who look, not for what every worker asks all the time. */
  owners(): Promise<OwnerRow[]>;
  /** Ends incarnations. Their runs move to `successor`, or are released to whoever claims them next (P17, P20). */
  fence(request: FenceRequest): Promise<FenceReply>;
  /** Removes the worker's own row and hands its runs back without counting them as failed claims. */
  retire(worker: string): Promise<void>;

  /** Takes runs by priority and age. One whose slot is full or whose rate is used up is passed over and keeps nobody behind it waiting. */
  claim(request: ClaimRequest): Promise<ClaimedRun[]>;
  /** When the next sleeping run is due, or a used-up rate lets one begin, so that a worker can set its alarm. */
  nextWake(): Promise<number | null>;
  /**
   * Loads one run this worker already owns (P23), or takes one nobody owns, whatever its version (P19); `null` if it cannot be had. One that needs
   * a slot and has begun is taken only to be cancelled, or with `slotless` by somebody who will not let its body run.
   */
  take(worker: string, run: string, options?: { readonly slotless?: boolean }): Promise<ClaimedRun | null>;
  /** The runs a worker owns; with `news`, only those that have unread mail or an unseen cancel. */
  owned(worker: string, options: { readonly news: boolean }): Promise<Mail[]>;

  commit(commit: Commit): Promise<Verdict[]>;
  deliver(message: Message): Promise<Delivery>;

  /** Whether `transact` and `enlist` are there, and whether work in a transaction may wait for anything but SQL (P22). */
  readonly transactions?: "synchronous" | "asynchronous";
  /**
   * Runs a user's SQL and the commit that it leads to as one transaction: both or neither (I7). Any verdict but `applied` means that it was
   * rolled back, as does a rejection with what `work` threw; for others see ST5. The fence is looked at after the user's last statement (P22).
   */
  transact?(request: TransactRequest, work: (sql: Sql) => Sealed | Promise<Sealed>): Promise<Verdict>;
  /** Creates a run in a transaction that the user has opened: it is there if theirs commits. Throws at once if that is none of this store's. */
  enlist?(transaction: unknown, commit: RunCommit): Promise<Verdict>;

  /** Entries from `from` on, at most `limit`, oldest first. */
  journal(run: string, range?: { readonly from?: number; readonly limit?: number }): Promise<StoredEntry[]>;
  inbox(run: string): Promise<InboxRow[]>;
  waits(query: WaitQuery): Promise<WaitRow[]>;
  state(run: string): Promise<StateRow[]>;
  key(space: string, key: string): Promise<KeyRow | null>;
  counters(prefix: string): Promise<CounterRow[]>;

  /** Of these workflows, each version that unfinished runs have which nobody owns and which wait for no person, with some of those runs (P34). */
  unclaimed(query: UnclaimedQuery): Promise<UnclaimedRow[]>;
  /** Unfinished runs that nothing will ever wake (I10). */
  orphans(): Promise<OrphanRow[]>;
  /** Makes orphans claimable again; returns how many. */
  adopt(runs: readonly string[]): Promise<number>;
  /** Deletes at most `limit` finished runs that ended before the given times and that nobody holds, with all that belongs to them. */
  purge(request: PurgeRequest): Promise<number>;

  /** Calls back when something may have changed outside this process. Hints only: everything works with all of them lost (I12). */
  hints(listener: (hint: Hint) => void): () => void;
  /** `quick` leaves out what needs a walk through the whole store. */
  inspect(options?: { readonly quick?: boolean }): Promise<StoreReport>;
  /** Writes a consistent copy, if the store can. */
  backup?(file: string): Promise<void>;
}

export interface Hint {
  /** Something may have become claimable, or come by mail. */
  readonly isWork: boolean;
  /** Runs that have changed; `null`: any may have. */
  readonly runs: readonly string[] | null;
}

/** A hint that says no more than that something has changed. */
export const ANYTHING: Hint = { isWork: true, runs: null };

export interface Pulse {
  /** Lease-clock time at which the last confirmed heartbeat was sent (P37), or -Infinity once the worker was found fenced. */
  confirmedAt(): number;
  beat(): void;
  stop(): Promise<void>;
}

export interface NewWorker {
  /** Random, of one incarnation. */
  readonly id: string;
  readonly name: string;
  readonly leaseMs: number;
  readonly process: ProcessIdentity;
  readonly handles: readonly Handle[];
}

/** What tells a dead process from a live one on the same machine (P27). `null`: not known here. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startedAt: string | null;
  readonly boot: string;
  readonly pidNamespace: string | null;
}

/** A workflow version that a worker can run: all runs of the same major.minor whose patch is not newer (P34), unless `policy` says something else. */
export interface Handle {
  readonly workflow: string;
  readonly version: string;
  /** Only runs of this very version; or runs of any version. */
  readonly policy?: "exact" | "ignore";
  /** Versions that it can bring a run up from: "1.3" stands for all of 1.3. */
  readonly migrates?: readonly string[];
  /** How many runs may hold one slot of this workflow. Absent: any number. The last handle of a workflow counts. */
  readonly concurrency?: number;
  /** How many runs of one rate of this workflow may begin in any span of `perMs`. */
  readonly rate?: { readonly limit: number; readonly perMs: number };
  /** Events that start a run of it: whoever has only the store can read them here. */
  readonly on?: readonly Trigger[];
}

/**
 * What a run needs before it is claimed (I18). Whoever owns a run with a slot holds that slot, so nothing has to give it back; a rate is
 * needed once, by the first claim. Each begins with the name of the workflow whose handle has the limit, up to a slash.
 */
export interface Needs {
  readonly slot: string;
  readonly rate: string | null;
}

/** The lease of a worker of which the store itself knows that it is gone: its machine has restarted since (P29). */
export const LONG_DEAD_MS: number = -1e15;

export interface WorkerRow extends NewWorker {
  readonly startedAt: number;
  /** How much of the lease is left by store time; negative when it ran out. */
  readonly leaseLeftMs: number;
}

export interface OwnerRow {
  readonly worker: string;
  readonly runs: number;
}

export interface FenceRequest {
  readonly workers: readonly string[];
  /** Leaves those alone whose lease runs when this is applied: whoever found them silent may have looked long ago (I9, B18). */
  readonly ifExpired?: boolean;
  readonly successor?: NewWorker;
}

export interface FenceReply {
  /** With a successor: the runs it owns now, with what replaces the memory of them. */
  readonly moved: readonly Mail[];
  /** Without: how many runs became claimable. */
  readonly released: number;
}

export interface ClaimRequest {
  readonly worker: string;
  readonly handles: readonly Handle[];
  readonly limit: number;
  /** Whether a suspect, a run that died twice or more without progress, may be among them; at most one is (P28). */
  readonly suspect: boolean;
}

export interface ClaimedRun extends Mail {
  readonly row: RunRow;
  readonly journal: readonly StoredEntry[];
}

/** What an owner must know of a run: counter and unread rows are read in one snapshot (P18). */
export interface Mail {
  readonly run: string;
  readonly head: number;
  readonly wake: number;
  readonly cancel: string | null;
  readonly inbox: readonly InboxRow[];
}

export interface InboxRow {
  /** Order among the rows of one run. */
  readonly n: number;
  /** Chosen by the sender; a second message with the same id is the same message. */
  readonly id: string;
  readonly kind: "signal" | "child" | "decision" | "approval" | "callback";
  readonly name: string;
  readonly data: string | Uint8Array | null;
  readonly at: number;
}

export interface RunRow {
  readonly id: string;
  readonly workflow: string;
  readonly version: string;
  readonly state: RunState;
  readonly traceId: string;
  readonly key: string | null;
  readonly tags: readonly string[];
  readonly priority: number;
  readonly parent: ParentLink | null;
  /** The run this one was retried or forked from. */
  readonly origin: string | null;
  readonly createdAt: number;
  readonly endedAt: number | null;
  readonly deadline: number | null;
  /** Next position of the journal, as far as it was known when the row was last written; the journal itself may be longer. */
  readonly head: number;
  readonly headHash: string;
  readonly owner: string | null;
  /** Claimable since then; `null`: not claimable now. */
  readonly readyAt: number | null;
  /** Becomes claimable at this time. */
  readonly wakeAt: number | null;
  readonly wake: number;
  readonly cancel: string | null;
  /** Claims in a row that ended without progress, the current one included. */
  readonly claims: number;
  readonly stopReason: string | null;
  readonly progress: string | null;
  readonly cost: string | null;
  readonly codec: string;
  /** Held while the run has an owner. */
  readonly slot: string | null;
  /** Until the first claim. */
  readonly rate: string | null;
}

export interface ParentLink {
  readonly run: string;
  /** Key of the call in the parent, and the parent's generation: an old child must not answer a new call (P10). */
  readonly key: string;
  readonly generation: number;
  readonly detached: boolean;
}

export interface Commit {
  /** The incarnation that writes; `null` only to create runs that nobody owns yet. */
  readonly worker: string | null;
  /** Which of the lanes it goes through (default 0). All commits of a run go through one. */
  readonly lane?: number;
  readonly runs: readonly RunCommit[];
}

export interface TransactRequest {
  readonly lane: number;
  readonly isolation: Isolation;
  /** For each statement. */
  readonly timeoutMs: number;
  /** How long the transaction may do nothing; below the lease, so that a dead one does not block fencing (P22). */
  readonly idleMs: number;
}

/** What a transaction writes besides the user's SQL, and who it is that writes. */
export interface Sealed {
  readonly worker: string;
  readonly commit: RunCommit;
}

/** Everything one run has to write. Applied whole or not at all. */
export interface RunCommit {
  readonly run: string;
  /** Where the entries go: the position after the last acknowledged one. */
  readonly head: number;
  readonly entries: readonly StoredEntry[];
  readonly create?: NewRun;
  readonly row?: RowPatch;
  /** Refuse unless the wake counter still has this value (suspension, P18). */
  readonly ifWake?: number;
  /** Refuse if a cancel is set (terminal commits, P19). */
  readonly ifNotCancelled?: boolean;
  /** Inbox ids that these entries consume; refuse if one is consumed already (P5). */
  readonly consumes?: readonly string[];
  readonly children?: readonly NewChild[];
  readonly messages?: readonly Message[];
  readonly waits?: readonly WaitChange[];
  readonly state?: readonly StateRow[];
  readonly keys?: readonly NewKey[];
  readonly counters?: readonly CounterChange[];
}

export interface NewRun {
  readonly workflow: string;
  readonly version: string;
  readonly traceId: string;
  readonly key: string | null;
  readonly tags: readonly string[];
  readonly priority: number;
  readonly parent: ParentLink | null;
  readonly origin: string | null;
  readonly deadline: number | null;
  /** The creating worker takes it on the spot. */
  readonly claimed: boolean;
  /** Claimable from then on, when not claimed. */
  readonly readyAt: number;
  readonly codec: string;
  /** A run that needs something is never claimed on the spot: it would get ahead of others. */
  readonly needs?: Needs | null;
}

/** A child is created by its parent's commit, with its first entry. A child that exists already is left alone. */
export interface NewChild {
  readonly run: string;
  readonly create: NewRun;
  readonly entry: StoredEntry;
}

/** The fields that change. Absent: unchanged. */
export interface RowPatch {
  readonly state?: RunState;
  readonly version?: string;
  readonly head?: number;
  readonly headHash?: string;
  /** Gives the run up: nobody owns it afterwards. */
  readonly release?: boolean;
  readonly readyAt?: number | null;
  readonly wakeAt?: number | null;
  readonly claims?: number;
  readonly endedAt?: number;
  readonly stopReason?: string;
  readonly progress?: string;
  readonly cost?: string;
  readonly deadline?: number;
  /** What the run needs from now on. */
  readonly needs?: Needs;
  /** Its slot lets another run in: worth a hint. */
  readonly frees?: boolean;
  /** The run has ended: its waits, inbox rows and counters held in its name go. */
  readonly ended?: boolean;
}

export interface Message {
  readonly to: string;
  readonly id: string;
  readonly kind: "signal" | "child" | "decision" | "approval" | "callback" | "cancel";
  readonly name: string;
  readonly data: string | Uint8Array | null;
}

/** `duplicate`: a message with this id, or a cancel, had reached the run before. */
export type Delivery = "delivered" | "duplicate" | "ended" | "missing";

export type WaitKind = "timer" | "signal" | "child" | "retry" | "approval" | "callback" | "decision" | "slot" | "rate";

/** A wait row exists exactly while its call is open (I4). */
export type WaitChange =
  | {
      readonly open: {
        readonly key: string;
        readonly kind: WaitKind;
        readonly name: string;
        readonly due: number | null;
        readonly detail: string | null;
      };
    }
  | { readonly close: string }
  | { readonly closeAll: true };

export interface WaitRow {
  readonly run: string;
  readonly workflow: string;
  readonly key: string;
  readonly kind: WaitKind;
  readonly name: string;
  readonly due: number | null;
  readonly detail: string | null;
}

export interface WaitQuery {
  readonly run?: string;
  readonly kind?: WaitKind;
  readonly name?: string;
  /** Only those that follow this one: the last of the page before. They are listed by age of their run, then by key. */
  readonly after?: Pick<WaitRow, "run" | "key">;
  readonly limit?: number;
}

export interface StateRow {
  readonly key: string;
  readonly data: string | Uint8Array;
}

/** A key that may exist once: start keys, schedule slots, consumed approvals. */
export interface NewKey {
  readonly space: string;
  readonly key: string;
  readonly digest: string;
  /** Takes the key over from this run (retry moves the start key). */
  readonly from?: string;
}

export interface KeyRow {
  readonly run: string;
  readonly digest: string;
}

/** Adds `by`; refused if the sum would pass `max` or fall below zero. Slots, rates, budgets. */
export interface CounterChange {
  readonly key: string;
  readonly by: number;
  readonly max: number | null;
  /** Given back when the run ends, whatever way it ends. */
  readonly held: boolean;
  /**
   * The run that the counter belongs to: it is kept as long as that run is, under the key that `counterKey` gives. Where the run is gone, nothing
   * is counted any more and nothing refused.
   */
  readonly of?: string;
  /** A counter of the same run whose value counts instead of `max` where it is higher: the limit was raised. */
  readonly maxFrom?: string;
  /** Raises the counter to `by`, where it is lower, instead of adding. */
  readonly atLeast?: true;
}

export interface CounterRow {
  readonly key: string;
  readonly value: number;
}

export type Verdict =
  | { readonly run: string; readonly kind: "applied" }
  /** The journal's head is not where the commit expected it, or the run is not this worker's. */
  | { readonly run: string; readonly kind: "conflict"; readonly head: number }
  | { readonly run: string; readonly kind: "refused"; readonly why: "fenced" | "wake" | "cancel" | "consumed" }
  | { readonly run: string; readonly kind: "refused"; readonly why: "exists"; readonly holder: RunRow }
  | { readonly run: string; readonly kind: "refused"; readonly why: "key"; readonly holder: KeyRow }
  | CounterRefusal
  /** This run's part broke a rule of the store itself; its neighbours were applied. */
  | { readonly run: string; readonly kind: "failed"; readonly error: unknown };

export interface UnclaimedQuery {
  /** Absent: all that such runs have. */
  readonly workflows?: readonly string[];
  /** How many runs of each version are named at most. */
  readonly limit: number;
}

export interface UnclaimedRow {
  readonly workflow: string;
  readonly version: string;
  readonly runs: readonly string[];
}

export interface OrphanRow {
  readonly run: string;
  readonly state: RunState;
  readonly why: string;
}

export interface StoreReport {
  readonly store: string;
  readonly version: string;
  readonly schema: number;
  readonly settings: Readonly<Record<string, string | number>>;
  /** Faults found in the store itself, in plain words. */
  readonly faults: readonly string[];
}
