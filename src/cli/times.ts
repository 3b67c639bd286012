import { formatMs, toMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";

/** Local time to the second: "2026-11-15 20:14:03". */
export function timeOf(time: Date | number): string {
  const date = new Date(time);
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19).replace("T", " ");
}

export function clockOf(time: Date | number): string {
  return timeOf(time).slice(11);
}

/** A time from now: "20:14:03, in 2m 05s", with the date if it is another day. */
export function inTime(now: number, time: number): string {
  const at = timeOf(now).slice(0, 10) === timeOf(time).slice(0, 10) ? clockOf(time) : timeOf(time);
  return `${at}, ${time > now ? `in ${formatMs(time - now)}` : "due"}`;
}

/** A point in time as people type it: a date, or how long ago ("2h", "3 days"). */
export function parseTime(text: string, option: string, now: number): Date {
  const isDate = /^\d{4}-\d{2}/.test(text);
  const date = new Date(isDate ? text : now - durationOf(text, option));
  if (!Number.isNaN(date.getTime())) return date;
  throw new PawlError(
    "invalid_argument",
    `${option} "${text}" is not a time. Give a date such as 2026-11-15 or 2026-11-15T20:00:00Z, or how long ago: 2h, "3 days".`,
    {
      fields: { option, value: text },
    },
  );
}

function durationOf(text: string, option: string): number {
  try {
    return toMs(text, option);
  } catch {
    return Number.NaN;
  }
}
