// SIGKILL at every point in turn: around every transaction of the store, and in every step between its effect and its outcome. A new
// process then finishes, and nobody can tell the difference: same outputs, same effects, and only what was in flight ran twice.

import { expect, it, vi } from "vitest";
import type { LedgerLine } from "../../examples/fakes.ts";
import type { Entry } from "../../src/index.ts";
import { type KillPoint, live, type RunRequest } from "./child.ts";
import { everyNumber, example, inGroups, type Remains, World } from "./world.ts";

// Other work may slow the machine down.
vi.setConfig({ testTimeout: 140_000 });

interface Scene {
  readonly file: string;
  readonly run: Omit<RunRequest, "id">;
  readonly env?: Readonly<Record<string, string>>;
  /** How often each action is to take effect. */
  readonly effects: Readonly<Record<string, number>>;
}

const checkout: Scene = {
  file: example("01-checkout"),
  run: { workflow: "checkout", input: { id: "order-17", cents: 4200, email: "ada@example.com" } },
  effects: { charge: 1, mail: 1 },
};

const batch: Scene = {
  file: example("02-batch"),
  run: { workflow: "invoices", input: { month: "2031-05", customers: 40 } },
  effects: { invoice: 40 },
};

const report: Scene = {
  file: example("03-report"),
  run: {
    workflow: "report",
    input: { topic: "tides", to: "board@example.com" },
    signal: { name: "review", payload: { by: "ada", ok: true }, id: "review-1" },
  },
  effects: { search: 4, analyse: 1, mail: 1 },
};

const scenes: [string, Scene][] = [
  ["checkout (S3-1, S3-5, S3-29)", checkout],
  ["checkout with a lost answer (S3-17, D-4)", { ...checkout, env: { FAKES_LOSE: "charge" } }],
  ["batch of 40 (S4-2)", batch],
  ["report that waits for a signal (S4-12 to S4-14)", report],
];

const POINTS = ["before-commit", "after-commit", "effect"];

for (const [name, scene] of scenes) {
  it(`${name}: killed at every point, it ends as if nothing had happened (S0-18 to S0-21, S3-9, S3-18, S4-1, I1, I2, I6, B16, B25)`, async () => {
    const world = new World();
    const output = await undisturbed(scene, world);
    const wrecks: Wreck[] = [];
    const reached: Record<string, number> = {};
    for (const point of POINTS) {
      reached[point] = await everyNumber(2, async (n) => {
        const wreck = await killedAt({ point, n }, scene, world);
        if (wreck !== null) wrecks.push(wreck);
        return wreck !== null;
      });
    }
    await inGroups(wrecks, 8, (group) => finish(group, scene, world, output));
    const calls = Object.values(scene.effects).reduce((sum, times) => sum + times, scene.env === undefined ? 0 : 1);
    expect(reached).toMatchObject({ effect: calls });
    expect(Math.min(...Object.values(reached))).toBeGreaterThanOrEqual(2);
  });
}

/** A life that was cut off, and what it left. */
interface Wreck {
  readonly run: string;
  readonly remains: Remains;
  readonly seen: number;
  readonly report: string;
}

async function undisturbed(scene: Scene, world: World): Promise<unknown> {
  const run = { ...scene.run, id: "undisturbed" };
  const engines = [{ store: world.store(run.id), runs: [run] }];
  const child = await live({ engines, files: [scene.file] }, { env: { ...world.env, ...scene.env } });
  expect(await child.exited, child.report()).toEqual({ code: 0, signal: null });
  return child.result(run.id);
}

/** `null` if the run was over before that point was reached. */
async function killedAt(kill: KillPoint, scene: Scene, world: World): Promise<Wreck | null> {
  const run = { ...scene.run, id: `${kill.point}-${kill.n}` };
  const engines = [{ store: world.store(run.id), runs: [run] }];
  const child = await live({ engines, files: [scene.file], kill }, { env: { ...world.env, ...scene.env } });
  const exit = await child.exited;
  if (exit.code === 0) return null;
  const report = `${run.id} ${child.report()}`;
  expect(exit.signal, report).toBe("SIGKILL");
  const remains = await world.remains(run.id, run.id);
  const seen = world.seenOf(run.id);
  expect(
    stepsOf(seen).filter((key) => !wasStarted(remains, key)),
    `work without its mark: ${report}`,
  ).toEqual([]);
  return { run: run.id, remains, seen: seen.length, report };
}

/** A new process takes up what the dead ones left: one engine for each of their stores. */
async function finish(wrecks: readonly Wreck[], scene: Scene, world: World, output: unknown): Promise<void> {
  const engines = wrecks.map(({ run }) => ({ store: world.store(run), runs: [{ ...scene.run, id: run }] }));
  const child = await live({ engines, files: [scene.file] }, { env: { ...world.env, ...scene.env } });
  expect(await child.exited, child.report()).toEqual({ code: 0, signal: null });
  for (const wreck of wrecks) {
    const { run, remains, report } = wreck;
    expect(await child.result(run), report).toEqual(output);
    const ledger = world.seenOf(run);
    const ranAgain = stepsOf(ledger.slice(wreck.seen)).filter((key) => isRecorded(remains, key));
    expect(ranAgain, `recorded, and run again: ${report}`).toEqual([]);
    checkEffects(scene, ledger, report);
    checkJournal(await world.remains(run, run), remains, report);
  }
}

function stepsOf(lines: readonly LedgerLine[]): string[] {
  return lines.map(({ key }) => key.slice(key.indexOf(":") + 1));
}

function wasStarted({ journal }: Remains, key: string): boolean {
  return journal.some((entry) => entry.type === "step.started" && entry.key === key);
}

function isRecorded({ journal }: Remains, key: string): boolean {
  return journal.some((entry) => isOutcome(entry) && entry.key === key);
}

function isOutcome({ type, payload }: Pick<Entry, "type" | "payload">): boolean {
  return type === "step.completed" || (type === "step.failed" && (payload as { retryAt: unknown }).retryAt === null);
}

/** Each effect happened once, and whoever asked again asked with the same key. */
function checkEffects(scene: Scene, ledger: readonly LedgerLine[], report: string): void {
  const done = ledger.filter(({ did }) => did);
  const counts: Record<string, number> = {};
  for (const { action } of done) counts[action] = (counts[action] ?? 0) + 1;
  expect(counts, report).toEqual(scene.effects);
  const keys = new Map(done.map(({ action, about, key }) => [`${action} ${about}`, key]));
  for (const { action, about, key } of ledger) expect(keys.get(`${action} ${about}`), report).toBe(key);
}

/** One outcome for each step, its mark before it, and a second start only where the crash met it in flight or it had failed. */
function checkJournal({ journal, status, orphans }: Remains, before: Remains, report: string): void {
  expect(orphans, report).toEqual([]);
  expect(status?.state, report).toBe("succeeded");
  expect(
    journal.map(({ seq }) => seq),
    report,
  ).toEqual(journal.map((_, i) => i));
  expect(journal.slice(0, before.journal.length), report).toEqual(before.journal);
  const starts = new Map<string, number>();
  const ended = new Set<string>();
  for (const { type, key, payload } of journal) {
    if (key === null) continue;
    if (type === "step.started") starts.set(key, (starts.get(key) ?? 0) + 1);
    if (!isOutcome({ type, payload })) continue;
    expect(starts.has(key) && !ended.has(key), `${key} of ${report}`).toBe(true);
    ended.add(key);
  }
  expect([...starts.keys()].sort(), report).toEqual([...ended].sort());
  const failed = new Set(journal.filter(({ type }) => type === "step.failed").map(({ key }) => key));
  for (const [key, times] of starts) {
    if (times === 1 || failed.has(key)) continue;
    expect(wasStarted(before, key) && !isRecorded(before, key), `${key} of ${report}`).toBe(true);
  }
}
