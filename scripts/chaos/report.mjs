// The report of a trial: what was injected, what was reached, what was judged, and the verdict.

const number = (value) => value.toLocaleString("en-US");

function table(title, rows) {
  const width = Math.max(...rows.map(([name]) => name.length), 40);
  return [title, ...rows.map(([name, value]) => `  ${name.padEnd(width)} ${number(value).padStart(9)}`), ""];
}

const sorted = (counts) => [...counts].sort(([a], [b]) => a.localeCompare(b));

/** Lines for people. */
export function reportLines({ injected, reached, judged, violations }) {
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
