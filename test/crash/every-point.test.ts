// SIGKILL at every point in turn: around every transaction of the store, and in every step between its effect and its outcome. A new
// process then finishes, and nobody can tell the difference: same outputs, same effects, and only what was in flight ran twice.

import { expect, it, vi } from "vitest";
import { type KillPoint, live, type Said } from "./child.ts";
import { killLives } from "./killed-lives.ts";
import { isOutcome, type StepStory, stepsOf } from "./step-story.ts";
import { type Booked, example, inGroups, type Remains, type RunRemains, stepOf, TOUR, World } from "./world.ts";
import { killEverywhere, type Scene, undisturbed, type Whole, type Wreck } from "./wrecks.ts";

// Other work may slow the machine down.
vi.setConfig({ testTimeout: 600_000 });

interface Play extends Scene {
  readonly ids: string;
  readonly name: string;
  /** How often each action is to take effect. */
  readonly effects: Readonly<Record<string, number>>;
}

const checkout: Play = {
  ids: "S3-1 S3-5 S3-29",
  name: "checkout",
  file: example("01-checkout"),
  run: { workflow: "checkout", input: { id: "order-17", cents: 4200, email: "ada@example.com" } },
  effects: { charge: 1, mail: 1 },
  pulse: true,
};

const plays: readonly Play[] = [
  checkout,
  { ...checkout, ids: "S3-17 D-4", name: "checkout with a lost answer", env: { FAKES_LOSE: "charge" }, pulse: false },
  {
    ids: "S4-2",
    name: "batch of 10 at once",
    file: example("02-batch"),
    run: { workflow: "invoices", input: { month: "2031-05", customers: 10 } },
    effects: { invoice: 10 },
  },
  {
    ids: "S4-12 S4-13 S4-14",
    name: "report that waits for a signal",
    file: example("03-report"),
    run: {
      workflow: "report",
      input: { topic: "tides", to: "board@example.com" },
      signal: { name: "review", payload: { by: "ada", ok: true }, id: "review-1" },
    },
    effects: { search: 4, analyse: 1, mail: 1 },
  },
  {
    ids: "X-14 P10 P13",
    name: "tour of sleeps, children, map, waits, state, chance, notes, log lines and generations",
    file: TOUR,
    run: { workflow: "tour", input: {} },
    effects: { draw: 1, double: 1, wander: 1, visit: 3 },
  },
];

/** The last one is the last to come: it is killed, and the others have stopped by then. */
const SOME_POINTS: readonly KillPoint[] = [
  { point: "before-commit", n: 5 },
  { point: "after-commit", n: 5 },
  { point: "effect", n: 3 },
  { point: "after-commit", n: 10 },
];

const IDS = "S0-18 S0-19 S0-20 S0-21 S3-9 S3-18 S4-1 I1 I2 I6 B16 B25";

for (const play of plays) {
  it(`${play.ids} ${IDS} ${play.name}: killed at every point, it ends as if nothing had happened`, async () => {
    const world = new World();
    const whole = await undisturbed(play, world);
    const { wrecks, reached } = await killEverywhere(play, world, whole);
    for (const wreck of wrecks) checkWreck(wreck, world.seenOf(wreck.run), whole);
    await inGroups(wrecks, 40, (group) => finish(group, play, world, whole));
    const calls = Object.values(play.effects).reduce((sum, times) => sum + times, play.env === undefined ? 0 : 1);
    expect(reached.effect).toBe(calls);
    expect(Math.min(...Object.values(reached))).toBeGreaterThanOrEqual(2);
  });
}

it("X-14 P13 without a crash, the tour says each of its log lines once and starts each child once", async () => {
  const { output, remains, said } = await undisturbed(plays[4] as Play, new World());
  expect(output).toEqual({
    first: { slept: true, isSame: true, doubled: 42 },
    second: { visits: ["tower", "it is closed", "bridge"], answer: "nobody came", place: "harbour" },
    isPatched: true,
  });
  expect(linesOf(said, "undisturbed").map((line) => line.replace("tour: the ", ""))).toEqual([
    "first round begins",
    "first round ends",
    "second round begins",
    "second round ends",
  ]);
  expect(remains.others.map(({ status }) => status?.workflow).sort()).toEqual(["leaf", "stray"]);
  expect(remains.status).toMatchObject({
    data: { place: "harbour", answer: "nobody came" },
    cost: { usd: 0.75, tickets: 2 },
  });
});

it("S0-18 a life that stops at its point beside others leaves what a killed process leaves", async () => {
  const batch = plays[2] as Play;
  const world = new World();
  const leftBy = async (together: number): Promise<Record<string, unknown>> => {
    const killed = await killLives(SOME_POINTS, {
      next({ point, n }) {
        const run = { ...batch.run, id: `${point}-${n}-of-${together}` };
        return { store: world.store(run.id), runs: [run] };
      },
      live: (engines) => live({ engines, files: [batch.file] }, { env: world.env }),
      together,
    });
    const left = killed.map(async ({ kill: { point, n }, run }) => {
      const { status, journal, claims } = await world.remains(run, run);
      const facts = journal.map(({ type, key }) => `${type} ${key}`);
      return [`${point} ${n}`, { state: status?.state, claims, facts, asked: world.seenOf(run).length }];
    });
    return Object.fromEntries(await Promise.all(left)) as Record<string, unknown>;
  };
  const alone = await leftBy(1);
  expect(alone).toMatchObject({ "effect 3": { state: "running", claims: 1, asked: 3 } });
  expect(await leftBy(SOME_POINTS.length)).toEqual(alone);
});

/** What lies on the disk at the moment of death: no work without its mark, and no end without its value and its time. */
function checkWreck({ remains, report }: Wreck, seen: readonly Booked[], whole: Whole): void {
  for (const line of seen) {
    const step = stepBehind(line, remains);
    expect(step?.starts ?? 0, `${line.key}, work without its mark: ${report}`).toBeGreaterThan(0);
    if (step?.outcome?.type !== "step.completed" || line.answer === undefined) continue;
    expect(step.outcome.payload, `${line.key}, done without its value: ${report}`).toEqual(line.answer);
    expect(step.outcome.at, report).toBeGreaterThanOrEqual(line.at);
  }
  if (remains.status?.state === "succeeded") expect(remains.status.output, report).toEqual(whole.output);
}

/** A new process takes up what the dead ones left: one engine for each of their stores. */
async function finish(wrecks: readonly Wreck[], play: Play, world: World, whole: Whole): Promise<void> {
  const engines = wrecks.map(({ run }) => ({ store: world.store(run), runs: [{ ...play.run, id: run }] }));
  const child = await live(
    { engines, files: [play.file], pulse: play.pulse === true },
    { env: { ...world.env, ...play.env } },
  );
  expect(await child.exited, child.report()).toEqual({ code: 0, signal: null });
  for (const wreck of wrecks) {
    const { run, remains, seen, report } = wreck;
    expect(await child.result(run), report).toEqual(whole.output);
    const ledger = world.seenOf(run);
    const ranAgain = ledger.slice(seen).filter((line) => stepBehind(line, remains)?.outcome !== undefined);
    expect(ranAgain, `recorded, and run again: ${report}`).toEqual([]);
    checkEffects(play, ledger, report);
    checkEnd(await world.remains(run, run), remains, whole, report);
    checkLines([...linesOf(wreck.said, run), ...linesOf(child.said, run)], report);
  }
}

function familyOf(remains: Remains): readonly RunRemains[] {
  return [remains, ...remains.others];
}

/** The step that a line of the ledger came from, as the journal of its run knows it. */
function stepBehind({ key }: Booked, remains: Remains): StepStory | undefined {
  for (const { id, journal } of familyOf(remains)) {
    const step = stepOf(id, key);
    if (step !== null) return stepsOf(journal).get(step);
  }
  return undefined;
}

/** Each effect happened once, whoever asked again asked with the same key, and what chance gave was the same each time. */
function checkEffects(play: Play, ledger: readonly Booked[], report: string): void {
  const done = ledger.filter(({ did }) => did);
  const counts: Record<string, number> = {};
  for (const { action } of done) counts[action] = (counts[action] ?? 0) + 1;
  expect(counts, report).toEqual(play.effects);
  const whatOf = ({ action, about, what }: Booked) => JSON.stringify([action, about, what]);
  const keys = new Map(done.map((line) => [whatOf(line), line.key]));
  for (const line of ledger) expect(keys.get(whatOf(line)), report).toBe(line.key);
}

/** The run and those that it started have ended as they would have, and say so in the same words. */
function checkEnd(remains: Remains, before: Remains, whole: Whole, report: string): void {
  expect(remains.orphans, report).toEqual([]);
  const { data, cost } = remains.status ?? {};
  expect({ data, cost }, report).toEqual({ data: whole.remains.status?.data, cost: whole.remains.status?.cost });
  expect(familyOf(remains).flatMap(factsOf).sort(), report).toEqual(familyOf(whole.remains).flatMap(factsOf).sort());
  for (const run of familyOf(remains)) {
    const left = familyOf(before).find(({ id }) => id === run.id)?.journal ?? [];
    expect(run.journal.slice(0, left.length), report).toEqual(left);
    checkJournal(run, left, report);
  }
}

/** A run in entries that do not depend on order, ids or how often a step was begun. */
function factsOf({ journal, status }: RunRemains): string[] {
  const isFact = (type: string) => !["step.started", "step.failed"].includes(type);
  const facts = journal.filter((entry) => isFact(entry.type) || isOutcome(entry));
  return [
    `${status?.workflow} ${status?.state}`,
    ...facts.map(({ type, key }) => `${status?.workflow} ${type} ${key}`),
  ];
}

/** One outcome for each step, its mark before it, and a second start only where the crash met it in flight or it had failed. */
function checkJournal({ journal }: RunRemains, before: RunRemains["journal"], report: string): void {
  expect(
    journal.map(({ seq }) => seq),
    report,
  ).toEqual(journal.map((_, i) => i));
  const then = stepsOf(before);
  for (const [name, { starts, outcomes, failures }] of stepsOf(journal)) {
    expect({ name, outcomes }, report).toEqual({ name, outcomes: 1 });
    const wasInFlight = (then.get(name)?.starts ?? 0) > 0 && then.get(name)?.outcomes === 0;
    expect(starts, `starts of ${name} of ${report}`).toBeLessThanOrEqual(1 + failures + (wasInFlight ? 1 : 0));
  }
}

/** What a run has logged itself. */
function linesOf(said: readonly Said[], run: string): string[] {
  const lines = said.filter((one) => one.event === "log" && one["run"] === run).map(({ message }) => String(message));
  return lines.filter((message) => message.startsWith("tour: "));
}

function checkLines(lines: readonly string[], report: string): void {
  expect(lines, `log lines of ${report}`).toEqual([...new Set(lines)]);
}
