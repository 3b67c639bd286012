// The report of a trial: what was injected, what was reached, what was judged, and the verdict; and what is kept of it.
import { appendFileSync, rmSync } from "node:fs";
import { join } from "node:path";

export const say = (text) => process.stdout.write(`${text}\n`);

const number = (value) => value.toLocaleString("en-US");

function table(title, rows) {
  const width = Math.max(...rows.map(([name]) => name.length), 40);
  return [title, ...rows.map(([name, value]) => `  ${name.padEnd(width)} ${number(value).padStart(9)}`), ""];
}

const sorted = (counts) => [...counts].sort(([a], [b]) => a.localeCompare(b));

/** Lines for people. */
function reportLines({ injected, reached, judged, violations }) {
  return [
    ...table("Injected", sorted(injected)),
    ...table("Reached", sorted(reached)),
    ...table("Judged", [...judged]),
    ...violations
      .slice(0, 30)
      .map(({ rule, run, text }) => `VIOLATION ${rule}${run === null ? "" : `, run ${run}`}: ${text}`),
    ...(violations.length > 30 ? [`… and ${violations.length - 30} more`] : []),
    violations.length === 0 ? "Verdict: no violation" : `Verdict: ${violations.length} violations`,
  ];
}

/** Prints it, as one JSON object as well if that is wanted. The exit code is 1 if something was violated. */
export function tell(report, folder, isJson) {
  for (const line of reportLines(report)) say(line);
  const { injected, reached, judged, violations, figures } = report;
  const plain = {
    injected: Object.fromEntries(injected),
    reached: Object.fromEntries(reached),
    judged: Object.fromEntries(judged),
  };
  if (isJson) say(JSON.stringify({ ...plain, figures, violations, folder }));
  if (violations.length > 0) process.exitCode = 1;
}

/** The database of a trial goes with its server: of a bad one, every run and its journal are written to the folder first. A good one leaves nothing. */
export async function close(judge, folder, isKept) {
  if (judge.violations.length === 0 && !isKept) return rmSync(folder, { recursive: true, force: true });
  for (const row of await judge.allRuns()) {
    const journal = await judge.store.journal(row.id);
    appendFileSync(join(folder, "runs.jsonl"), `${JSON.stringify({ row, journal })}\n`);
  }
  say(`Ledgers, logs and all runs are kept in ${folder}`);
}

export function whole(name, text, least = 0) {
  const number = Number(text);
  if (Number.isInteger(number) && number >= least) return number;
  throw new Error(`--${name} is "${text}". Give a whole number from ${least} on.`);
}
