// The server's metrics as lines to show: a rate, what it is made of, and the runs behind it.
import { duration } from "../format.ts";

export interface Metric {
  readonly name: string;
  readonly text: string;
  /** What it is made of. */
  readonly says: string;
  readonly runs: readonly string[];
}

/** Every metric of the answer, whatever its name: a new one shows up without a new page. */
export function metricsIn(data: unknown): Metric[] {
  if (typeof data !== "object" || data === null) return [];
  const { metrics = data } = data as { readonly metrics?: unknown };
  return Object.entries(metrics as Record<string, unknown>).flatMap(([name, value]) => lineOf(name, value) ?? []);
}

function lineOf(name: string, value: unknown): Metric | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const facts = value as Record<string, unknown>;
  if (!("value" in facts) && !("median" in facts) && !("medianMs" in facts)) return null;
  return { name: wordsOf(name), text: textOf(facts), says: saysOf(facts), runs: runsIn(facts) };
}

function wordsOf(name: string): string {
  const words = name
    .replaceAll(/([A-Z])/g, " $1")
    .replaceAll(/[_-]/g, " ")
    .toLowerCase()
    .trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function textOf({ value, median, medianMs }: Record<string, unknown>): string {
  const typical = medianMs ?? median;
  if (typeof typical === "number") return duration(typical);
  if (typeof value !== "number") return "no data";
  return value >= 0 && value <= 1
    ? `${(value * 100).toLocaleString("en", { maximumFractionDigits: 1 })}%`
    : String(value);
}

/** The plain numbers beside the value. */
function saysOf(facts: Record<string, unknown>): string {
  return Object.entries(facts)
    .filter(([name, value]) => typeof value === "number" && name !== "value")
    .map(([name, value]) => `${wordsOf(name).toLowerCase()} ${/ms$/i.test(name) ? duration(value as number) : value}`)
    .join(", ");
}

function runsIn(facts: Record<string, unknown>): string[] {
  const found = Object.values(facts).flatMap((value) => {
    if (Array.isArray(value)) return value.filter((one): one is string => typeof one === "string");
    return typeof value === "object" && value !== null ? runsIn(value as Record<string, unknown>) : [];
  });
  return [...new Set(found)];
}
