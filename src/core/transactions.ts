// Transactions
// Steps whose outcome is written by the database transaction that holds the user's SQL. The store runs it and applies the batch that it is
// given here; what became of that the pass learns as of any other batch, also after an unknown outcome (P17).
//
//   TX1. Outcome and SQL are one transaction: both are there, or neither (I7). What is rolled back leaves no trace, so nothing waits for the
//        mark that a transaction has begun, and one that a crash has interrupted is run again, whatever it does.
//   TX2. The batch takes all that the run has to write, with the outcome at its end. No other batch of the run is under way then, and until the
//        store has answered no turn opens and nothing joins the draft (P15): the outcome can still be taken back.
//   TX3. The next turn is the outcome's, before any other and before a cancel: its place in the journal is taken (P2).
//   TX4. Other work of the run goes on beside a transaction, unless that may not wait for anything, or sees the journal as it was when it began:
//        such a one begins when the run could write its outcome, and nothing joins the draft before it is decided.
import type { TransactionCall } from "./call.ts";
import type { Batch } from "./draft.ts";
import type { Pass } from "./pass.ts";
import type { Sql } from "./sql.ts";
import type { Outcome } from "./steps.ts";
import { whyNot } from "./transaction-function.ts";

/** What its function returned, on its way to the journal. */
type Returned = Pick<Outcome, "text" | "payload">;

/** An outcome that is in the journal, waiting for its turn. */
export interface Committed {
  readonly call: TransactionCall;
  readonly at: number;
  readonly payload: unknown;
}

/** How a try to run a transaction ended, if not with its outcome in the journal. */
export interface Undone {
  /** What its function threw, or the database had against it. */
  readonly error?: unknown;
  /** Nothing speaks against the transaction itself: it is tried again, and that is no attempt of its own. */
  readonly isAgain?: true;
}

/** Thrown out of the store's transaction to have it rolled back; it is for the engine only. */
class RollBack extends Error {}

export interface TransactionEvents {
  /** Starts the function of the call, whose `sql` is set. */
  start(call: TransactionCall): void;
  /** The attempt has failed and was rolled back. */
  failed(call: TransactionCall, error: unknown): void;
}

/** One way of a call through a transaction of the store. */
class Try {
  readonly call: TransactionCall;
  returned: Returned | null = null;
  error: { readonly value: unknown } | null = null;
  /** Holds the draft back from its beginning on (TX4). */
  readonly isExclusive: boolean;
  isSealed = false;
  hasLanded = false;
  /** For work that has to wait until the run may write its outcome: gives the store what that is. */
  seal: ((batch: Batch) => void) | null = null;
  rollBack: () => void = () => {};

  constructor(call: TransactionCall, isExclusive: boolean) {
    this.call = call;
    this.isExclusive = isExclusive;
  }
}

export class Transactions {
  readonly #pass: Pass;
  readonly #events: TransactionEvents;
  /** Calls that have to begin, or begin again. */
  readonly #ready: TransactionCall[] = [];
  readonly #tries = new Map<TransactionCall, Try>();
  #committed: Committed | null = null;
  #isAskingForSafety = false;

  constructor(pass: Pass, events: TransactionEvents) {
    this.#pass = pass;
    this.#events = events;
  }

  get isQuiet(): boolean {
    return this.#ready.length === 0 && this.#tries.size === 0 && this.#committed === null;
  }

  get hasCommitted(): boolean {
    return this.#committed !== null;
  }

  takeCommitted(): Committed | null {
    const committed = this.#committed;
    this.#committed = null;
    return committed;
  }

  add(call: TransactionCall): void {
    this.#ready.push(call);
  }

  /** Begins what can begin, and lets one transaction write its outcome if the run has nothing under way. */
  goOn(): void {
    if (!this.#mayWrite) return;
    this.#refuse();
    for (const call of this.#take((one) => !this.#isExclusive(one))) this.#begin(call, false);
    const returned = [...this.#tries.values()].find(
      (one) => one.seal !== null && one.returned !== null && !one.isSealed,
    );
    const isHeld = this.#pass.draft.isHeld && returned?.isExclusive !== true;
    if (isHeld || this.#pass.outgoing.isBusy || this.#pass.draft.isCreating) return;
    if (returned !== undefined) return this.#isSafe() ? returned.seal?.(this.#seal(returned)) : undefined;
    if (this.#ready.length === 0 || !this.#isSafe()) return;
    for (const call of this.#take((_, i) => i === 0)) this.#beginAlone(call);
  }

  /** Whether a batch may be written now (TX2), if no other is under way. A run that nobody has accepted yet is created on the usual way. */
  get #mayWrite(): boolean {
    const pass = this.#pass;
    return pass.isLive && !pass.isInTurn && !pass.isClosed && pass.cancelling === null && this.#committed === null;
  }

  #isExclusive({ isolation }: TransactionCall): boolean {
    return this.#pass.ports.transactions === "synchronous" || isolation !== "read committed";
  }

  #take(isMeant: (call: TransactionCall, i: number) => boolean): TransactionCall[] {
    const ready = this.#ready.splice(0);
    this.#ready.push(...ready.filter((call, i) => !isMeant(call, i)));
    return ready.filter((call, i) => isMeant(call, i) && call.open);
  }

  /** Fails what cannot run in this store at all. */
  #refuse(): void {
    const { transactions } = this.#pass.ports;
    const why = (call: TransactionCall) => whyNot(transactions, call.name, call.work);
    for (const call of this.#take((one) => why(one) !== null)) this.#events.failed(call, why(call));
  }

  #beginAlone(call: TransactionCall): void {
    this.#pass.draft.hold();
    this.#begin(call, true);
  }

  /** Whether this worker surely owns the run; if not, it goes on when that is known. */
  #isSafe(): boolean {
    const { ports } = this.#pass;
    if (ports.mayStart()) return true;
    if (this.#isAskingForSafety) return false;
    this.#isAskingForSafety = true;
    ports.whenSafe(() => {
      this.#isAskingForSafety = false;
      this.#pass.evaluate();
    });
    return false;
  }

  #begin(call: TransactionCall, isExclusive: boolean): void {
    const { ports } = this.#pass;
    const attempt = new Try(call, isExclusive);
    this.#tries.set(call, attempt);
    const isSynchronous = ports.transactions === "synchronous";
    const work = (sql: Sql) => (isSynchronous ? this.#workNow(attempt, sql) : this.#work(attempt, sql));
    void ports.transact(this.#pass, call, work).then((undone) => this.#decided(attempt, undone));
  }

  #workNow(attempt: Try, sql: Sql): Batch {
    attempt.call.mayWait = false;
    if (!this.#pass.isClosed && this.#pass.ports.mayStart()) this.#start(attempt, sql);
    if (attempt.returned === null) throw new RollBack();
    return this.#seal(attempt);
  }

  #work(attempt: Try, sql: Sql): Promise<Batch> {
    return new Promise((seal, reject) => {
      attempt.seal = seal;
      attempt.rollBack = () => reject(new RollBack());
      this.#start(attempt, sql);
    });
  }

  #start(attempt: Try, sql: Sql): void {
    attempt.call.sql = sql;
    this.#events.start(attempt.call);
  }

  /** The function has returned. */
  returned(call: TransactionCall, returned: Returned): void {
    const attempt = this.#tries.get(call);
    if (attempt === undefined || attempt.error !== null) return;
    attempt.returned = returned;
    this.#pass.evaluate();
  }

  /** The function has thrown, or took too long: it counts when the transaction was rolled back. False: no transaction is open. */
  threw(call: TransactionCall, error: unknown): boolean {
    const attempt = this.#tries.get(call);
    if (attempt === undefined) return false;
    attempt.error ??= { value: error };
    attempt.rollBack();
    return true;
  }

  /** Rolls back whatever has not reached its last statement. */
  abortAll(): void {
    this.#ready.length = 0;
    for (const attempt of this.#tries.values()) if (!attempt.isSealed) attempt.rollBack();
  }

  #seal(attempt: Try): Batch {
    const { draft, ports } = this.#pass;
    const { call } = attempt;
    const { text, payload } = attempt.returned as Returned;
    attempt.isSealed = true;
    let at = 0;
    const batch = draft.takeWithOutcome(ports.clock.now(), call.key, text, () => {
      attempt.hasLanded = true;
      this.#committed = { call, at, payload };
    });
    at = draft.at;
    this.#pass.outgoing.send(batch);
    return batch;
  }

  #decided(attempt: Try, undone: Undone): void {
    const { call } = attempt;
    const pass = this.#pass;
    this.#tries.delete(call);
    call.sql = null;
    if (pass.isOver) return;
    if (attempt.isExclusive && !attempt.isSealed) pass.draft.release();
    if (!attempt.hasLanded && call.open) this.#goBack(attempt, undone);
    if (!pass.draft.isEmpty) pass.ports.dirty(pass);
    pass.evaluate();
  }

  #goBack(attempt: Try, { error, isAgain }: Undone): void {
    if (attempt.error !== null && isAgain !== true) this.#events.failed(attempt.call, attempt.error.value);
    else if (error !== undefined) this.#events.failed(attempt.call, error);
    else this.add(attempt.call);
  }
}
