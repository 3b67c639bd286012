import { systemClock } from "../../base/clock.ts";
import type {
  FenceReply,
  FenceRequest,
  Mail,
  NewWorker,
  OwnerRow,
  ProcessIdentity,
  Pulse,
  WorkerRow,
} from "../../core/store.ts";
import { ownFile } from "../own-file.ts";
import type { OwnedRuns } from "../owned-runs.ts";
import { startPulse } from "../pulse/pulse.ts";
import type { PulseSignals } from "../pulse/pulse-signals.ts";
import type { PgValue, Row } from "./driver.ts";
import type { Link } from "./link.ts";
import { mailQuery, mailRows } from "./rows.ts";

export interface WorkersContext {
  readonly schema: string;
  readonly lanes: number;
  readonly owned: OwnedRuns;
  link(): Link;
  /** What a test gives as store time and as lease time, or nulls. */
  now(): number | null;
  leaseNow(): number | null;
  /** Called as often as the lease is renewed. */
  beaten(): void;
}

export class Workers {
  readonly #context: WorkersContext;
  readonly #s: string;
  readonly #pulses = new Set<Pulse>();
  /** When the last confirmed registration of each worker was sent. */
  readonly #registered = new Map<string, number>();

  constructor(context: WorkersContext) {
    this.#context = context;
    this.#s = context.schema;
  }

  #ask(text: string, ...values: PgValue[]): Promise<readonly Row[]> {
    return this.#context.link().query(text, values);
  }

  #read(text: string, ...values: PgValue[]): Promise<readonly Row[]> {
    return this.#context.link().read(text, values);
  }

  async register(worker: NewWorker): Promise<void> {
    const { owned, lanes, now, leaseNow } = this.#context;
    // An id that was fenced before no longer owns what it had.
    owned.forgetAll();
    const sentAt = systemClock.monotonic();
    await this.#ask(`select ${this.#s}.register_1($1, $2, $3, $4)`, workerJson(worker), lanes, now(), leaseNow());
    this.#registered.set(worker.id, sentAt);
  }

  get #heartbeat(): string {
    return `select alive, others from ${this.#s}.heartbeat_1($1, $2)`;
  }

  async heartbeat(worker: string): Promise<{ alive: boolean; others: number }> {
    const [row] = await this.#ask(this.#heartbeat, worker, this.#context.leaseNow());
    return { alive: row?.["alive"] === true, others: row?.["others"] as number };
  }

  /** Renews the lease from a thread with a connection of its own. */
  pulse(url: string, worker: string, everyMs: number, stallMs: number): Pulse {
    const task = { worker, everyMs, stallMs, url, heartbeat: this.#heartbeat };
    const pulse = startPulse(task, {
      confirmedAt: this.#registered.get(worker) ?? 0,
      beatHere: (signals) => void this.#beat(worker, signals),
      file: () => ownFile("#pulse-postgres"),
    });
    const own: Pulse = {
      confirmedAt: () => pulse.confirmedAt(),
      beat: () => {
        pulse.beat();
        this.#context.beaten();
      },
      stop: async () => {
        this.#pulses.delete(own);
        await pulse.stop();
      },
    };
    this.#pulses.add(own);
    return own;
  }

  /** Threads whose worker was never stopped would go on renewing. */
  async stopPulses(): Promise<void> {
    await Promise.all([...this.#pulses].map((pulse) => pulse.stop()));
  }

  // An error is no answer: the lease runs on, or out, and the next beat tries again.
  async #beat(worker: string, signals: PulseSignals): Promise<void> {
    const sentAt = systemClock.monotonic();
    try {
      const { alive, others } = await this.heartbeat(worker);
      if (alive) signals.confirm(sentAt, others);
      else signals.fenced();
    } catch {}
  }

  async list(): Promise<WorkerRow[]> {
    const rows = await this.#read(
      `select workers.*, renewed_at + lease_ms - ${this.#s}.time_1($1) as lease_left
       from ${this.#s}.workers order by started_at, id`,
      this.#context.leaseNow(),
    );
    return rows.map((row) => ({
      id: row["id"] as string,
      name: row["name"] as string,
      leaseMs: row["lease_ms"] as number,
      process: JSON.parse(row["process"] as string) as ProcessIdentity,
      handles: JSON.parse(row["handles"] as string),
      startedAt: row["started_at"] as number,
      leaseLeftMs: row["lease_left"] as number,
    }));
  }

  async owners(): Promise<OwnerRow[]> {
    const rows = await this.#read(ownersQuery(this.#s));
    return rows.map((row) => ({ worker: row["worker"] as string, runs: row["runs"] as number }));
  }

  async fence({ workers, successor, ifExpired = false }: FenceRequest): Promise<FenceReply> {
    const { owned, lanes, now, leaseNow } = this.#context;
    owned.forgetAll();
    const sentAt = systemClock.monotonic();
    const [row] = await this.#ask(
      `select ${this.#s}.fence_1($1, $2, $3, $4, $5, $6) as released`,
      workers,
      ifExpired,
      successor === undefined ? null : workerJson(successor),
      lanes,
      now(),
      leaseNow(),
    );
    for (const worker of workers) this.#registered.delete(worker);
    if (successor === undefined) return { moved: [], released: row?.["released"] as number };
    this.#registered.set(successor.id, sentAt);
    return { moved: await this.mail(successor.id), released: 0 };
  }

  async retire(worker: string): Promise<void> {
    this.#context.owned.forgetAll();
    await this.#ask(`select ${this.#s}.retire_1($1, $2)`, worker, this.#context.now());
  }

  /** The mail of all runs that a worker owns. */
  async mail(worker: string): Promise<Mail[]> {
    return mailRows(await this.#read(mailQuery(this.#s, "owner = $1"), worker)).map(({ mail }) => mail);
  }

  /** Only of those that have any, or an unseen cancel. */
  async news(worker: string): Promise<Mail[]> {
    const where = "owner = $1 and owner is not null and (unread > 0 or (cancel is not null and not cancelling))";
    return mailRows(await this.#read(mailQuery(this.#s, where), worker)).map(({ mail }) => mail);
  }
}

export function ownersQuery(s: string): string {
  return `select owner as worker, count(*) as runs from ${s}.runs where owner is not null group by owner order by owner collate "C"`;
}

function workerJson({ id, name, leaseMs, process, handles }: NewWorker): string {
  return JSON.stringify({
    id,
    name,
    leaseMs,
    process: JSON.stringify(process),
    handles: JSON.stringify(handles),
  });
}
