// What people and programs outside ask of the engines
// Each task is done by some process; when that dies, or cannot, another one does it. An answer is compared with the store at once: what a caller
// was told is true from then on.
import { encode } from "../../base/codec.ts";
import { jsonCodec } from "../../base/envelope.ts";
import { hasCode } from "../../base/errors.ts";
import type { Pawl } from "../../client/pawl.ts";
import type { Ended } from "../../core/journal.ts";
import { openEntry } from "../../core/values.ts";
import { Bursts } from "./bursts.ts";
import type { Checks } from "./checks.ts";
import type { Disk } from "./disk.ts";
import type { Life } from "./life.ts";
import { Operators } from "./operators.ts";
import { People } from "./people.ts";
import { isIll, isMeant, limitsOf, type ProgramInput, signalPayload } from "./program.ts";
import type { RunPlan, Scenario, SignalPlan } from "./scenario.ts";
import type { Situation } from "./situations.ts";
import type { VirtualTime } from "./virtual-time.ts";

export interface DriverPorts {
  readonly time: VirtualTime;
  readonly disk: Disk;
  readonly checks: Checks;
  /** A process that can be asked now, preferably this one. */
  lifeFor(slot: number): Life | null;
  violated(invariant: string, what: string): void;
  sometimes(what: Situation): void;
}

export type Answer = "done" | "again";

export interface Task {
  readonly name: string;
  readonly at: number;
  /** The process that is asked first. */
  readonly by: number;
  /** Done again if a power cut may have undone it. */
  readonly isRepeatable?: boolean;
  do(pawl: Pawl, life: Life): Promise<Answer>;
  /** What to make of an error; by default it is tried again. */
  readonly failed?: (error: unknown) => Answer;
  /** What to make of the death of whoever was asked; by default somebody else is. */
  readonly died?: () => Answer;
}

interface Asked {
  readonly task: Task;
  state: "open" | "asked" | "done";
  life: Life | null;
}

const AGAIN_MS = 150;
/** How often somebody looks whether a start of unknown outcome has left a run, and how long after each other. */
const LOOKS = 20;
const LOOK_MS = 700;

export class Driver {
  readonly #ports: DriverPorts;
  readonly #scenario: Scenario;
  readonly #asked: Asked[] = [];
  /** The ids of the runs, as far as anybody knows them. */
  readonly #ids: (string | null)[];
  /** Nobody will ever know an id of these. */
  readonly #isGivenUp: boolean[];
  readonly people: People;
  readonly operators: Operators;
  readonly bursts: Bursts;
  #searches = 0;
  #mayBeLost = false;

  constructor(scenario: Scenario, ports: DriverPorts) {
    this.#ports = ports;
    this.#scenario = scenario;
    this.people = new People({ ...ports, add: (task) => this.#add(task) });
    this.#ids = scenario.runs.map((run, i) => (run.how === "id" ? `run-${i}` : null));
    this.#isGivenUp = scenario.runs.map(() => false);
    for (const [i, run] of scenario.runs.entries()) this.#plan(run, i);
    for (const signal of scenario.signals) this.#planSignal(signal);
    this.bursts = new Bursts(scenario.bursts ?? [], { ...ports, add: (task) => this.#add(task) });
    this.operators = new Operators(scenario.operators ?? [], {
      ...ports,
      add: (task) => this.#add(task),
      idOf: (run) => this.#ids[run] ?? (this.#isGivenUp[run] ? "none" : null),
      start: (run, pawl, life) => this.#startAgain(run, pawl, life),
      mayBeLost: () => this.#mayBeLost,
      signal: (...sent) => this.#send(...sent),
    });
  }

  get isDone(): boolean {
    return this.#searches === 0 && this.#asked.every((asked) => asked.state === "done");
  }

  /** What is still to be done, by name. */
  open(): string[] {
    return this.#asked.filter((asked) => asked.state !== "done").map((asked) => asked.task.name);
  }

  /** Whoever was asked will not answer. */
  died(life: Life): void {
    for (const asked of this.#asked)
      if (asked.life === life && asked.state === "asked") this.#settle(asked, asked.task.died?.() ?? "again");
  }

  /** What was acknowledged may be gone. */
  lost(): void {
    this.#mayBeLost = true;
    this.bursts.lost();
    for (const asked of this.#asked)
      if (asked.task.isRepeatable === true && asked.state === "done") this.#settle(asked, "again");
  }

  #plan(run: RunPlan, i: number): void {
    const { at, by, cancelAt } = run;
    const isPlain = run.how === "plain";
    const start: Task = {
      name: `start run ${i}`,
      at,
      by,
      isRepeatable: !isPlain,
      do: (pawl, life) => this.#start(run, i, pawl, life),
      failed: (error) => this.#startFailed(run, i, error),
      ...(isPlain ? { died: () => this.#search(i) } : {}),
    };
    this.#add(start);
    if (run.twice) this.#add({ ...start, by: by + 1 });
    const failed = (error: unknown) => this.#goneOr(error, i);
    if (run.awaited)
      this.#add({ name: `result of run ${i}`, at: at + 50, by: by + 1, do: (pawl) => this.#result(i, pawl), failed });
    if (cancelAt !== null)
      this.#add({
        name: `cancel run ${i}`,
        at: at + cancelAt,
        by: by + 1,
        do: (pawl) => this.#cancel(i, run.compensate === true, pawl),
        failed,
      });
  }

  async #start(run: RunPlan, i: number, pawl: Pawl, life: Life): Promise<Answer> {
    const { program, rounds, fails, budget } = run;
    const input: ProgramInput = { program, rounds, done: [], fails, ...(budget !== undefined && { budget }) };
    const options = {
      ...(budget === undefined ? {} : { budget: limitsOf(budget) }),
      ...(run.how === "id" ? { id: `run-${i}` } : {}),
      ...(run.how === "key" ? { key: `key-${i}` } : {}),
      ...(run.delayMs > 0 ? { delay: run.delayMs } : {}),
    };
    const { id } = await (life.workflow === null
      ? pawl.start("program", input, options)
      : pawl.start(life.workflow, input, options));
    if (!this.#ports.disk.tables.runs.has(id))
      this.#ports.violated("I1", `the start of run ${id} was acknowledged, and it is not there`);
    const known = this.#ids[i] ?? null;
    const isRetry = known !== null && known !== id && this.operators.isFrom(id, known);
    if (isRetry) this.#ports.sometimes("a start by its key gave the retry of a run");
    if (known !== null && known !== id && !isRetry && !this.#mayBeLost)
      this.#ports.violated("I17", `run ${i} was started as ${known} and as ${id}`);
    if (known !== null) this.#ports.sometimes("a repeated start gave the same run");
    if (!isRetry) this.#ids[i] = id;
    return "done";
  }

  async #startAgain(i: number, pawl: Pawl, life: Life): Promise<Answer> {
    const run = this.#scenario.runs[i] as RunPlan;
    return run.how === "plain" ? "done" : this.#start(run, i, pawl, life);
  }

  #startFailed(run: RunPlan, i: number, error: unknown): Answer {
    if (hasCode(error, "idempotency_conflict"))
      this.#ports.violated("I17", `a repeated start of run ${i} met a conflict: ${error}`);
    const isSure = hasCode(error, "storage_unavailable") || hasCode(error, "unknown_workflow");
    return run.how !== "plain" || isSure ? "again" : this.#search(i);
  }

  /** Nobody can tell whether it was started, and it must not be started again. But if it was, it must finish like any other. */
  #search(i: number, looks: number = LOOKS): "done" {
    this.#searches++;
    this.#ports.time.after(LOOK_MS, () => {
      this.#searches--;
      const found = this.#strayLike(i);
      if (found !== null) {
        this.#ports.sometimes("a start of unknown outcome had left a run");
        this.#ids[i] = found;
      } else if (looks > 0) this.#search(i, looks - 1);
      else this.#isGivenUp[i] = true;
    });
    return "done";
  }

  #strayLike(i: number): string | null {
    const { program, rounds, fails } = this.#scenario.runs[i] as RunPlan;
    const wanted = JSON.stringify([program, rounds, fails]);
    for (const [id, { row }] of this.#ports.disk.tables.runs) {
      if (row.parent !== null || row.origin !== null || this.#ids.includes(id)) continue;
      const input = this.#ports.checks.inputOf(id);
      if (input !== null && JSON.stringify([input.program, input.rounds, input.fails]) === wanted) return id;
    }
    return null;
  }

  async #result(i: number, pawl: Pawl): Promise<Answer> {
    const id = this.#ids[i] ?? null;
    if (id === null) return this.#unknown(i);
    const told = await pawl
      .get(id)
      .result()
      .catch((error: unknown) => {
        if (hasCode(error, "cancelled") || isMeant(error) || isIll(error) || ENDS.some((code) => hasCode(error, code)))
          return error;
        throw error;
      });
    const last = this.#ports.checks.journalOf(id).at(-1);
    if (this.#ports.checks.endOf(id) === null || last === undefined) {
      this.#ports.violated("I1", `a caller was told the result of run ${id}, which has not ended`);
      return "done";
    }
    const { payload } = openEntry(jsonCodec, id, last);
    const recorded = comparable(last.type === "run.succeeded" ? payload : (payload as Ended).error);
    if (recorded !== comparable(told))
      this.#ports.violated("I16", `a caller was told ${comparable(told)} of run ${id}, recorded is ${recorded}`);
    return "done";
  }

  async #cancel(i: number, compensate: boolean, pawl: Pawl): Promise<Answer> {
    const id = this.#ids[i] ?? null;
    if (id === null) return this.#unknown(i);
    const { outcome } = await pawl.cancel(id, { compensate });
    const end = this.#ports.checks.endOf(id);
    if (outcome === "cancelling" ? !this.#ports.checks.isCancelling(id) : end !== outcome)
      this.#ports.violated("I16", `a caller was told that run ${id} is ${outcome}; recorded is ${end}`);
    if (outcome === "succeeded") this.#ports.sometimes("a run ended before its cancel");
    return "done";
  }

  #planSignal(signal: SignalPlan): void {
    const send: Task = {
      name: `signal ${signal.signal} ${signal.n} to run ${signal.run}`,
      at: signal.at,
      by: signal.by,
      isRepeatable: true,
      do: (pawl) => this.#signal(signal, pawl),
      failed: (error) => this.#goneOr(error, signal.run),
    };
    this.#add(send);
    if (signal.twice) this.#add({ ...send, by: signal.by + 1 });
  }

  async #signal({ run, signal, n }: SignalPlan, pawl: Pawl): Promise<Answer> {
    const id = this.#ids[run] ?? null;
    if (id === null) return this.#unknown(run);
    return this.#send(id, signal, n, `${signal}-${n}`, pawl);
  }

  async #send(id: string, signal: string, n: number, messageId: string, pawl: Pawl): Promise<Answer> {
    await pawl.signal(id, signal, signalPayload(signal, n), { id: messageId });
    const stored = this.#ports.disk.tables.runs.get(id);
    const isUnread = stored?.inbox.some(({ row }) => row.id === messageId) === true;
    const { checks } = this.#ports;
    if (!isUnread && !checks.signals.has(id, messageId) && checks.endOf(id) === null)
      this.#ports.violated("I14", `signal ${messageId} to run ${id} was acknowledged, and it is not there`);
    return "done";
  }

  #unknown(i: number): Answer {
    return this.#isGivenUp[i] ? "done" : "again";
  }

  /** What to make of an error about a run that may have ended or may not be there. */
  #goneOr(error: unknown, i: number): Answer {
    const id = this.#ids[i] ?? null;
    if (hasCode(error, "run_ended")) {
      if (id !== null && this.#ports.checks.endOf(id) === null)
        this.#ports.violated("I14", `a message to run ${id} was refused as too late; it has not ended`);
      return "done";
    }
    // One that is not there is not there yet, or a power cut took it, and nobody starts a plain one again.
    const isGone = hasCode(error, "run_not_found") && this.#mayBeLost && this.#scenario.runs[i]?.how === "plain";
    return isGone ? "done" : "again";
  }

  #add(task: Task): void {
    const asked: Asked = { task, state: "open", life: null };
    this.#asked.push(asked);
    this.#ports.time.after(task.at, () => this.#ask(asked));
  }

  #settle(asked: Asked, answer: Answer): void {
    asked.state = answer === "done" ? "done" : "open";
    asked.life = null;
    if (answer === "again") this.#ports.time.after(AGAIN_MS, () => this.#ask(asked));
  }

  #ask(asked: Asked): void {
    const { task } = asked;
    if (asked.state !== "open") return;
    const life = this.#ports.lifeFor(task.by);
    if (life === null) return this.#settle(asked, "again");
    asked.state = "asked";
    asked.life = life;
    life.later(task.name, () => {
      const settle = (answer: Answer) => {
        if (asked.life === life && asked.state === "asked") this.#settle(asked, answer);
      };
      task.do(life.pawl as Pawl, life).then(settle, (error) => settle(task.failed?.(error) ?? "again"));
    });
  }
}

/** What runs end with that do things outside. */
const ENDS = [
  "approval_denied",
  "approval_expired",
  "approval_mismatch",
  "budget_exceeded",
  "changes_requested",
  "compensation_incomplete",
  "step_interrupted",
  "unsafe_retry",
] as const;

/** Errors are compared by what they say. */
function comparable(value: unknown): string {
  return encode(value instanceof Error ? `${value.name}: ${value.message}` : value);
}
