// The planning agent, killed after every durable write and inside every tool, on SQLite and PostgreSQL. A new process finishes: the same plan, the
// same result, and no tool whose result was recorded begins again.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, vi } from "vitest";
import { type Entry, hasCode, Pawl } from "../../src/index.ts";
import { postgresUrl } from "../fixtures/cli/postgres-url.ts";
import { type Child, type EngineRequest, type KillPoint, live } from "./child.ts";
import { everyTime, killLives } from "./killed-lives.ts";
import { example, inGroups, World } from "./world.ts";

// Other work may slow the machine down.
vi.setConfig({ testTimeout: 600_000 });

/** The second one has no workflows: it makes the middle of a planning tool a point to be killed at. */
const FILES = [example("07-planning-agent"), fileURLToPath(new URL("./planning-kills.mjs", import.meta.url))];
const OUTCOMES: readonly string[] = ["step.completed", "effect.executed"];
/** How often each action is to take effect. */
const EFFECTS = { search: 2, page: 1, check: 1, publish: 1 };

class Bench {
  readonly world: World = new World();
  readonly #shared: string | null;
  readonly #urls = new Map<string, string>();

  constructor(kind: "sqlite" | "postgres") {
    this.#shared = kind === "postgres" ? postgresUrl() : null;
  }

  get isShared(): boolean {
    return this.#shared !== null;
  }

  /** A file for each run; on the server all are in one schema, but for those whose killer would count what others do in replay. */
  next({ isAlone = false } = {}): string {
    const run = `run-${this.#urls.size + 1}`;
    const schema = isAlone ? postgresUrl : () => this.#shared as string;
    this.#urls.set(run, this.#shared === null ? join(this.world.folder, `${run}.db`) : schema());
    return run;
  }

  #url(run: string): string {
    return this.#urls.get(run) as string;
  }

  /** One for each store that has some of the runs. */
  engines(runs: readonly string[]): EngineRequest[] {
    const request = (id: string) => ({ workflow: "planner", id, input: { topic: "herons" } });
    return [...new Set(runs.map((run) => this.#url(run)))].map((store) => ({
      store,
      runs: runs.filter((run) => this.#url(run) === store).map(request),
    }));
  }

  live(engines: readonly EngineRequest[]): Promise<Child> {
    return live({ engines, files: FILES }, { env: this.world.env });
  }

  async journal(run: string): Promise<readonly Entry[]> {
    const pawl = await Pawl.open(this.#url(run));
    try {
      return await pawl.get(run).journal();
    } catch (error) {
      // Killed before it was accepted.
      if (hasCode(error, "run_not_found")) return [];
      throw error;
    } finally {
      await pawl.close();
    }
  }

  counts(run: string): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { action, did } of this.world.seenOf(run)) if (did) counts[action] = (counts[action] ?? 0) + 1;
    return counts;
  }
}

/** What was recorded of the agent's calls, by key; ids of sessions and times are not in it. */
const recordsOf = (journal: readonly Entry[]) =>
  new Map(journal.filter(({ type }) => OUTCOMES.includes(type)).map(({ key, payload }) => [key ?? "", payload]));

interface Wreck {
  readonly run: string;
  readonly at: string;
  readonly recorded: ReadonlyMap<string, unknown>;
  readonly asked: readonly string[];
}

async function killed(bench: Bench, kills: readonly KillPoint[]): Promise<Wreck[]> {
  const lives = await killLives(kills, {
    // Engines on one schema would work on each other's runs.
    next: () => bench.engines([bench.next({ isAlone: true })])[0] as EngineRequest,
    live: (engines) => bench.live(engines),
    // Each has connections of its own, and the server not so many.
    ...(bench.isShared && { together: 12 }),
  });
  return Promise.all(
    lives.map(async ({ run, kill }) => {
      const asked = bench.world.seenOf(run).map(({ key }) => key);
      return { run, at: JSON.stringify(kill), recorded: recordsOf(await bench.journal(run)), asked };
    }),
  );
}

it.each(["sqlite", "postgres"] as const)(
  "D-2 S1-2 B55 I6 example 07 on %s, killed after every durable write and inside every tool: it finishes with the same plan, and nothing recorded begins again",
  async (kind) => {
    const bench = new Bench(kind);
    const whole = bench.next();
    const undisturbed = await bench.live(bench.engines([whole]));
    expect(await undisturbed.exited, undisturbed.report()).toEqual({ code: 0, signal: null });
    expect(await undisturbed.result(whole)).toBe("The field guide to herons is published.");
    expect(bench.counts(whole)).toEqual(EFFECTS);
    const expected = recordsOf(await bench.journal(whole));
    expect([...expected.keys()].filter((key) => key.startsWith("tool.planning")).length).toBe(5);

    // Inside the planning tools: five calls, each of which changes a copy of the session and, when it is recorded, the session.
    const meant: KillPoint[] = [];
    const least: Record<string, number> = { "after-commit": 14, effect: 5, planning: 10 };
    for (const point of Object.keys(least)) {
      const kills = everyTime(point, await undisturbed.reached(point));
      expect(kills.length, point).toBeGreaterThanOrEqual(least[point]!);
      // Nothing is written between the two of a call: which of them it is makes no difference to a server, and each takes a schema.
      const isMeant = ({ n }: KillPoint) => kind === "sqlite" || point !== "planning" || n % 2 === 1;
      meant.push(...kills.filter(isMeant));
      least[point]! -= kills.length - kills.filter(isMeant).length;
    }
    const wrecks = await killed(bench, meant);
    for (const [point, count] of Object.entries(least))
      expect(wrecks.filter(({ at }) => at.includes(`"${point}"`)).length, point).toBeGreaterThanOrEqual(count);
    // Nobody is asked about anything: every tool reads, knows its key or can be found.
    await inGroups(wrecks, 20, async (group) => {
      const child = await bench.live(bench.engines(group.map(({ run }) => run)));
      expect(await child.exited, child.report()).toEqual({ code: 0, signal: null });
      for (const { run, at, recorded, asked } of group) {
        expect(await child.result(run), at).toBe("The field guide to herons is published.");
        expect(bench.counts(run), at).toEqual(EFFECTS);
        const records = recordsOf(await bench.journal(run));
        expect(records, at).toEqual(expected);
        // What the dead process had recorded is still what counts, and was not asked for again.
        for (const [key, value] of recorded) expect(records.get(key), `${at} ${key}`).toEqual(value);
        const later = bench.world.seenOf(run).slice(asked.length);
        expect(
          later.filter(({ key }) => recorded.has(key.slice(key.indexOf("/") + 1))),
          at,
        ).toEqual([]);
      }
    });
  },
);
