// SIGKILL at every point in turn: around every transaction of the store, and in every step between its effect and its outcome. A new
// process then finishes, and nobody can tell the difference: same outputs, same effects, and only what was in flight ran twice.

import { expect, it } from "vitest";
import type { LedgerLine } from "../../examples/fakes.ts";
import type { Entry } from "../../src/index.ts";
import type { RunRequest } from "./child.ts";
import { everyPoint, example, type Remains, World } from "./world.ts";

interface Scene {
  readonly file: string;
  readonly run: RunRequest;
  readonly env?: Readonly<Record<string, string>>;
  /** The action of each effect, and how often it is to happen. */
  readonly effects: Readonly<Record<string, number>>;
}

const checkout: Scene = {
  file: example("01-checkout"),
  run: { workflow: "checkout", id: "run-1", input: { id: "order-17", cents: 4200, email: "ada@example.com" } },
  effects: { charge: 1, mail: 1 },
};

const batch: Scene = {
  file: example("02-batch"),
  run: { workflow: "invoices", id: "run-1", input: { month: "2031-05", customers: 40 } },
  effects: { invoice: 40 },
};

const report: Scene = {
  file: example("03-report"),
  run: {
    workflow: "report",
    id: "run-1",
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
    const undisturbed = await play(scene, new World());
    const reached: Record<string, number> = {};
    for (const point of POINTS) reached[point] = await everyPoint(2, (n) => killAndResume(scene, { point, n }, undisturbed));
    const effects = Object.values(scene.effects).reduce((sum, one) => sum + one, 0) + (scene.env === undefined ? 0 : 1);
    console.log(name, reached);
    expect(reached["effect"]).toBe(effects);
    expect(reached["after-commit"]).toBeGreaterThanOrEqual(5);
    expect(reached["before-commit"]).toBeGreaterThanOrEqual(5);
  }, 120_000);
}

async function play(scene: Scene, world: World): Promise<unknown> {
  const life = await world.live({ files: [scene.file], runs: [scene.run] }, scene.env);
  expect(life.exit, life.report()).toEqual({ code: 0, signal: null });
  return life.said.find(({ event }) => event === "result")?.["output"];
}

/** One history: a life that is killed, a life that finishes. False: the first life was over before that point. */
async function killAndResume(scene: Scene, kill: { point: string; n: number }, output: unknown): Promise<boolean> {
  const world = new World();
  const first = await world.live({ files: [scene.file], runs: [scene.run], kill }, scene.env);
  if (first.exit.code === 0) return false;
  const at = `${kill.point} ${kill.n}: ${first.report()}`;
  expect(first.exit.signal, at).toBe("SIGKILL");
  const wreck = await world.remains(scene.run.id);
  const seenBefore = world.ledger();
  expect(stepsOf(seenBefore, scene).filter((key) => !wasStarted(wreck, key)), `work without its mark, ${at}`).toEqual([]);

  expect(await play(scene, world), at).toEqual(output);
  const after = await world.remains(scene.run.id);
  const seenAfter = world.ledger().slice(seenBefore.length);
  const again = stepsOf(seenAfter, scene);
  expect(again.filter((key) => isRecorded(wreck, key)), `recorded and run again, ${at}`).toEqual([]);
  checkEffects(scene, world.ledger(), at);
  checkJournal(after, wreck, at);
  return true;
}

function stepsOf(lines: readonly LedgerLine[], { run }: Scene): string[] {
  return lines.map(({ key }) => key.slice(run.id.length + 1));
}

function wasStarted({ journal }: Remains, key: string): boolean {
  return journal.some((entry) => entry.type === "step.started" && entry.key === key);
}

function isRecorded({ journal }: Remains, key: string): boolean {
  return journal.some((entry) => isOutcome(entry) && entry.key === key);
}

function isOutcome({ type, payload }: Entry): boolean {
  return type === "step.completed" || (type === "step.failed" && (payload as { retryAt: unknown }).retryAt === null);
}

/** Each effect happened once, and whoever asked again asked with the same key. */
function checkEffects(scene: Scene, ledger: readonly LedgerLine[], at: string): void {
  const done = ledger.filter(({ did }) => did);
  const counts: Record<string, number> = {};
  for (const { action } of done) counts[action] = (counts[action] ?? 0) + 1;
  expect(counts, at).toEqual(scene.effects);
  const keys = new Map(done.map(({ action, about, key }) => [`${action} ${about}`, key]));
  for (const { action, about, key } of ledger) expect(keys.get(`${action} ${about}`), at).toBe(key);
}

/** One outcome per step, a mark before it, and a second start only for steps that the crash caught in flight or that had failed. */
function checkJournal(after: Remains, wreck: Remains, at: string): void {
  const { journal } = after;
  expect(after.orphans, at).toEqual([]);
  expect(after.status?.state, at).toBe("succeeded");
  expect(journal.map(({ seq }) => seq), at).toEqual(journal.map((_, i) => i));
  expect(journal.slice(0, wreck.journal.length), at).toEqual(wreck.journal);
  const started = new Map<string, number>();
  const ended = new Set<string>();
  for (const { type, key, payload } of journal) {
    if (key === null) continue;
    if (type === "step.started") started.set(key, (started.get(key) ?? 0) + 1);
    if (isOutcome({ type, key, payload } as Entry)) {
      expect(started.has(key) && !ended.has(key), `${key}, ${at}`).toBe(true);
      ended.add(key);
    }
  }
  expect([...started.keys()].sort(), at).toEqual([...ended].sort());
  const failed = new Set(journal.filter(({ type }) => type === "step.failed").map(({ key }) => key));
  const twice = [...started].filter(([key, times]) => times > 1 && !failed.has(key)).map(([key]) => key);
  for (const key of twice) expect(wasStarted(wreck, key) && !isRecorded(wreck, key), `${key}, ${at}`).toBe(true);
}
