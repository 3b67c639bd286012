import { PawlError } from "./errors.ts";

/** Milliseconds, or text such as "90s", "1h 30m", "3 days". */
export type Duration = number | string;

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const WEEK = 7 * DAY;

/** Ten thousand years: longer is a mistake of units, and would leave the range of dates. */
const MAX_MS = 3_652_425 * DAY;

const UNITS: ReadonlyMap<string, number> = new Map([
  ...named(1, "ms", "msec", "msecs", "millisecond", "milliseconds"),
  ...named(SECOND, "s", "sec", "secs", "second", "seconds"),
  ...named(MINUTE, "m", "min", "mins", "minute", "minutes"),
  ...named(HOUR, "h", "hr", "hrs", "hour", "hours"),
  ...named(DAY, "d", "day", "days"),
  ...named(WEEK, "w", "wk", "wks", "week", "weeks"),
]);

const CALENDAR_UNIT = /^(mo|mos|months?|y|yrs?|years?)$/;

// One amount with its unit, at the place where the last one ended.
const PART = /\s*(\d+(?:\.\d+)?)\s*([a-z]+)/giy;

/** Milliseconds of a duration. `what` names it in errors: the option or argument it came from. */
export function toMs(duration: Duration, what = "duration"): number {
  const ms = typeof duration === "number" ? duration : parse(duration, what);
  if (!(ms >= 0 && ms <= MAX_MS)) {
    throw invalid(what, duration, "it must lie between 0 and 10,000 years");
  }
  return Math.round(ms);
}

function parse(duration: unknown, what: string): number {
  if (typeof duration !== "string") throw invalid(what, duration, "it is neither a number of milliseconds nor text");
  const text = duration.trim();
  if (/^[\d.]+$/.test(text)) throw invalid(what, duration, "it has no unit");
  let total = 0;
  let last = Number.POSITIVE_INFINITY;
  let end = 0;
  for (const [part, amount, unit] of text.matchAll(PART)) {
    const size = unitMs(unit!, what, duration);
    if (size >= last) throw invalid(what, duration, "its units must go from large to small, each once");
    total += Number(amount) * size;
    last = size;
    end += part.length;
  }
  if (end === 0 || end !== text.length) throw invalid(what, duration, "it is not made of amounts with units");
  return total;
}

function unitMs(unit: string, what: string, duration: string): number {
  const name = unit.toLowerCase();
  // A capital M is a month to some and a minute to others.
  if (unit === "M" || CALENDAR_UNIT.test(name)) {
    throw invalid(what, duration, "months and years differ in length. Give days, or wait until a date (sleepUntil)");
  }
  const size = UNITS.get(name);
  if (size === undefined) throw invalid(what, duration, `it has an unknown unit, ${JSON.stringify(unit.slice(0, 20))}`);
  return size;
}

function named(size: number, ...names: string[]): [string, number][] {
  return names.map((name) => [name, size]);
}

function invalid(what: string, value: unknown, reason: string): PawlError {
  const shown = typeof value === "string" ? JSON.stringify(value.slice(0, 60)) : String(value);
  return new PawlError(
    "invalid_argument",
    `${what}: ${shown} is not a duration Pawl accepts: ${reason}. Write for example 500 (milliseconds), "90s", "1h 30m", "3 days" or "2 weeks".`,
    { fields: { what, value: shown } },
  );
}

/** A duration for people: "350 ms", "1.2 s", "2m 03s", "1h 05m", "3 d 4 h". */
export function formatMs(ms: number): string {
  if (ms < 0) return `-${formatMs(-ms)}`;
  // Each test is on the rounded figure, so that 59,999 ms reads "1m 00s" and never "60 s".
  if (Math.round(ms) < SECOND) return `${Math.round(ms)} ms`;
  const tenths = Math.round(ms / 100);
  if (tenths < 600) return `${tenths / 10} s`;
  const seconds = Math.round(ms / SECOND);
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${twoDigits(seconds % 60)}s`;
  const minutes = Math.round(ms / MINUTE);
  if (minutes < 1440) return `${Math.floor(minutes / 60)}h ${twoDigits(minutes % 60)}m`;
  const hours = Math.round(ms / HOUR);
  const rest = hours % 24;
  return rest === 0 ? `${hours / 24} d` : `${Math.floor(hours / 24)} d ${rest} h`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}
