// Times, numbers and ids for people.
import { formatMs } from "../../src/base/duration.ts";

export type Moment = string | number | null | undefined;

export function msOf(moment: Moment): number | null {
  if (moment === null || moment === undefined) return null;
  const ms = typeof moment === "number" ? moment : Date.parse(moment);
  return Number.isNaN(ms) ? null : ms;
}

export function duration(ms: number): string {
  return formatMs(Math.max(0, ms));
}

const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const TIME = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hour12: false,
});
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long", hour12: false });

const SHORT_TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });
const SEVERAL_DAYS = 2 * 86_400_000;
const MINUTES = 600_000;

/** As precise as an axis of this length needs. */
export function axisTime(ms: number, length: number): string {
  if (length > SEVERAL_DAYS) return DAY.format(ms);
  return length > MINUTES ? SHORT_TIME.format(ms) : TIME.format(ms);
}

export function fullTime(moment: Moment): string {
  const ms = msOf(moment);
  return ms === null ? "" : FULL.format(ms);
}

/** The time of day; with its day, if that is not today. */
export function clockTime(moment: Moment): string {
  const ms = msOf(moment);
  if (ms === null) return "";
  const isToday = new Date(ms).toDateString() === new Date().toDateString();
  return isToday ? TIME.format(ms) : `${DAY.format(ms)}, ${TIME.format(ms)}`;
}

/** The zone that all times are shown in: that of the browser. */
export function zoneText(): string {
  const { timeZone } = TIME.resolvedOptions();
  const parts = new Intl.DateTimeFormat("en", { timeZoneName: "shortOffset" }).formatToParts();
  const offset = parts.find(({ type }) => type === "timeZoneName")?.value.replace("GMT", "UTC") ?? "UTC";
  return timeZone === "UTC" ? timeZone : `${timeZone} (${offset})`;
}

/** "3m ago", "in 1d 23h", "now". */
export function relative(moment: Moment, now: number): string {
  const ms = msOf(moment);
  if (ms === null) return "";
  const distance = Math.abs(ms - now);
  if (distance < 1000) return "now";
  return ms < now ? `${rough(distance)} ago` : `in ${rough(distance, 2)}`;
}

const UNITS: readonly (readonly [string, number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
];

/** One unit is enough to know how long ago something was; how much is left takes two, or two days would be one for most of the time. */
function rough(ms: number, units = 1): string {
  const first = UNITS.findIndex(([, size]) => ms >= size);
  let rest = ms;
  const parts = UNITS.slice(first, first + units).map(([unit, size]) => {
    const amount = Math.floor(rest / size);
    rest -= amount * size;
    return amount === 0 ? "" : `${amount}${unit}`;
  });
  return parts.filter((part) => part !== "").join(" ");
}

export function count(number: number): string {
  return number.toLocaleString("en");
}

export function plural(number: number, one: string, many: string = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** The end of an id: its beginning is a time, and the same for all runs of a moment. */
export function shortId(id: string): string {
  return id.length <= 16 ? id : `…${id.slice(-8)}`;
}

/** An amount without more digits than it has. */
export function amount(value: number, unit: string): string {
  if (unit === "usd") return `$${value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 4 })}`;
  if (unit === "time" || unit === "timeMs") return duration(value);
  return `${value.toLocaleString("en", { maximumFractionDigits: 4 })} ${unit}`;
}

/** A value on one line. */
export function oneLine(value: unknown, max = 120): string {
  if (value === undefined) return "";
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  const line = text.replaceAll(/\s+/g, " ");
  return line.length > max ? `${line.slice(0, max - 1)}…` : line;
}

/** What an error says, with its cause. */
export function errorText(error: unknown): string {
  if (typeof error !== "object" || error === null) return String(error ?? "unknown error");
  const { message, name, code, cause } = error as Record<string, unknown>;
  const text = typeof message === "string" && message !== "" ? message : String(name ?? "unknown error");
  const named = typeof code === "string" && !text.includes(code) ? `${text} (${code})` : text;
  return cause === undefined || cause === null ? named : `${named} Cause: ${errorText(cause)}`;
}
