import type { Disk } from "./disk.ts";
import type { Situation } from "./situations.ts";

export interface SlotPorts {
  readonly disk: Disk;
  violated(invariant: string, what: string): void;
  sometimes(what: Situation): void;
}

/** I18: never more runs under way than there are slots. */
export class SlotChecks {
  readonly #slots: number;
  readonly #ports: SlotPorts;

  constructor(slots: number, ports: SlotPorts) {
    this.#slots = slots;
    this.#ports = ports;
  }

  /** One that is taken to be cancelled has no body, and one without a slot none yet. */
  compare(): void {
    const { disk, violated, sometimes } = this.#ports;
    const rows = [...disk.tables.runs.values()].map(({ row }) => row);
    const held = rows.filter(({ slot, owner, state, cancel }) => {
      return slot !== null && owner !== null && state === "running" && cancel === null;
    });
    if (held.length > this.#slots)
      violated("I18", `${held.map(({ id }) => id).join(", ")} are under way, and there are ${this.#slots} slots`);
    if (held.length === this.#slots && rows.some(({ readyAt }) => readyAt !== null))
      sometimes("a run stood in line for a slot");
  }
}
