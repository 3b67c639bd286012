import type { Clock } from "../base/clock.ts";
import type { Codec } from "../base/envelope.ts";
import type { Alarms } from "./alarms.ts";
import type { TransactionCall } from "./call.ts";
import type { CallbackSecrets } from "./callback.ts";
import type { Log } from "./context.ts";
import type { Batch, Chain, Draft } from "./draft.ts";
import type { Host } from "./host.ts";
import type { Entry, StoredEntry } from "./journal.ts";
import type { MailState } from "./mailbox.ts";
import type { Pass } from "./pass.ts";
import type { Redactors } from "./redactor.ts";
import type { SecretSource } from "./secret-source.ts";
import type { Sql } from "./sql.ts";
import type { NewRun, RunCommit, RunRow, Store } from "./store.ts";
import type { StoreFiles } from "./store-files.ts";
import type { StreamSink } from "./streams.ts";
import type { Timeouts } from "./timeouts.ts";
import type { Undone } from "./transactions.ts";
import type { Turns } from "./turns.ts";
import type { Workflow } from "./workflow.ts";

export interface PassInput {
  readonly row: RunRow;
  readonly workflow: Workflow;
  /** The recorded entries of the current generation. */
  readonly entries: readonly Entry[];
  readonly generation: number;
  /** Where the journal ends, or will end once `draft` is written. */
  readonly chain: Chain;
  /** Entries that are not durable yet, for a run that starts on the spot. */
  readonly draft?: Draft;
  readonly mail: MailState;
  /** Store time when the mail was read. */
  readonly readAt: number;
}

/** What a pass needs from the worker that holds it. All calls are synchronous; what takes time comes back as an event. */
export interface PassPorts {
  readonly host: Host;
  readonly turns: Turns;
  readonly alarms: Alarms;
  readonly timeouts: Timeouts;
  /** Store time. */
  readonly clock: Clock;
  /** Real time, for watchdogs. */
  readonly leaseClock: Clock;
  readonly codec: Codec;
  readonly log: Log;
  /** What is taken out of values before they are recorded. */
  readonly redaction: Redactors;
  /** What `info.secret` asks; `null`: this process was given no secrets. */
  readonly secrets: SecretSource | null;
  /** Chance that is not part of the journal: jitter. */
  random(): number;
  /** The pass has something to write. */
  dirty(pass: Pass): void;
  /** Whether the lease surely runs, so that a step may begin (P37). */
  mayStart(): boolean;
  /** Calls back once it does, unless the pass was lost meanwhile. */
  whenSafe(fn: () => void): void;
  /** What the store has of transactions. */
  readonly transactions: Store["transactions"] | null;
  /** Runs `work` in a transaction, with the batch that it gives. Resolves when that has landed, was taken back, or the pass is lost; never rejects. */
  transact(pass: Pass, call: TransactionCall, work: (sql: Sql) => Batch | Promise<Batch>): Promise<Undone>;
  /** Writes what attempts emit. */
  readonly streams: StreamSink;
  /** Asks for a fresh read of the run's inbox. */
  readMail(pass: Pass): void;
  /** Whether this worker would take a child of this workflow on the spot. */
  adopts(workflow: string, version: string): boolean;
  /** A child created as claimed by this worker is durable now. */
  adopt(child: AdoptedChild): void;
  /** This part of the pass's journal is durable now. */
  committed(pass: Pass, commit: RunCommit): void;
  /** An action outside that others may do as well is recorded, durably, as done. */
  executed(pass: Pass, effect: string, action: string): void;
  /** Messages or children for other runs are durable now. */
  mailed(): void;
  /** Where files of runs are kept, where the store says so. */
  readonly files: StoreFiles | null;
  /** Whether this worker sends notifications. */
  readonly notifies: boolean;
  /** What tokens of callbacks are made with; `null`: this process was given no secret. */
  readonly callbackSecrets: CallbackSecrets | null;
  /** Whether that run is in memory here and will answer soon (P33). */
  isHere(run: string): boolean;
  /** Whether a run that is due soon may wait in memory: nobody else is known to need its place (P33). */
  mayLinger(): boolean;
  /** The pass is over: it ended, was suspended or parked, and its last commit is durable. */
  over(pass: Pass, how: PassEnd): void;
  /** The pass cannot write what it has to: nothing of it is, and the run is loaded again later. */
  broken(pass: Pass, error: unknown): void;
}

export interface AdoptedChild {
  readonly run: string;
  readonly workflow: Workflow;
  readonly create: NewRun;
  readonly entry: StoredEntry;
}

export type PassEnd =
  | { readonly kind: "ended"; readonly state: "succeeded" | "failed" | "cancelled"; readonly text: string }
  | { readonly kind: "suspended" }
  | { readonly kind: "parked"; readonly message: string }
  /** The next generation starts from this entry; the mailbox goes with it. */
  | { readonly kind: "continued"; readonly entry: Entry; readonly chain: Chain };
