// The explorer
// Plays a workflow once undisturbed and writes down every point; then again for every point and every way in which it can go wrong there,
// and compares. What cannot be told apart is played once: where nothing in the store, in the outside world or in flight has changed since an
// earlier point, a crash finds the same.

import { seededRandom } from "../../base/random.ts";
import type { EncryptionOptions } from "../../client/keyring.ts";
import type { Effect, RecordBook } from "../recorder.ts";
import { Choices } from "./choices.ts";
import { CRASH_MODES, type CrashMode, type CrashPoint, modesAt } from "./crash-point.ts";
import { Crossroads } from "./crossroads.ts";
import type { BodyWorlds } from "./hazards.ts";
import { type Ending, History, type Scene } from "./history.ts";
import type { BodyStart } from "./mortal-engine.ts";
import type { Stillness } from "./stillness.ts";
import { endsOf, type Outcome } from "./verdict.ts";
import type { Workflows } from "./watched-workflow.ts";
import { otherEnds } from "./withheld-end.ts";
import { type Moment, World, type WorldSetup } from "./world.ts";

/** Journals up to this length are replayed without their last entry in every history, longer ones in every fourth: recovery replays, too. */
const REPLAYED_ENTRIES = 120;
const REPLAYED_EVERY = 4;

export interface Explored {
  readonly scene: Scene;
  readonly workflows: Workflows;
  readonly encryption?: EncryptionOptions | undefined;
  readonly book: RecordBook | null;
  readonly stillness: Stillness;
  readonly bodies: BodyWorlds;
  fresh(): void | Promise<void>;
  observe(): unknown;
  /** Whether everything outside can be put back to any moment, so that a history can begin in the middle. */
  readonly isForkable: boolean;
}

/** A point of the undisturbed history, with what tells it from others. */
export interface RecordedPoint extends CrashPoint {
  /** Equal for points at which a crash finds the same. */
  readonly state: string;
  /** At the start of a function that does not wait for anything: the state at its end. */
  readonly endState?: string;
  /** The function that has just made an effect. */
  readonly actor?: BodyStart | null;
  readonly moment: Moment | null;
  effects(): readonly Effect[];
}

/** One history to be played. */
export interface Blow {
  readonly point: RecordedPoint;
  readonly mode: CrashMode;
}

export class Explorer {
  readonly #explored: Explored;
  /** Points at which an answer is still to be lost. */
  readonly #answers = new Set<number>();
  #histories = 0;
  #outcomes = 0;
  /** Heads of the journals that were found to lead to their last entry. */
  readonly #replayed = new Set<string>();
  #undisturbed: World | null = null;
  /** `null`: what is outside, or what a script does, cannot be compared. */
  readonly #crossroads: Crossroads | null;
  /** Every history is replayed without its last entry, however long. */
  isReplayingAll = false;

  constructor(explored: Explored) {
    this.#explored = explored;
    const { isForkable, scene, book } = explored;
    this.#crossroads = isForkable && scene.script === undefined ? new Crossroads(book) : null;
  }

  /** The history that the others are compared with, and its points. */
  async record(): Promise<{ readonly outcome: Outcome; readonly points: readonly RecordedPoint[] }> {
    const { book, isForkable } = this.#explored;
    const points: RecordedPoint[] = [];
    let writes = 0;
    const note: WorldSetup["inject"] = ({ n, kind, label, isSync }, world) => {
      // A body that has come to its next commit may have changed what is outside, and only a recorder would tell.
      const isChange = kind === "before-commit" ? !isForkable : kind !== "step" && kind !== "effect";
      if (isChange) writes++;
      const stateAfter = (ends: number) => [writes, world.starts.length, ends, book?.length, world.clock.now()].join();
      const { length: ends } = world.ends;
      const state = stateAfter(ends);
      const last = points.at(-1);
      const moment = !isForkable || last?.state === state ? (last?.moment ?? null) : world.moment();
      if (isSync) {
        const begun = points.findLastIndex((point) => point.kind !== "effect");
        points[begun] = { ...(points[begun] as RecordedPoint), endState: state };
      }
      // What a function does last is all done at its end, too.
      const isItsEnd = last?.kind === "effect" && last.actor === world.ends.at(-1)?.body;
      if (isItsEnd && last.state === stateAfter(ends - 1)) points[points.length - 1] = { ...last, state };
      const actor = kind === "effect" ? world.actor : null;
      points.push({ n, kind, label: label(), state, actor, moment, effects: book?.save() ?? (() => []) });
      if (kind === "after-commit") this.#crossroads?.pass(world);
      return null;
    };
    const outcome = await this.#play(note);
    this.#undisturbed = outcome.ending.world;
    this.#crossroads?.remember(outcome);
    return { outcome, points };
  }

  /** The undisturbed history once more, which may come out otherwise. */
  repeat(): Promise<Outcome> {
    return this.#play(() => null);
  }

  /** Those that are to be played: a history may come to several of them (CR4). */
  expect(blows: readonly Blow[]): void {
    for (const { point, mode } of blows) if (mode === "lost-answer") this.#answers.add(point.n);
  }

  /** Plays the history in which this goes wrong; `null` if another one has shown already that it leads to nothing. */
  async strike({ point, mode }: Blow): Promise<Outcome | null> {
    if (mode === "lost-answer") return this.#answers.has(point.n) ? this.#lose(point) : null;
    if (mode === "take-over") return this.#play(this.#joining(({ n }) => (n === point.n ? mode : null)));
    const outcome = await this.#kill(point);
    this.#crossroads?.remember(outcome);
    return outcome;
  }

  /** Loses this answer, and whatever others can be lost on the same way. */
  #lose(point: RecordedPoint): Promise<Outcome> {
    const isNext = (n: number) => n >= point.n && this.#answers.has(n);
    return this.#play(
      this.#joining(
        ({ n }, { strikes }) => (strikes.length === 0 && isNext(n) && this.#answers.delete(n) ? "lost-answer" : null),
        (from) => [...this.#answers].some((n) => n > from),
      ),
    );
  }

  #kill(point: RecordedPoint): Promise<Outcome> {
    if (point.moment !== null && this.#undisturbed !== null) return this.#fork(point, point.moment);
    return this.#play(this.#joining(({ n }) => (n === point.n ? "kill" : null)));
  }

  /** The same, in a history that ends where it comes to an earlier one, unless more is wanted of it. */
  #joining(inject: WorldSetup["inject"], isWanted: (from: number) => boolean = () => false): WorldSetup["inject"] {
    const crossroads = this.#crossroads;
    if (crossroads === null) return inject;
    return (point, world) => {
      const mode = inject(point, world);
      if (mode === null && point.kind === "after-commit") crossroads.reach(world, isWanted);
      return mode;
    };
  }

  /** Plays histories with two blows each, none of them in the middle of a function, all of them, for as long as `isMore` says so. */
  async *pairs(modes: readonly CrashMode[], isMore: () => boolean): AsyncGenerator<Outcome> {
    const choices = new Choices();
    while (isMore() && choices.next()) {
      let left = 2;
      const outcome = await this.#play(({ kind }) => {
        const here = kind === "effect" ? [] : modes.filter((mode) => modesAt(kind).includes(mode));
        const branch = left === 0 ? 0 : choices.pick(here.length + 1);
        if (branch === 0) return null;
        left--;
        return here[branch - 1] ?? null;
      });
      if (left === 0) yield outcome;
    }
  }

  /** Plays a history with a blow here and another one so many points later. */
  pair(first: Blow, gap: number, mode: CrashMode): Promise<Outcome> {
    return this.#play(({ n, kind }) => {
      if (n === first.point.n) return first.mode;
      return n === first.point.n + gap && kind !== "effect" && modesAt(kind).includes(mode) ? mode : null;
    });
  }

  async #fork(point: RecordedPoint, moment: Moment): Promise<Outcome> {
    const { book, scene } = this.#explored;
    const { starts = [], ends = [] } = this.#undisturbed ?? {};
    book?.restore(point.effects());
    const undisturbed = this.#joining(() => null);
    const world = this.#world(undisturbed, { moment, starts, ends });
    world.strikes.push({ point, mode: "kill", engine: null });
    const history = new History(world, scene);
    return this.#outcome(await history.resume());
  }

  async #play(inject: WorldSetup["inject"]): Promise<Outcome> {
    const { book, scene } = this.#explored;
    book?.clear();
    await this.#explored.fresh();
    return this.#outcome(await new History(this.#world(inject), scene).play());
  }

  #world(inject: WorldSetup["inject"], from?: WorldSetup["from"]): World {
    const { workflows, stillness, bodies, encryption, book } = this.#explored;
    const history = this.#histories++;
    return new World({
      workflows,
      encryption,
      stillness,
      bodies,
      book,
      history,
      inject,
      ...(from === undefined ? {} : { from }),
    });
  }

  #isLeftOut(journals: Outcome["journals"]): boolean {
    const isLong = [...journals.values()].some(({ length }) => length > REPLAYED_ENTRIES);
    return isLong && this.#outcomes++ % REPLAYED_EVERY !== 0;
  }

  async #otherEnds(ending: Ending, journals: Outcome["journals"]): Promise<Outcome["otherEnds"]> {
    const heads = [...journals].map(([run, journal]) => `${run} ${journal.at(-1)?.hash}`).join();
    const isKnown = this.#replayed.has(heads) && ending.world.hazards.size === 0;
    if (!this.isReplayingAll && (isKnown || this.#isLeftOut(journals))) return [];
    const found = await otherEnds(ending, this.#explored.scene, (moment) =>
      this.#world(() => null, { moment, starts: [], ends: [] }),
    );
    if (found.length === 0) this.#replayed.add(heads);
    return found;
  }

  async #outcome(ending: Ending): Promise<Outcome> {
    const joined = this.#crossroads?.outcomeOf(ending.world) ?? null;
    if (joined !== null) return joined;
    const { book } = this.#explored;
    const requests = book?.save()() ?? [];
    const observed = await this.#explored.observe();
    const journals = new Map(ending.rows.map(({ id }) => [id, ending.world.journal(id)]));
    return {
      ending,
      journals,
      ends: endsOf(ending, journals),
      requests,
      observed,
      otherEnds: await this.#otherEnds(ending, journals),
    };
  }
}

/** Every blow that makes a difference, and how many were left out because they make none. */
export function blowsAt(
  points: readonly RecordedPoint[],
  modes: readonly CrashMode[],
): { readonly blows: readonly Blow[]; readonly skipped: number } {
  const seen = new Set<string>();
  const blows: Blow[] = [];
  let skipped = 0;
  const others = new Set(points.filter(({ kind }) => kind !== "effect").map(({ state }) => state));
  for (const point of points) {
    if (point.kind === "effect" && others.has(point.state)) {
      skipped += modes.includes("kill") ? 1 : 0;
      continue;
    }
    // A function is cut off where it is by a history that begins there; where none can, real processes are.
    if (point.kind === "effect" && point.moment === null) continue;
    for (const mode of CRASH_MODES.filter((one) => modes.includes(one) && modesAt(point.kind).includes(one))) {
      const state = `${mode} ${stateFor(point, mode)}`;
      if (seen.has(state)) skipped++;
      else blows.push({ point, mode });
      seen.add(state);
    }
  }
  return { blows: killsFirst(blows, points), skipped };
}

/** What a take-over or a lost answer leads back to is remembered for as long as the same state is struck (CR3). */
function killsFirst(blows: readonly Blow[], points: readonly RecordedPoint[]): readonly Blow[] {
  const places = new Map<string, number>();
  for (const { state, n } of points) if (!places.has(state)) places.set(state, n);
  const placeOf = ({ point, mode }: Blow) => places.get(stateFor(point, mode)) ?? places.get(point.state) ?? point.n;
  return blows
    .map((blow) => ({ blow, place: placeOf(blow), rank: CRASH_MODES.indexOf(blow.mode) }))
    .sort((a, b) => a.place - b.place || a.rank - b.rank)
    .map(({ blow }) => blow);
}

/**
 * What can be told apart depends on what goes wrong: an answer is lost to a request that was or was not carried out, a frozen step goes on.
 * If it does not wait for anything, it is at its end before another process can do anything.
 */
function stateFor({ state, endState, kind, label }: RecordedPoint, mode: CrashMode): string {
  if (mode === "lost-answer") return `${state} ${kind} ${label}`;
  if (mode === "take-over" && kind === "step" && label.startsWith("start")) return endState ?? `${state} begun`;
  return state;
}

/** Some of the list, spread over all of it, by the seed. */
export function sample<T>(list: readonly T[], size: number, seed: number): readonly T[] {
  if (list.length <= size) return list;
  const chance = seededRandom(`sample ${seed}`);
  const width = list.length / size;
  return Array.from({ length: size }, (_, i) => list[Math.floor((i + chance.next()) * width)] as T);
}
