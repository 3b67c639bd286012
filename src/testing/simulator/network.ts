// The way between processes and the store
// Every call of a process is a pending event with three points: `send`, `apply`, `ack`. At each of them something may go wrong. A read is
// applied when it is sent.
//
//   N1. What was not sent when its process died vanishes; what was sent is applied or not, by coin.
//   N2. `storage_unavailable` is said only of what was surely not applied; any other error means unknown (ST5).
import { PawlError } from "../../base/errors.ts";
import type { Choices } from "./choices.ts";
import type { Disk } from "./disk.ts";
import type { Life } from "./life.ts";
import type { Fault } from "./scenario.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Situation } from "./situations.ts";
import { METHODS, type Method } from "./store-call.ts";
import type { VirtualTime } from "./virtual-time.ts";

export interface NetworkPorts {
  readonly time: VirtualTime;
  readonly choices: Choices;
  readonly scheduler: Scheduler;
  readonly disk: Disk;
  /** From 0 to 1: how likely a call is to take its time. */
  readonly slowness: number;
  /** Called just before and just after the store has done it. */
  applying(life: Life, method: Method, args: readonly unknown[]): void;
  applied(life: Life, method: Method, args: readonly unknown[], result: unknown): void;
  sometimes(what: Situation): void;
}

interface Call {
  readonly life: Life;
  readonly method: Method;
  readonly args: readonly unknown[];
  isDropped: boolean;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

type OneCall = Extract<Fault, { kind: "refuse" | "lose-answer" | "delay" }>;
type Partition = Extract<Fault, { kind: "partition" }>;

export class Network {
  readonly #ports: NetworkPorts;
  /** Sent and not yet applied. */
  readonly #sent = new Set<Call>();
  readonly #cutOff = new Map<number, Partition>();
  #faults: OneCall[] = [];
  #outages = 0;
  #fullDisks = 0;

  constructor(ports: NetworkPorts) {
    this.#ports = ports;
  }

  call(life: Life, method: Method, args: readonly unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const call: Call = { life, method, args, isDropped: false, resolve, reject };
      if (!life.isDead) this.#afterAWhile(() => life.later(`${method} send`, () => this.#send(call)));
    });
  }

  /** Something happens to the next call that it fits. */
  arm(fault: OneCall): void {
    this.#faults.push(fault);
  }

  cutOff(fault: Partition): void {
    this.#cutOff.set(fault.process, fault);
    this.#ports.time.after(fault.ms, () => {
      if (this.#cutOff.get(fault.process) === fault) this.#cutOff.delete(fault.process);
    });
  }

  outage(ms: number): void {
    this.#outages++;
    this.#ports.time.after(ms, () => void this.#outages--);
  }

  fillDisk(ms: number): void {
    this.#fullDisks++;
    this.#ports.time.after(ms, () => void this.#fullDisks--);
  }

  died(life: Life): void {
    for (const call of this.#sent) {
      if (call.life !== life) continue;
      // Not here already: the store is shared, so the coin decides only whether it arrives.
      call.isDropped = this.#ports.choices.below(2) === 0;
      this.#ports.sometimes(
        call.isDropped ? "a crash took a write with it" : "a write arrived after its process had died",
      );
    }
  }

  dropAll(): void {
    for (const call of this.#sent) call.isDropped = true;
  }

  #send(call: Call): void {
    const { life, method } = call;
    const partition = this.#cutOff.get(life.slot);
    if (partition?.how === "stuck")
      return this.#whenConnected(life, () => life.later(`${method} send`, () => this.#send(call)));
    const refusal = this.#refusal(call, partition);
    if (refusal !== null) return this.#answer(call, () => call.reject(refusal));
    // A read changes nothing: when exactly it happens on the way matters to nobody.
    if (!METHODS[method]) return this.#apply(call);
    this.#sent.add(call);
    const arrive = () =>
      this.#ports.scheduler.add({
        actor: null,
        label: `${life.name} ${method} apply`,
        happen: () => this.#apply(call),
      });
    const delay = this.#take("delay");
    if (delay !== undefined) this.#ports.time.after(delay.ms, arrive);
    else this.#afterAWhile(arrive);
  }

  #refusal({ method }: Call, partition: Partition | undefined): PawlError | null {
    const why =
      partition !== undefined
        ? "it cannot be reached"
        : this.#outages > 0
          ? "it is down"
          : METHODS[method] && this.#fullDisks > 0
            ? "its disk is full"
            : this.#take("refuse") !== undefined
              ? "it refused this call"
              : null;
    return why === null ? null : new PawlError("storage_unavailable", `The simulated store did nothing: ${why}.`);
  }

  #apply(call: Call): void {
    const { life, method, args } = call;
    this.#sent.delete(call);
    if (call.isDropped) return;
    this.#ports.applying(life, method, args);
    this.#ports.disk.apply(life.pid, method, args).then(
      (result) => {
        this.#ports.applied(life, method, args, result);
        const isLost = METHODS[method] && this.#take("lose-answer") !== undefined;
        if (isLost) this.#ports.sometimes(lostAnswer(method));
        this.#answer(call, () => (isLost ? call.reject(lost(method)) : call.resolve(result)));
      },
      (error: unknown) => this.#answer(call, () => call.reject(error)),
    );
  }

  #answer(call: Call, settle: () => void): void {
    const { life, method } = call;
    const partition = this.#cutOff.get(life.slot);
    const arrive = (what: () => void) => life.later(`${method} ack`, what);
    if (partition === undefined) return this.#afterAWhile(() => arrive(settle));
    // The connection is gone, and with it the answer; or it hangs, and the answer comes when the line is back.
    if (partition.how === "stuck") this.#whenConnected(life, () => arrive(settle));
    else arrive(() => call.reject(lost(method)));
  }

  #whenConnected(life: Life, then: () => void): void {
    const partition = this.#cutOff.get(life.slot);
    if (partition === undefined) return then();
    this.#ports.time.after(10, () => this.#whenConnected(life, then));
  }

  #take<K extends OneCall["kind"]>(kind: K): Extract<OneCall, { kind: K }> | undefined {
    if (this.#faults.length === 0) return undefined;
    const found = this.#faults.find((fault) => fault.kind === kind);
    if (found !== undefined) this.#faults = this.#faults.filter((fault) => fault !== found);
    return found as Extract<OneCall, { kind: K }> | undefined;
  }

  #afterAWhile(then: () => void): void {
    const { choices, slowness, time } = this.#ports;
    if (!choices.chance(slowness)) return then();
    time.after([1, 10, 100, 1000][choices.below(4)] as number, then);
  }
}

function lostAnswer(method: Method): Situation {
  switch (method) {
    case "claim":
    case "commit":
    case "deliver":
    case "fence":
    case "heartbeat":
    case "register":
      return `an answer was lost: ${method}`;
    default:
      return "an answer was lost: another call";
  }
}

function lost(method: Method): PawlError {
  return new PawlError("unknown_outcome", `The answer of the simulated store to ${method} was lost.`);
}
