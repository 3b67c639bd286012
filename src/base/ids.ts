import { assert } from "./assert.ts";
import { PawlError } from "./errors.ts";
import { hex32 } from "./hex.ts";
import { isWellFormed, utf8Length } from "./utf8.ts";

/** Makes ids. The port that core sees. */
export interface Ids {
  next(): string;
}

export interface IdSources {
  /** Wall time in milliseconds. It may stand still or step back; the ids do not. */
  now(): number;
  randomBytes(count: number): Uint8Array;
}

const MAX_TIME = 2 ** 48 - 1;
const MAX_COUNTER = 0xfff;
const BYTES_PER_ID = 10;
const IDS_PER_POOL = 64;

/**
 * UUIDs of version 7, each greater as text than the one before: rows inserted in order stay in order in an index.
 * Layout: 48 bits of time, a counter of 12 bits, 62 random bits.
 */
export function createIds({ now, randomBytes }: IdSources): Ids {
  let time = -1;
  let counter = 0;
  let pool = new Uint8Array(0);
  let used = 0;
  const draw = (): Uint8Array => {
    // A call into the system's generator costs more than the rest of an id.
    if (used >= pool.length) {
      pool = Uint8Array.from(randomBytes(BYTES_PER_ID * IDS_PER_POOL));
      assert(pool.length === BYTES_PER_ID * IDS_PER_POOL, "randomBytes gives as many bytes as asked");
      used = 0;
    }
    used += BYTES_PER_ID;
    return pool.subarray(used - BYTES_PER_ID, used);
  };
  return {
    next() {
      const random = draw();
      const wall = Math.floor(now());
      if (wall > time) {
        time = wall;
        // The upper half stays free, for at least 2048 ids in one millisecond.
        counter = ((random[8]! << 8) | random[9]!) & 0x7ff;
      } else if (counter < MAX_COUNTER) {
        counter += 1;
      } else {
        // Spent, or the clock went back: borrow from the future rather than repeat the past.
        time += 1;
        counter = 0;
      }
      assert(time >= 0 && time <= MAX_TIME, `time ${time} fits the 48 bits of an id`);
      return format(time, counter, random);
    },
  };
}

function format(time: number, counter: number, random: Uint8Array): string {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = random;
  const stamp = hex32(time / 2 ** 16);
  const middle = hex32(((time % 2 ** 16) << 16) | 0x7000 | counter);
  const tail = hex32(0x80000000 | ((a & 0x3f) << 24) | (b << 16) | (c << 8) | d);
  const end = hex32((e << 24) | (f << 16) | (g << 8) | h);
  return `${stamp}-${middle.slice(0, 4)}-${middle.slice(4)}-${tail.slice(0, 4)}-${tail.slice(4)}${end}`;
}

/** Index pages and file systems have limits on keys; nothing a person reads is longer. */
const MAX_NAME_BYTES = 256;

// Controls, line and paragraph separators, and the marks that reorder text: they forge what a page or a log shows.
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u;

/** True if `text` may name a workflow, step, signal, key or run (Q7). */
export function isName(text: unknown): text is string {
  return typeof text === "string" && flawOf(text) === null;
}

/** Throws `invalid_name` unless `text` is a name. `what` says what it would have named: "step name", "run id". */
export function assertName(what: string, text: unknown): asserts text is string {
  const flaw = typeof text === "string" ? flawOf(text) : "it must be text";
  if (flaw === null) return;
  const shown = typeof text === "string" ? excerpt(text) : String(text === null ? null : typeof text);
  throw new PawlError(
    "invalid_name",
    `${what} ${shown} cannot be used: ${flaw}. A name is 1 to ${MAX_NAME_BYTES} bytes of printable text without "#", "/" and "\\".`,
    { fields: { what, value: shown } },
  );
}

function flawOf(text: string): string | null {
  if (text === "") return "it is empty";
  // The first test spares the second on a text of megabytes.
  if (text.length > MAX_NAME_BYTES || utf8Length(text) > MAX_NAME_BYTES) {
    return `it is longer than ${MAX_NAME_BYTES} bytes`;
  }
  // P6: both separate the parts of a key.
  if (text.includes("#") || text.includes("/")) return '"#" and "/" are reserved';
  if (text.includes("\\")) return "it has a backslash";
  if (text === "." || text === "..") return "it means a directory";
  if (text.trim() !== text) return "it begins or ends with a space";
  if (!isWellFormed(text)) return "it is not valid Unicode";
  if (UNPRINTABLE.test(text)) return "it has a control character";
  return null;
}

function excerpt(text: string): string {
  const start = JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
  return start.replaceAll(
    new RegExp(UNPRINTABLE, "gu"),
    (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
