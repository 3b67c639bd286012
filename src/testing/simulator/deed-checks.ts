// The rules of what runs do outside
// Effects and compensation, approvals, budgets and what steps save, each with a fold of its own; and the world that all of it happens in.
import { jsonCodec } from "../../base/envelope.ts";
import type { ApprovalRequested } from "../../core/approval-request.ts";
import type { StepInfo } from "../../core/context.ts";
import type { Entry, Parked, StoredEntry } from "../../core/journal.ts";
import type { Message } from "../../core/store.ts";
import { openEntry } from "../../core/values.ts";
import { ApprovalChecks } from "./approval-checks.ts";
import { Bank } from "./bank.ts";
import { BudgetChecks } from "./budget-checks.ts";
import type { Disk } from "./disk.ts";
import { EffectChecks } from "./effect-checks.ts";
import { SaveChecks } from "./save-checks.ts";
import type { Situation } from "./situations.ts";

export interface DeedPorts {
  readonly disk: Disk;
  readonly areClocksRight: boolean;
  asked(run: string, request: ApprovalRequested): void;
  violated(invariant: string, what: string): void;
  sometimes(what: Situation): void;
}

/** Why a run that does things outside may be parked. */
const PARKS: readonly Parked["reason"][] = ["unknown_outcome", "budget_exceeded"];

export class DeedChecks {
  readonly bank: Bank;
  readonly effects: EffectChecks;
  readonly approvals: ApprovalChecks;
  readonly budgets: BudgetChecks;
  readonly saves: SaveChecks;
  readonly #ports: DeedPorts;
  #hasLost = false;
  /** The entries of the commit that is being looked at. */
  #batch: Entry[] = [];
  /** Steps by what the outside knows them by. */
  readonly #steps = new Map<string, { readonly run: string; readonly step: string }>();

  constructor(ports: DeedPorts) {
    this.#ports = ports;
    const common = { ...ports, hasLost: () => this.#hasLost };
    this.approvals = new ApprovalChecks(common);
    this.budgets = new BudgetChecks(common);
    this.saves = new SaveChecks(ports);
    this.bank = new Bank({
      ...ports,
      uncovered: (run, leave) => this.approvals.uncovered(run, leave),
      mayHappenTwice: (key) => this.effects.mayHappenTwice(key),
    });
    this.effects = new EffectChecks({ ...common, bank: this.bank });
  }

  /** Takes the next entry in; `key` is what the outside knows its step by. What is inherited has happened to another run. */
  took(run: string, entry: Entry, key: string | null, isInherited: boolean): void {
    this.#batch.push(entry);
    if (key !== null) this.#steps.set(key, { run, step: entry.key as string });
    if (key !== null && isInherited) this.effects.share(key);
    this.effects.took(run, entry, key);
    if (isInherited) this.approvals.inherited(run, entry);
    else this.approvals.took(run, entry);
  }

  /** These were all entries of one run in one commit. */
  batchOver(run: string): void {
    this.budgets.took(run, this.#batch);
    this.#batch = [];
  }

  mailed(message: Message): void {
    const letters = this.#ports.disk.tables.runs.get(message.to)?.inbox ?? [];
    const at = letters.find(({ row }) => row.id === message.id)?.row.at;
    if (at !== undefined) this.approvals.mailed(message, at);
  }

  spent({ key, attempt }: StepInfo, usd: number): void {
    const known = this.#steps.get(key);
    if (known !== undefined) this.budgets.began(known.run, known.step, attempt, usd);
  }

  mayPark({ reason }: Parked): boolean {
    if (!PARKS.includes(reason)) return false;
    this.#ports.sometimes(
      reason === "unknown_outcome"
        ? "a person was asked whether an effect happened"
        : "a run was parked for its budget",
    );
    return true;
  }

  /** A power cut took acknowledged writes. */
  forget(): void {
    this.#hasLost = true;
    this.effects.forget();
    this.approvals.forget();
    this.budgets.forget();
    this.saves.forget();
  }

  atRest(run: string, journal: readonly StoredEntry[]): void {
    const entries = journal.map((entry) => openEntry(jsonCodec, run, entry));
    this.effects.atRest(run, entries);
  }
}
