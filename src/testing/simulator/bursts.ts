// Bursts
// Debounced starts: those that come soon enough after each other are one run, which has the input of the last and begins when it has been quiet
// for a while. Whoever is not answered starts again, so a start may come more than once, and after a later one.
import { jsonCodec } from "../../base/envelope.ts";
import type { Pawl } from "../../client/pawl.ts";
import type { Continued, RunStarted } from "../../core/journal.ts";
import { openEntry } from "../../core/values.ts";
import type { Checks } from "./checks.ts";
import type { Answer, Task } from "./driver.ts";
import type { Life } from "./life.ts";
import type { OfBurst, ProgramInput } from "./program.ts";
import type { BurstPlan } from "./scenario.ts";
import type { Situation } from "./situations.ts";
import type { VirtualTime } from "./virtual-time.ts";

export interface BurstPorts {
  readonly time: VirtualTime;
  readonly checks: Checks;
  add(task: Task): void;
  violated(invariant: string, what: string): void;
  sometimes(what: Situation): void;
}

/** A start that has waited so long for whoever has the pending run may begin another one. */
const PATIENCE_MS = 4500;

export class Bursts {
  readonly #ports: BurstPorts;
  /** When each start was asked for last. */
  readonly #askedAt = new Map<string, number>();
  /** The newest run of each. */
  readonly #newest = new Map<number, string>();

  constructor(plans: readonly BurstPlan[], ports: BurstPorts) {
    this.#ports = ports;
    for (const [burst, plan] of plans.entries())
      for (const [n, { at, by }] of plan.starts.entries())
        ports.add({
          name: `start ${n} of burst ${burst}`,
          at,
          by,
          isRepeatable: true,
          do: (pawl, life) => this.#start(plan, { burst, n }, pawl, life),
        });
  }

  async #start({ waitMs, maxMs, ms }: BurstPlan, of: OfBurst, pawl: Pawl, life: Life): Promise<Answer> {
    const { checks, violated, time } = this.#ports;
    const program = { op: "add", counter: "z", by: of.n + 1, ms } as const;
    const input: ProgramInput = { program, rounds: 1, done: [], fails: false, of };
    const debounce = { key: `burst-${of.burst}`, wait: waitMs, ...(maxMs !== null && { max: maxMs }) };
    this.#askedAt.set(nameOf(of), time.now);
    const { id } = await (life.workflow === null
      ? pawl.start("program", input, { debounce })
      : pawl.start(life.workflow, input, { debounce }));
    const isThere = checks.journalOf(id).some((entry) => {
      if (entry.type !== "run.started" && entry.type !== "run.continued") return false;
      const { input: had } = openEntry(jsonCodec, id, entry).payload as RunStarted | Continued;
      return nameOf((had as ProgramInput).of) === nameOf(of);
    });
    if (!isThere) violated("I1", `${nameOf(of)} was acknowledged as run ${id}, which never had its input`);
    return "done";
  }

  /** I17: while a run of a burst is put off, a further start becomes part of it. */
  created(run: string, of: OfBurst): void {
    const { time, checks, violated, sometimes } = this.#ports;
    const before = this.#newest.get(of.burst);
    this.#newest.set(of.burst, run);
    if (before === undefined) return;
    if (!checks.isPutOff(before)) return sometimes("a start came after its burst had begun");
    const waitedMs = time.now - (this.#askedAt.get(nameOf(of)) ?? time.now);
    if (waitedMs < PATIENCE_MS)
      violated("I17", `${nameOf(of)} made run ${run}, though run ${before} of it has not begun`);
  }

  /** A power cut took acknowledged writes. */
  lost(): void {
    this.#newest.clear();
  }
}

function nameOf(of: OfBurst | undefined): string {
  return `start ${of?.n} of burst ${of?.burst}`;
}
