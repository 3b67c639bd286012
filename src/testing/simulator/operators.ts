// Operators
// Those who retry, fork and cancel runs, as people do who look at a list of them: they do not know what else is going on. An answer that they do
// not get they ask for again, so there may be more forks than were planned. Whatever comes of it must end like any run.

import { jsonCodec } from "../../base/envelope.ts";
import { hasCode } from "../../base/errors.ts";
import type { Pawl } from "../../client/pawl.ts";
import { entryKind } from "../../core/journal.ts";
import type { RunRow } from "../../core/store.ts";
import { openEntry } from "../../core/values.ts";
import type { Checks } from "./checks.ts";
import type { Disk } from "./disk.ts";
import type { Answer, Task } from "./driver.ts";
import type { Life } from "./life.ts";
import { waitsOf } from "./program.ts";
import type { OperatorPlan } from "./scenario.ts";
import type { Situation } from "./situations.ts";

export interface OperatorPorts {
  readonly disk: Disk;
  readonly checks: Checks;
  add(task: Task): void;
  /** The id of a run of the scenario; `null`: nobody knows it yet; "none": nobody ever will. */
  idOf(run: number): string | "none" | null;
  /** Starts a run of the scenario once more, if it has an id or a key. */
  start(run: number, pawl: Pawl, life: Life): Promise<Answer>;
  /** What was acknowledged may be gone. */
  mayBeLost(): boolean;
  /** Sends a signal to a run and looks whether it is there. */
  signal(run: string, signal: string, n: number, messageId: string, pawl: Pawl): Promise<Answer>;
  violated(invariant: string, what: string): void;
  sometimes(what: Situation): void;
}

/** How long after each other the signals reach a fork that its source may have had. */
const SIGNAL_MS = 300;

export class Operators {
  readonly #ports: OperatorPorts;
  #isMended = false;
  #signals = 0;

  constructor(plans: readonly OperatorPlan[], ports: OperatorPorts) {
    this.#ports = ports;
    for (const [i, plan] of plans.entries()) this.#plan(plan, i);
  }

  /** Somebody has retried a run: what ailed is well. */
  get isMended(): boolean {
    return this.#isMended;
  }

  /** A run was forked, whoever knows of it: what its source may have been sent, it is sent as well. */
  forked(run: string): void {
    const input = this.#ports.checks.inputOf(run);
    if (input === null) return;
    for (const [signal, count] of waitsOf(input.program, input.rounds))
      for (let n = 0; n < count; n++)
        this.#ports.add({
          name: `signal ${signal} ${n} to fork ${run}`,
          at: SIGNAL_MS * (n + 1),
          by: this.#signals++,
          isRepeatable: true,
          do: (pawl) => this.#ports.signal(run, signal, n, `${signal}-${n}-to-${run}`, pawl),
          failed: (error) => (hasCode(error, "run_ended") || this.#isLost(error) ? "done" : "again"),
        });
  }

  #plan(plan: OperatorPlan, i: number): void {
    const task: Task = {
      name: `${plan.kind} ${plan.on} of run ${plan.run}`,
      at: plan.at,
      by: plan.by,
      isRepeatable: plan.isNamed,
      do: (pawl, life) => (plan.kind === "start" ? this.#ports.start(plan.run, pawl, life) : this.#do(plan, i, pawl)),
      failed: (error) => this.#failed(plan, error),
      ...(plan.isCareful && { died: () => "done" as const }),
    };
    this.#ports.add(task);
    if (plan.twice) this.#ports.add({ ...task, by: plan.by + 1 });
  }

  async #do(plan: OperatorPlan, i: number, pawl: Pawl): Promise<Answer> {
    const id = this.#target(plan);
    if (id === "none") return "done";
    if (id === null) return "again";
    if (plan.kind === "retry") return this.#retry(id, pawl);
    if (plan.kind === "fork") return this.#fork(id, plan, i, pawl);
    await pawl.cancel(id);
    return "done";
  }

  async #retry(id: string, pawl: Pawl): Promise<Answer> {
    const end = this.#ports.checks.endOf(id);
    if (end === "succeeded") return "done";
    if (end !== null) this.#isMended = true;
    this.#answered(id, (await pawl.retry(id)).id);
    return "done";
  }

  async #fork(id: string, plan: OperatorPlan, i: number, pawl: Pawl): Promise<Answer> {
    const at = this.#pointOf(id, plan);
    const run = await pawl.fork(id, { at, ...(plan.isNamed && { id: `fork-${i}-of-${id}` }) });
    this.#answered(id, run.id);
    return "done";
  }

  /** I1: whoever is told of a fork finds it. Whoever retries what has a start key may be told of the run that has the key by now (I17). */
  #answered(source: string, id: string): void {
    const { runs } = this.#ports.disk.tables;
    const told = runs.get(id)?.row;
    if (told === undefined)
      return this.#ports.violated("I1", `fork ${id} of run ${source} was acknowledged, and it is not there`);
    const isHeir = told.key !== null && told.key === runs.get(source)?.row.key;
    if (!isHeir && !this.isFrom(id, source))
      this.#ports.violated("S2-59", `an operator was told of run ${id}, which does not come from ${source}`);
  }

  #failed({ kind, run, isCareful }: OperatorPlan, error: unknown): Answer {
    if (hasCode(error, "run_ended") || this.#isLost(error)) return "done";
    const isSure = hasCode(error, "storage_unavailable") || hasCode(error, "invalid_argument");
    if (isCareful && !isSure) return "done";
    if (hasCode(error, "idempotency_conflict"))
      this.#ports.violated("I17", `a fork of run ${run} that was asked for again met a conflict: ${error}`);
    // A retry of one that has not ended is refused, and tried again later; any point of its journal is good for a fork.
    if (kind === "fork" && hasCode(error, "invalid_argument") && !this.#ports.mayBeLost())
      this.#ports.violated("S2-59", `a fork of run ${run} was refused: ${error}`);
    return "again";
  }

  #isLost(error: unknown): boolean {
    return hasCode(error, "run_not_found") && this.#ports.mayBeLost();
  }

  #target({ run, on }: OperatorPlan): string | "none" | null {
    const id = this.#ports.idOf(run);
    if (id === null || id === "none") return id;
    if (!this.#ports.disk.tables.runs.has(id) && this.#ports.mayBeLost()) return "none";
    if (on === "run") return id;
    const rows = [...this.#ports.disk.tables.runs.values()].map(({ row }) => row);
    if (on === "newest") return rows.findLast((row) => this.isFrom(row.id, id))?.id ?? id;
    const child = rows.find(({ parent }) => parent?.run === id)?.id;
    return child ?? (this.#ports.checks.endOf(id) === null ? null : "none");
  }

  /** Whether a run is a fork of another one, or of a fork of it. */
  isFrom(id: string, source: string): boolean {
    const rowOf = (one: string): RunRow | undefined => this.#ports.disk.tables.runs.get(one)?.row;
    for (let origin = rowOf(id)?.origin ?? null; origin !== null; origin = rowOf(origin)?.origin ?? null)
      if (origin === source) return true;
    return false;
  }

  #pointOf(id: string, { where, how }: OperatorPlan): number | string {
    const journal = this.#ports.checks.journalOf(id);
    const position = Math.max(1, Math.ceil(where * journal.length));
    if (how === "position") return position;
    const calls = journal
      .map((entry) => openEntry(jsonCodec, id, entry))
      .filter((entry) => entryKind(entry) === "call")
      .map(({ key }) => key as string);
    return calls[Math.floor(where * calls.length)] ?? position;
  }
}
