/** The alerts that nobody should be without, by their names in the options of `Pawl.open`. */
export const FOUR_ALERTS: readonly string[] = ["retryStorm", "stuckApproval", "duplicateEffect", "replayFailure"];

/** Why these options do not have the four alerts; `null`: they do. What is left out is on. */
export function alertFault(alerts: unknown): string | null {
  if (alerts === undefined) return null;
  if (alerts === false) return "`alerts: false` turns all of them off: leave it out";
  if (typeof alerts !== "object" || alerts === null) return "`alerts` is exported, and is no object";
  const off = FOUR_ALERTS.filter((name) => (alerts as Record<string, unknown>)[name] === false);
  return off.length === 0 ? null : `${off.map((name) => `\`alerts.${name}\``).join(", ")} is turned off: leave it on`;
}
