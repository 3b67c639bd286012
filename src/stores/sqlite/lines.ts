// Lines: runs that are ready and need a slot
// Those with the same slot and rate stand in one line, by priority and age. A claim looks at the lines, never at everybody who stands in them:
// behind a slot that is full there may be a hundred thousand.
import { rateLimit, slotLimit } from "../../core/flow-control.ts";
import { LIMITS } from "../../core/limits.ts";
import type { Handle } from "../../core/store.ts";
import type { Connection } from "./connection.ts";

export interface Line {
  readonly slot: string;
  /** Empty: none is needed. */
  readonly rate: string;
}

/** Before the first. */
const START: Line = { slot: "", rate: "" };

// Two questions, each of which is one step into the index: SQLite would walk a line to find the one after it.
const lineWhere = (where: string) => `select slot, rate from runs indexed by runs_lines
  where ready_at is not null and slot <> '' and ${where} order by slot, rate limit 1`;
const NEXT_RATE = lineWhere("slot = ? and rate > ?");
const NEXT_SLOT = lineWhere("slot > ?");
const HOLDERS = "select count(*) as held from runs where slot = ? and slot <> '' and owner is not null";
// Those of any span of this length around now: what began under a longer one, or by a clock that was set back, does not count for longer.
const STARTS = "select count(*) as begun from starts where rate = ?1 and until > ?2 and abs(at - ?2) < ?3";
const NEXT_START = "select until from starts where rate = ? and until > ? order by until limit 1";
const NOTE_START = "insert into starts (rate, until, run, at) values (?, ?, ?, ?)";
const FORGET_STARTS = "delete from starts where rate = ? and until <= ?";

export class Lines {
  readonly #db: Connection;
  /** Where the last look has ended, if there were more lines than one look takes. */
  #cursor: Line = START;
  #seen: readonly Line[] = [];

  constructor(db: Connection) {
    this.#db = db;
  }

  /** Those that somebody may leave now. Of more than one look takes, the next look has the others. */
  open(handles: readonly Handle[], now: number): Line[] {
    const room = new Room(this.#db, handles, now);
    this.#seen = this.#some();
    return this.#seen.filter((line) => room.of(line) > 0);
  }

  /** Goes on with the next look. */
  moveOn(): void {
    this.#cursor = this.#seen.length < LIMITS.linesPerClaim ? START : (this.#seen.at(-1) as Line);
  }

  /** When a start that a line may be waiting for no longer counts. */
  nextStart(now: number): number | null {
    const times = this.#some().flatMap(({ rate }) => {
      const until = rate === "" ? undefined : this.#db.get(NEXT_START, rate, now)?.until;
      return until === undefined ? [] : [until as number];
    });
    return times.length === 0 ? null : times.reduce((a, b) => Math.min(a, b));
  }

  /** From the cursor on, and around. */
  #some(): Line[] {
    const after = this.#walk(this.#cursor, LIMITS.linesPerClaim);
    if (this.#cursor === START || after.length === LIMITS.linesPerClaim) return after;
    const before = this.#walk(START, LIMITS.linesPerClaim - after.length);
    const isNew = ({ slot, rate }: Line) => !after.some((line) => line.slot === slot && line.rate === rate);
    return [...after, ...before.filter(isNew)];
  }

  #walk(from: Line, limit: number): Line[] {
    const lines: Line[] = [];
    for (let line = this.#next(from); line !== null && lines.length < limit; line = this.#next(line)) lines.push(line);
    return lines;
  }

  #next({ slot, rate }: Line): Line | null {
    const row = this.#db.get(NEXT_RATE, slot, rate) ?? this.#db.get(NEXT_SLOT, slot);
    return row === undefined ? null : { slot: row.slot as string, rate: row.rate as string };
  }
}

/** How many each slot and each rate still lets in, counted down as runs are taken. Must not outlive its transaction. */
export class Room {
  readonly #db: Connection;
  readonly #handles: readonly Handle[];
  readonly #now: number;
  readonly #slots = new Map<string, number>();
  readonly #rates = new Map<string, number>();

  constructor(db: Connection, handles: readonly Handle[], now: number) {
    this.#db = db;
    this.#handles = handles;
    this.#now = now;
  }

  of({ slot, rate }: Line): number {
    return Math.min(this.#ofSlot(slot), rate === "" ? Number.POSITIVE_INFINITY : this.#ofRate(rate));
  }

  /** One of this line is taken: its start counts from now on. */
  take({ slot, rate }: Line, n: number): void {
    this.#slots.set(slot, this.#ofSlot(slot) - 1);
    const limit = rate === "" ? null : rateLimit(this.#handles, rate);
    if (limit == null) return;
    this.#rates.set(rate, this.#ofRate(rate) - 1);
    this.#db.run(FORGET_STARTS, rate, this.#now);
    this.#db.run(NOTE_START, rate, this.#now + limit.perMs, n, this.#now);
  }

  #ofSlot(slot: string): number {
    return remembered(this.#slots, slot, () => {
      const limit = slotLimit(this.#handles, slot);
      return limit === null ? Number.POSITIVE_INFINITY : limit - (this.#db.get(HOLDERS, slot)?.held as number);
    });
  }

  #ofRate(rate: string): number {
    return remembered(this.#rates, rate, () => {
      const limit = rateLimit(this.#handles, rate);
      if (limit == null) return Number.POSITIVE_INFINITY;
      return limit.limit - (this.#db.get(STARTS, rate, this.#now, limit.perMs)?.begun as number);
    });
  }
}

function remembered(known: Map<string, number>, name: string, read: () => number): number {
  const value = known.get(name) ?? read();
  known.set(name, value);
  return value;
}
