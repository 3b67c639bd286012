// A mailbox
// Requests that any number of workers share. A letter is a run and each delivery a run below it, so leases, crashes, signals and shutdown are the
// engine's: what a dead worker was at goes to another one. The mailbox adds what becomes of a letter that fails.
//
//   MB1. A delivery that fails is followed by another after a while, up to a number; the letter then is a dead letter: a failed run that says why.
//   MB2. The sender hears once: with the answer, or with the error that was final. What is tried again is told to nobody.
//   MB3. A crash of a worker is no failed delivery: the same one goes on elsewhere.
import { type Duration, toMs } from "../base/duration.ts";
import { messageOf, PawlError, readProperty, TerminalError } from "../base/errors.ts";
import type { Pawl as Engine } from "../client/pawl.ts";
import type { Run } from "../client/run.ts";
import type { StartOptions } from "../client/start.ts";
import type { Context, StepInfo } from "../core/context.ts";
import { type Workflow, type WorkflowOptions, workflow } from "../core/workflow.ts";

/** What a mailbox needs of an engine. */
type Pawl = Pick<Engine, "start" | "list" | "get" | "retry">;

/** A request on its way. */
export interface Letter<I> {
  readonly request: I;
  /** Whom the answer is for; given to `reply`. */
  readonly replyTo?: unknown;
}

/** What the sender hears. */
export type Reply<O> =
  | { readonly ok: true; readonly value: O }
  | { readonly ok: false; readonly code: string; readonly message: string };

/** A letter that nothing could be done with. */
export interface DeadLetter<I = unknown> {
  /** The run of the letter: `mailbox.replay(pawl, run)` delivers it again. */
  readonly run: string;
  readonly request: I;
  readonly replyTo: unknown;
  readonly deliveries: number;
  readonly code: string;
  readonly message: string;
  readonly at: Date;
}

export interface MailboxOptions<I, O> extends Pick<WorkflowOptions, "version" | "deadline" | "owner"> {
  /** Unique among the workflows of a store. */
  readonly name: string;
  /** Works on a request: an agent, or any workflow. */
  readonly handler: Workflow<I, O>;
  /** How often a letter is delivered before it is dead. Default 5. */
  readonly maxDeliveries?: number;
  /** The pause after the n-th delivery. An error's own `retryAfter` goes first. Default: n minutes, at most 15. */
  readonly backoff?: (delivery: number) => Duration;
  /** Errors after which there is no other delivery, by code or stop reason. Default: what an agent will not do (`refused`), and input that does not fit. */
  readonly immediate?: readonly string[];
  /** Errors that never make a dead letter: it is delivered again until its deadline. Default: none. */
  readonly never?: readonly string[];
  /** How many letters may be undone; more are refused. Senders at the very same moment may pass it by as many as they are. Default: any number. */
  readonly capacity?: number;
  /** Tells the sender, once. It is a step: it is repeated if a crash interrupts it. */
  readonly reply?: (reply: Reply<O>, letter: Letter<I>, info: StepInfo) => unknown;
  /** Told of each dead letter, before it is one. A step as well. */
  readonly onDeadLetter?: (dead: Omit<DeadLetter<I>, "at">, info: StepInfo) => unknown;
}

export interface SendOptions extends Pick<StartOptions, "key" | "priority" | "delay" | "deadline" | "tags"> {
  readonly replyTo?: unknown;
}

/** A mailbox: give `workflows` to the processes that work. */
export interface Mailbox<I, O> extends Workflow<Letter<I>, O> {
  readonly workflows: readonly [Workflow<Letter<I>, O>, Workflow<I, O>];
  /** Puts a request in. The run's `result()` waits for the answer. */
  send(pawl: Pawl, request: I, options?: SendOptions): Promise<Run<O>>;
  /** Letters that are dead, the newest first; those that were delivered again since as well. */
  deadLetters(pawl: Pawl, query?: { readonly limit?: number }): Promise<DeadLetter<I>[]>;
  /** Delivers a dead letter once more; if that fails, it is dead again. */
  replay(pawl: Pawl, run: string): Promise<Run<O>>;
}

const MAX_DELIVERIES = 5;
const MINUTE_MS = 60_000;
const LONGEST_PAUSE_MS = 15 * MINUTE_MS;
const IMMEDIATE: readonly string[] = ["refused", "schema_mismatch", "invalid_argument"];
const DEAD = "deadLetter";
const PAGE = 100;

/** Makes a mailbox for an agent. */
export function mailbox<I, O>(options: MailboxOptions<I, O>): Mailbox<I, O> {
  const { name, handler, capacity, version, deadline, owner } = options;
  assertOptions(options);
  const rules = {
    name,
    ...(version !== undefined && { version }),
    ...(deadline !== undefined && { deadline }),
    ...(owner !== undefined && { owner }),
  };
  const letters = workflow<Letter<I>, O>(rules, (ctx, letter) => new Deliveries(options, ctx, letter).run());
  return {
    ...letters,
    workflows: [letters, handler],
    async send(pawl, request, { replyTo, ...start } = {}) {
      if (capacity !== undefined) await assertRoom(pawl, name, capacity);
      return pawl.start(letters, { request, ...(replyTo !== undefined && { replyTo }) }, start);
    },
    async deadLetters(pawl, { limit = PAGE } = {}) {
      const { runs } = await pawl.list({ workflow: name, status: "failed", limit });
      const dead: DeadLetter<I>[] = [];
      for (const { id, endedAt } of runs) {
        const { data } = await pawl.get(id).status();
        const said = data?.[DEAD] as Omit<DeadLetter<I>, "at"> | undefined;
        if (said !== undefined) dead.push({ ...said, run: id, at: endedAt ?? new Date(0) });
      }
      return dead;
    },
    replay: (pawl, run) => pawl.retry(run) as Promise<Run<O>>,
  };
}

/** The deliveries of one letter. */
class Deliveries<I, O> {
  readonly #options: MailboxOptions<I, O>;
  readonly #ctx: Context;
  readonly #letter: Letter<I>;

  constructor(options: MailboxOptions<I, O>, ctx: Context, letter: Letter<I>) {
    this.#options = options;
    this.#ctx = ctx;
    this.#letter = letter;
  }

  async run(): Promise<O> {
    const { handler } = this.#options;
    for (let delivery = 1; ; delivery++) {
      try {
        const call = this.#ctx.call as (...given: unknown[]) => Promise<O>;
        const value = await call.call(this.#ctx, handler, this.#letter.request, { key: `delivery-${delivery}` });
        await this.#reply({ ok: true, value });
        return value;
      } catch (error) {
        if (isOfTheLetter(error)) throw error;
        await this.#failed(delivery, error);
      }
    }
  }

  async #failed(delivery: number, failure: unknown): Promise<void> {
    const error = readProperty(failure, "cause") ?? failure;
    const { maxDeliveries = MAX_DELIVERIES, immediate = IMMEDIATE, never = [], backoff = minutes } = this.#options;
    const code = codeOf(error);
    const isDead = immediate.includes(code) || (delivery >= maxDeliveries && !never.includes(code));
    if (isDead) throw await this.#dead(delivery, code, messageOf(error), failure);
    const asked = readProperty(error, "retryAfter");
    const pause = typeof asked === "number" || typeof asked === "string" ? asked : backoff(delivery);
    this.#ctx.note(`Delivery ${delivery} has failed (${code}): ${messageOf(error)}`);
    await this.#ctx.sleep(pause);
  }

  async #dead(deliveries: number, code: string, message: string, cause: unknown): Promise<TerminalError> {
    const { onDeadLetter } = this.#options;
    const { request, replyTo = null } = this.#letter;
    const dead = { run: this.#ctx.run.id, request, replyTo, deliveries, code, message };
    this.#ctx.set(DEAD, dead);
    if (onDeadLetter !== undefined) await this.#ctx.step("dead-letter", (info) => onDeadLetter(dead, info));
    await this.#reply({ ok: false, code, message });
    const text = `Letter ${this.#ctx.run.id} of mailbox "${this.#options.name}" is dead after ${deliveries} deliveries: ${message}`;
    return Object.assign(new TerminalError(text, { cause }), { code, fields: { deliveries } });
  }

  async #reply(reply: Reply<O>): Promise<void> {
    const { reply: tell } = this.#options;
    if (tell !== undefined)
      await this.#ctx.step("reply", (info) => tell(reply, this.#letter, info), { retry: { on: "any" } });
  }
}

/** The letter itself is at its end, or the reply could not be given: that is no failed delivery. */
function isOfTheLetter(error: unknown): boolean {
  return readProperty(error, "code") !== "child_failed";
}

function minutes(delivery: number): number {
  return Math.min(delivery * MINUTE_MS, LONGEST_PAUSE_MS);
}

function codeOf(error: unknown): string {
  const code = readProperty(error, "code");
  return typeof code === "string" ? code : "error";
}

async function assertRoom(pawl: Pawl, name: string, capacity: number): Promise<void> {
  let undone = 0;
  for (const status of ["running", "waiting"] as const) {
    for (let cursor: string | null | undefined; undone < capacity && cursor !== null; ) {
      const page = await pawl.list({
        workflow: name,
        status,
        limit: Math.min(capacity, PAGE),
        ...(cursor !== undefined && { cursor }),
      });
      undone += page.runs.length;
      cursor = page.cursor;
    }
  }
  if (undone < capacity) return;
  throw new PawlError(
    "mailbox_full",
    `Mailbox "${name}" is full: ${capacity} letters are undone. Send it later, or raise \`capacity\`.`,
    { fields: { mailbox: name, capacity } },
  );
}

function assertOptions<I, O>({ name, maxDeliveries = 1, capacity = 1, backoff }: MailboxOptions<I, O>): void {
  for (const [field, value] of Object.entries({ maxDeliveries, capacity })) {
    if (Number.isSafeInteger(value) && value >= 1) continue;
    throw new PawlError(
      "invalid_argument",
      `\`${field}\` of mailbox "${name}" is ${value}. Give a whole number, at least 1.`,
      {
        fields: { mailbox: name, field },
      },
    );
  }
  if (backoff !== undefined) toMs(backoff(1), "backoff");
}
