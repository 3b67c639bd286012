// Crossroads
// What cannot be told apart is played once, in the middle of a history as at its points: one that comes, some steps after its blow, to where
// an earlier one was, goes on as that one did, and need not be played any further.
//
//   CR1. It is the same place if the store, the clock and everything outside are the same, nothing is in flight, and every body began with
//        the same entries: what it has in its variables besides, both have. Of what was done outside only the idempotency keys make a
//        difference to what follows, unless somebody reads the record.
//   CR2. Nothing that is not recorded was ever read, and the rest of the earlier history took no time: whoever else is alive, as the
//        engine that was thawed, has no occasion to take part in it.
//   CR3. Only the undisturbed history and the last one with a kill are remembered: they are what a lost answer and a take-over lead back
//        to, and journals are long.
//   CR4. One that has lost an answer and is back where the undisturbed one was, with nothing else begun or ended on the way, is as good as
//        new: another answer of it may be lost.
import type { Effect, RecordBook } from "../recorder.ts";
import { isSameRequest } from "./effect-counts.ts";
import type { Outcome } from "./verdict.ts";
import type { World } from "./world.ts";

/** Where a history was, and how much of it lay behind it. */
interface Mark {
  readonly place: string;
  readonly now: number;
  readonly starts: number;
  readonly ends: number;
  readonly requests: number;
  readonly strikes: number;
  readonly points: number;
  readonly commits: number;
}

interface Road {
  readonly outcome: Outcome;
  readonly marks: ReadonlyMap<string, Mark>;
}

export class Crossroads {
  readonly #book: RecordBook | null;
  /** The history that is played now. */
  #current: { readonly world: World; readonly marks: Mark[] } | null = null;
  #joined: { readonly world: World; readonly road: Road; readonly mark: Mark } | null = null;
  #undisturbed: Road | null = null;
  #killed: Road | null = null;

  constructor(book: RecordBook | null) {
    this.#book = book;
  }

  /**
   * To be called after commits. A history that need not go on is left by its engines; if it is as good as new (CR4), `isWanted` may ask for more
   * of it from the point on that it has come to.
   */
  reach(world: World, isWanted: (from: number) => boolean): void {
    if (!world.isNextSection() || world.strikes.length === 0) return;
    const last = this.#marksOf(world).at(-1);
    const mark = this.#pass(world);
    if (mark === null) return;
    const { place } = mark;
    // Not at the first one after a blow: whatever it has upset in the engine has some steps to show.
    const isSteady = last?.strikes === mark.strikes;
    const road = isSteady ? [this.#undisturbed, this.#killed].find((one) => one?.marks.has(place)) : null;
    const same = road?.marks.get(place);
    if (road == null || same === undefined || !this.#hasSamePast(road, same)) return;
    const isNew = road === this.#undisturbed && isAsGoodAsNew(world, mark, same) && this.#hasSameRequests(road, same);
    if (isNew && isWanted(same.points)) {
      this.#current = null;
      return world.renew(same);
    }
    this.#joined = { world, road, mark: same };
    world.leave();
  }

  /** To be called after commits of the undisturbed history. */
  pass(world: World): void {
    if (world.isNextSection()) this.#pass(world);
  }

  #pass(world: World): Mark | null {
    const place = world.place();
    if (place === null) return null;
    const mark: Mark = {
      place,
      now: world.clock.now(),
      starts: world.starts.length,
      ends: world.ends.length,
      requests: this.#book?.length ?? 0,
      strikes: world.strikes.length,
      points: world.points,
      commits: world.commits,
    };
    this.#marksOf(world).push(mark);
    return mark;
  }

  /** Remembers a history that others may lead back to. */
  remember(outcome: Outcome): void {
    const { world } = outcome.ending;
    if (world.hazards.size > 0 || world.isLeft) return;
    const end = world.clock.now();
    const marks = this.#marksOf(world).filter(({ now }) => now === end);
    const road = { outcome, marks: new Map(marks.map((mark) => [mark.place, mark])) };
    if (world.strikes.length === 0) this.#undisturbed = road;
    else this.#killed = road;
  }

  /** How a history that was left would have come out. */
  outcomeOf(world: World): Outcome | null {
    if (this.#joined?.world !== world) return null;
    const { road, mark } = this.#joined;
    const { ending } = road.outcome;
    world.starts.push(...ending.world.starts.slice(mark.starts));
    world.ends.push(...ending.world.ends.slice(mark.ends));
    for (const step of ending.world.halfDone) world.halfDone.add(step);
    const requests = [...this.#past(), ...road.outcome.requests.slice(mark.requests)];
    return { ...road.outcome, requests, ending: { ...ending, world } };
  }

  #marksOf(world: World): Mark[] {
    if (this.#current?.world !== world) this.#current = { world, marks: [] };
    return this.#current.marks;
  }

  #past(): readonly Effect[] {
    return this.#book?.save()() ?? [];
  }

  #hasSamePast(road: Road, mark: Mark): boolean {
    const book = this.#book;
    if (book === null || book.isRead) return this.#hasSameRequests(road, mark);
    return book.hasSameKeys(road.outcome.requests.slice(0, mark.requests));
  }

  #hasSameRequests({ outcome }: Road, { requests }: Mark): boolean {
    const own = this.#past();
    return own.length === requests && own.every((effect, i) => isSameRequest(effect, outcome.requests[i]));
  }
}

function isAsGoodAsNew({ strikes, late, stale, hazards }: World, mark: Mark, same: Mark): boolean {
  if (strikes.some(({ mode }) => mode !== "lost-answer") || late.length + stale.length + hazards.size > 0) return false;
  return mark.starts === same.starts && mark.ends === same.ends;
}
