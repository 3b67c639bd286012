import type { Delivery, Message } from "../../core/store.ts";
import type { Disk } from "./disk.ts";
import type { Situation } from "./situations.ts";

export interface SignalPorts {
  readonly disk: Disk;
  violated(invariant: string, what: string): void;
  sometimes(what: Situation): void;
}

interface Sent {
  readonly id: string;
  readonly name: string;
}

/** I14: signals are received once each, in the order in which they came. */
export class SignalChecks {
  readonly #ports: SignalPorts;
  /** In the order in which they reached each run. */
  readonly #delivered = new Map<string, readonly Sent[]>();
  readonly #received = new Map<string, Set<string>>();

  constructor(ports: SignalPorts) {
    this.#ports = ports;
  }

  mailed({ to, id, name }: Message, delivery: Delivery): void {
    const { disk, sometimes } = this.#ports;
    if (delivery === "duplicate") sometimes("a signal came twice");
    if (delivery === "ended") sometimes("a signal came after the end");
    if (delivery !== "delivered") return;
    const waits = [...(disk.tables.runs.get(to)?.waits.values() ?? [])];
    if (!waits.some((wait) => wait.kind === "signal" && wait.name === name)) sometimes("a signal came before its wait");
    this.#delivered.set(to, [...(this.#delivered.get(to) ?? []), { id, name }]);
  }

  received(run: string, id: string): void {
    const { violated } = this.#ports;
    const delivered = this.#delivered.get(run) ?? [];
    const found = delivered.find((one) => one.id === id);
    if (found === undefined) return violated("I14", `run ${run} received signal ${id}, which nobody sent`);
    if (this.has(run, id)) violated("I14", `run ${run} received signal ${id} twice`);
    const older = delivered.find((one) => one.name === found.name && !this.has(run, one.id));
    if (older !== found) violated("I14", `run ${run} received signal ${id} before ${older?.id}, which came first`);
    this.inherited(run, id);
  }

  /** Its source has received it. */
  inherited(run: string, id: string): void {
    this.#received.set(run, (this.#received.get(run) ?? new Set()).add(id));
  }

  has(run: string, id: string): boolean {
    return this.#received.get(run)?.has(id) === true;
  }

  /** The power failed. What was received is told again from the journals that are left. */
  forget(): void {
    this.#received.clear();
  }

  /** After that: what was sent and is in no inbox any more has not come. */
  forgetLost(hasEnded: (run: string) => boolean): void {
    const { runs } = this.#ports.disk.tables;
    for (const [to, delivered] of this.#delivered) {
      const inbox = new Set(runs.get(to)?.inbox.map(({ row }) => row.id));
      const isThere = ({ id }: Sent) => this.has(to, id) || hasEnded(to) || inbox.has(id);
      this.#delivered.set(to, delivered.filter(isThere));
    }
  }
}
