// Drives one run of a program through a real engine on the memory store
// Nothing here takes real time: steps end when the schedule lets them, the store's clock is moved by hand, and every choice follows from a seed.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { MessageChannel } from "node:worker_threads";
import { type ManualClock, manualClock } from "../../src/base/clock.ts";
import { jsonCodec } from "../../src/base/envelope.ts";
import { seededRandom } from "../../src/base/random.ts";
import { Pawl } from "../../src/client/pawl.ts";
import { checksum } from "../../src/core/checksum.ts";
import type { Context, Log } from "../../src/core/context.ts";
import type { Entry, StatePatched, StoredEntry } from "../../src/core/journal.ts";
import type { RunRow, Store } from "../../src/core/store.ts";
import { openEntry, sealValue } from "../../src/core/values.ts";
import { workflow } from "../../src/core/workflow.ts";
import { memoryStore } from "../../src/stores/memory/memory-store.ts";
import { nodeHost } from "../../src/worker/node-host.ts";
import { type ForeignAwait, interpret, type Node, type Pace, type StepEnd, type World } from "./program.ts";

export const START = Date.UTC(2026, 0, 1);
const QUIET_ROUNDS = 60;

// Bodies here leave promises alone that fail and look at them later. The engine keeps that from ending the process (P11); Node still warns.
process.removeAllListeners("warning");

// Captured at load, before an engine wraps it.
const { setImmediate: later } = globalThis;
const macrotask = () => new Promise<void>((resolve) => later(resolve));

/** How a run of a program came out. */
export interface Story {
  readonly program: Node;
  readonly row: RunRow;
  readonly journal: readonly StoredEntry[];
  readonly entries: readonly Entry[];
  /** How often the function of each step was started in this process, by key. */
  readonly starts: ReadonlyMap<string, number>;
  readonly state: Readonly<Record<string, unknown>>;
  readonly errors: readonly string[];
}

export interface RigOptions {
  readonly seed: number;
  readonly clock: ManualClock;
  /** Moved along when nothing else can happen, for watchdogs. Without it leases follow the machine's clock. */
  readonly leaseClock?: ManualClock;
  readonly store: Store;
  /** Called between rounds: whatever the outside world does to the run. Returns whether more is to come. */
  readonly outside?: (pawl: Pawl, run: string, chance: () => number) => Promise<boolean>;
  /** Steps end in this order of keys instead of a random one. */
  readonly order?: readonly string[];
  /** The body, if it is not a program. */
  readonly handler?: (ctx: Context, world: World) => Promise<unknown>;
}

/** Runs a program undisturbed, to its end or to its park. */
export async function runProgram(
  program: Node,
  options: Partial<RigOptions> & { readonly seed: number },
): Promise<Story> {
  const clock = options.clock ?? manualClock(START);
  const store = options.store ?? memoryStore({ clock });
  return new Rig(program, { ...options, clock, store }).run(async (pawl, flow, chance) => {
    // With an id the run is created first and adopted after; without one its first turn runs ahead of its first commit (P13).
    const id = chance() < 0.5 ? { id: `run-${options.seed}` } : {};
    return (await pawl.start(flow, undefined, id)).id;
  });
}

/** What a crash has left: the run's row and these entries. A new engine on a new store goes on from there. */
export async function resume(
  source: Story,
  kept: readonly StoredEntry[],
  seed: number,
  options: Partial<RigOptions> = {},
): Promise<Story> {
  const clock = manualClock(kept.at(-1)?.at ?? START);
  const { leaseClock } = options;
  const store = memoryStore({ clock, ...(leaseClock === undefined ? {} : { leaseClock }) });
  await plant(store, source.row, kept);
  return goOn(source, { ...options, seed, clock, store });
}

/** A new engine goes on with a run that is in the store. */
export function goOn(source: Story, options: RigOptions): Promise<Story> {
  return new Rig(source.program, options).run(async () => source.row.id);
}

/** Puts a run with these entries into a store, unowned and ready, as a fenced worker would have left it. */
export async function plant(store: Store, row: RunRow, kept: readonly StoredEntry[]): Promise<void> {
  const { workflow, version, traceId, key, tags, priority, parent, origin, deadline, codec } = row;
  const create = { workflow, version, traceId, key, tags, priority, parent, origin, deadline, codec };
  const [verdict] = await store.commit({
    worker: null,
    runs: [
      {
        run: row.id,
        head: 0,
        entries: kept,
        create: { ...create, claimed: false, readyAt: store.clock.now() },
        state: [...stateOf(row.id, kept)].map(([name, value]) => ({
          key: name,
          data: sealValue(jsonCodec, value, { run: row.id, seq: -1, field: `state:${name}` }, name),
        })),
      },
    ],
  });
  if (verdict?.kind !== "applied") throw new Error(`the prefix could not be planted: ${JSON.stringify(verdict)}`);
}

/** Run state as a fold of the journal. */
export function stateOf(run: string, journal: readonly StoredEntry[]): Map<string, unknown> {
  const patches = journal.filter((entry) => entry.type === "state.patched");
  return new Map(
    patches.map((entry) => [entry.key as string, (openEntry(jsonCodec, run, entry).payload as StatePatched).value]),
  );
}

/** Gives entries the positions and checksums that they would have if they had been written like this. */
export function rechain(run: string, entries: readonly StoredEntry[]): StoredEntry[] {
  let hash = run;
  return entries.map((entry, seq) => {
    hash = checksum(nodeHost, hash, { ...entry, seq });
    return { ...entry, seq, hash };
  });
}

class Rig {
  readonly #program: Node;
  readonly #options: RigOptions;
  readonly #chance: () => number;
  readonly #starts = new Map<string, number>();
  readonly #errors: string[] = [];
  readonly #waiting: { readonly key: string; readonly end: () => void }[] = [];
  readonly #order: string[];
  #prefix = "";
  /** Foreign awaits under way: they take real time, so nothing is stuck while there are any. */
  #foreign = 0;

  constructor(program: Node, options: RigOptions) {
    this.#program = program;
    this.#options = options;
    this.#order = [...(options.order ?? [])];
    const stream = seededRandom(`schedule ${options.seed}`);
    this.#chance = () => stream.next();
  }

  async run(
    begin: (pawl: Pawl, flow: ReturnType<Rig["flow"]>, chance: () => number) => Promise<string>,
  ): Promise<Story> {
    const { store } = this.#options;
    const flow = this.flow();
    const pawl = await Pawl.open(store, {
      workflows: [flow],
      logger: this.#log(),
      handleSignals: false,
      retention: false,
      lease: "1 h",
    });
    try {
      const id = await begin(pawl, flow, this.#chance);
      await this.#drive(pawl, id);
      const [row, journal, status] = [await store.run(id), await store.journal(id), await pawl.get(id).status()];
      if (row === null) throw new Error("the run is gone");
      const entries = journal.map((entry) => openEntry(jsonCodec, id, entry));
      const { data } = status;
      return { program: this.#program, row, journal, entries, starts: this.#starts, state: data, errors: this.#errors };
    } finally {
      await pawl.close({ drain: 0 });
    }
  }

  flow() {
    const handler = this.#options.handler ?? ((ctx: Context, world: World) => interpret(this.#program, ctx, world));
    // Time is moved in large steps: nothing but the program's own waits may fall due.
    return workflow({ name: "program", guard: "off", timeout: "300 days", deadline: "600 days" }, (ctx: Context) => {
      this.#prefix = `${ctx.run.id}/`;
      return handler(ctx, this.#world());
    });
  }

  /** Lets things happen, one or none per macrotask, until the run has ended or is parked. */
  async #drive(pawl: Pawl, id: string): Promise<void> {
    const { clock, leaseClock, store, outside } = this.#options;
    for (let quiet = 0; quiet < QUIET_ROUNDS; ) {
      await macrotask();
      const row = await store.run(id);
      if (row?.endedAt != null || row?.state === "parked") return;
      // Whoever looks at a run must not change the way it takes (B60); the model knows every number it may draw.
      if (this.#chance() < 0.05) await pawl.get(id).status();
      const isMoreToCome = (await outside?.(pawl, id, this.#chance)) ?? false;
      if (this.#endOne()) quiet = 0;
      else if (this.#foreign > 0) continue;
      else if (isMoreToCome && quiet > 12) quiet = 12;
      else quiet++;
      // Time moves now and then while steps run, and faster and faster when nothing else can happen.
      if (quiet > 30) leaseClock?.advance(5000);
      if (quiet > 4) clock.advance(2 ** Math.min(quiet - 4, 20));
      else if (this.#chance() < 0.15) clock.advance(1 + Math.floor(this.#chance() * 10));
    }
    const journal = (await store.journal(id)).map((entry) => `${entry.seq} ${entry.type} ${entry.key}`);
    throw new Error(`run ${id} is stuck\n${journal.join("\n")}\n${this.#errors.join("\n")}`);
  }

  /** Ends one of the steps that wait for the schedule, or none. */
  #endOne(): boolean {
    if (this.#waiting.length === 0) return false;
    const [next] = this.#order;
    const index =
      next === undefined
        ? Math.floor(this.#chance() * this.#waiting.length)
        : this.#waiting.findIndex((one) => one.key === next);
    if (index < 0 || (next === undefined && this.#chance() < 0.3)) return next === undefined;
    this.#order.shift();
    this.#waiting.splice(index, 1)[0]?.end();
    return true;
  }

  #world(): World {
    return {
      work: (value, pace, end) => (info) =>
        this.#work(info.key.slice(this.#prefix.length), info.attempt, value, pace, end),
      apply: (value, pace) => this.#work("apply", 1, value, pace, "ok"),
      foreign: async (kind) => {
        this.#foreign++;
        await foreignAwait(kind);
        this.#foreign--;
      },
      abandoned: () => {},
    };
  }

  #work(key: string, attempt: number, value: number, pace: Pace, end: StepEnd): unknown {
    this.#starts.set(key, (this.#starts.get(key) ?? 0) + 1);
    const finish = () => {
      if (end === "caught" || end === "thrown" || (end === "retried" && attempt === 1))
        throw new Error(`${key} failed`);
      return `${key}=${value}`;
    };
    if (pace === "sync") return finish();
    if (pace === "async") return Promise.resolve().then(finish);
    return new Promise<void>((resolve) => this.#waiting.push({ key, end: resolve })).then(finish);
  }

  #log(): Log {
    const keep = (message: string) => void this.#errors.push(message);
    return { debug: () => {}, info: () => {}, warn: () => {}, error: keep };
  }
}

async function foreignAwait(kind: ForeignAwait): Promise<void> {
  switch (kind) {
    case "setImmediate":
      return new Promise<void>((resolve) => void setImmediate(resolve));
    case "setTimeout":
      return new Promise<void>((resolve) => void setTimeout(resolve, 1));
    case "readFile":
      await readFile(fileURLToPath(import.meta.url));
      return;
    case "messageChannel": {
      const { port1, port2 } = new MessageChannel();
      await new Promise<void>((resolve) => {
        port2.once("message", () => resolve());
        port1.postMessage(null);
      });
      port1.close();
    }
  }
}
