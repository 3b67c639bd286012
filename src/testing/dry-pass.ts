// A dry pass
// The code of a workflow run against a recorded journal, and nothing else: no store, no worker, no step.
//
//   DP1. Nothing is ever durable, so nothing passes a barrier: no step begins, no child starts, no log line appears (P13).
//   DP2. A turn opens for a recorded outcome alone. Time stands still before everything that is due.
//   DP3. It is over when the code has ended, has left the journal, or has followed it to its end and is quiet.
import { type Clock, systemClock } from "../base/clock.ts";
import { jsonCodec } from "../base/envelope.ts";
import { messageOf, PawlError } from "../base/errors.ts";
import { Alarms } from "../core/alarms.ts";
import { callSite } from "../core/call-site.ts";
import type { Log } from "../core/context.ts";
import type { Chain } from "../core/draft.ts";
import type { Host } from "../core/host.ts";
import { type Entry, entryKind, type Parked } from "../core/journal.ts";
import { Pass } from "../core/pass.ts";
import type { PassPorts } from "../core/pass-ports.ts";
import type { Redactors } from "../core/redactor.ts";
import type { RunRow } from "../core/store.ts";
import { Timeouts } from "../core/timeouts.ts";
import { Turns, type TurnTaker } from "../core/turns.ts";
import { openEntry } from "../core/values.ts";
import type { Workflow } from "../core/workflow.ts";
import { nodeHost } from "../worker/node-host.ts";

export interface DryInput {
  readonly row: RunRow;
  readonly workflow: Workflow;
  /** One generation's entries. */
  readonly entries: readonly Entry[];
  readonly generation: number;
  readonly chain: Chain;
  /** The code is to end or to continue: it is given time to, if it awaits something of its own. */
  readonly mustEnd: boolean;
  /** How long the code may await something of its own. */
  readonly quietMs: number;
  readonly redaction: Redactors;
  /** Digests as the journal has them; a redacted one fits any input. */
  readonly digest: (pass: Pass, data: string | Uint8Array) => string;
}

/** What the code did past the journal's end. */
export interface DryOutcome {
  /** The entries that it would have written. */
  readonly written: readonly Entry[];
  /** Where in the code the first call among them was issued, by its position. */
  readonly sites: ReadonlyMap<number, string>;
  /** It was parked: it left the journal, or could not go on. */
  readonly parked: Parked | null;
  /** Something in the engine or the codec failed. */
  readonly fault: string | null;
  /** Calls that wait for their outcome, as keys. */
  readonly open: readonly string[];
  /** How the body came to its end; `null`: it did not. */
  readonly body: BodyEnding | null;
}

/** `returned`, or `threw` with the error. */
export type BodyEnding = { readonly threw: false } | { readonly threw: true; readonly error: unknown };

/** Runs the code along the journal and says what it did at its end. */
export function runDry(input: DryInput): Promise<DryOutcome> {
  return new Promise((resolve) => new DryPass(input, resolve).begin());
}

/** The first one is what matters to a reader. */
const MAX_SITES = 1;

function isCall(entry: Entry): boolean {
  return entryKind(entry) === "call";
}

const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

class DryPass {
  readonly #input: DryInput;
  readonly #resolve: (outcome: DryOutcome) => void;
  readonly #pass: Pass;
  readonly #turns: DryTurns;
  readonly #timers = new Set<() => void>();
  readonly #written: Entry[] = [];
  readonly #sites = new Map<number, string>();
  #fault: string | null = null;
  #body: BodyEnding | null = null;
  #forgetQuiet: () => void = () => {};
  #isOver = false;

  constructor(input: DryInput, resolve: (outcome: DryOutcome) => void) {
    this.#input = input;
    this.#resolve = resolve;
    this.#turns = new DryTurns(nodeHost, () => this.#look());
    const { row, entries, generation, chain } = input;
    const workflow = this.#observed(input.workflow);
    const mail = { wake: 0, cancel: null, inbox: [] };
    this.#pass = new Pass({ row, workflow, entries, generation, chain, mail, readAt: 0 }, this.#ports());
    this.#turns.mayOpen = () => !this.#pass.isLive || this.#pass.replay.hasFound;
  }

  /** The same workflow; how its body ends is noted beside the way, which stays as it is. */
  #observed(workflow: Workflow): Workflow {
    const { handler } = workflow.definition;
    const observe: typeof handler = (ctx, given) => {
      const ending = handler(ctx, given);
      // Nothing but a promise: the `then` of anything else may be what does the work, and is called once.
      if (ending instanceof Promise) {
        Promise.prototype.then.call(
          ending,
          () => {
            this.#body ??= { threw: false };
          },
          (error: unknown) => {
            this.#body ??= { threw: true, error };
          },
        );
      }
      return ending;
    };
    return { ...workflow, definition: { ...workflow.definition, handler: observe } };
  }

  begin(): void {
    this.#pass.begin();
    this.#look();
  }

  #ports(): PassPorts {
    const host: Host = { ...nodeHost, digest: (data) => this.#input.digest(this.#pass, data) };
    const timeouts = new Timeouts(host);
    return {
      host,
      turns: this.#turns,
      timeouts,
      alarms: new Alarms(STILL, timeouts),
      clock: STILL,
      leaseClock: { ...STILL, after: (ms, fire) => this.#after(Math.min(ms, this.#input.quietMs), fire) },
      codec: jsonCodec,
      log: silent,
      redaction: this.#input.redaction,
      secrets: null,
      random: () => 0,
      files: null,
      dirty: () => this.#dirty(),
      mayStart: () => false,
      streams: { dirty: () => {}, forget: () => {} },
      transactions: "asynchronous",
      transact: () => new Promise(() => {}),
      whenSafe: () => {},
      readMail: () => {},
      adopts: () => false,
      notifies: false,
      // Nobody is given a token here: it need only be the same each time.
      callbackSecrets: { current: "", proof: (_secret, id) => nodeHost.digest(id), isProof: () => false },
      adopt: () => {},
      committed: () => {},
      executed: () => {},
      mailed: () => {},
      isHere: () => false,
      mayLinger: () => false,
      over: () => {},
      broken: (_pass, error) => {
        this.#fault ??= messageOf(error);
        this.#finishSoon();
      },
    };
  }

  /** Takes what was written, and forgets what was to follow its commit (DP1). The code is still on the stack if it has just issued a call. */
  #dirty(): void {
    const entries = this.#pass.draft.take().commit.entries.map((entry) => openEntry(jsonCodec, this.#pass.id, entry));
    this.#written.push(...entries);
    const call = entries.find(isCall);
    if (call !== undefined && this.#sites.size < MAX_SITES) this.#sites.set(call.seq, callSite());
    this.#look();
  }

  /** Decides whether anything more is to come. */
  #look(): void {
    if (this.#isOver) return;
    this.#forgetQuiet();
    if (this.#pass.isClosed) return this.#finishSoon();
    if (!this.#pass.isLive || this.#turns.isWanted) return;
    if (this.#input.mustEnd && !this.#written.some(isCall))
      this.#forgetQuiet = this.#after(this.#input.quietMs, () => this.#finish());
    else this.#finishSoon();
  }

  /** What the code does in the same moment still counts. */
  #finishSoon(): void {
    nodeHost.immediate(() => {
      if (this.#turns.isWanted && !this.#pass.isClosed) return;
      this.#finish();
    });
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { id, calls } = this.#pass;
    const open = calls.all().map(({ type, key }) => `${type} ${key}`);
    this.#dirty();
    const [written, body] = [this.#written, this.#body];
    this.#pass.drop(new PawlError("run_ended", `The replay of run ${id} is over.`));
    for (const forget of this.#timers) forget();
    const parked = (written.find(({ type }) => type === "run.parked")?.payload ?? null) as Parked | null;
    this.#resolve({ written, sites: this.#sites, parked, fault: this.#fault, open, body });
  }

  #after(ms: number, fire: () => void): () => void {
    const stop = systemClock.after(ms, () => {
      this.#timers.delete(forget);
      fire();
    });
    const forget = () => {
      this.#timers.delete(forget);
      stop();
    };
    this.#timers.add(forget);
    return forget;
  }
}

/** Opens turns for recorded outcomes alone (DP2). */
class DryTurns extends Turns {
  mayOpen: () => boolean = () => true;

  override request(taker: TurnTaker): void {
    if (this.mayOpen()) super.request(taker);
  }
}

/** A time at which nothing is due. */
export const STILL: Clock = { now: () => 0, monotonic: () => 0, at: () => () => {}, after: () => () => {} };
