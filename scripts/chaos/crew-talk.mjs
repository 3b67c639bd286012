// What the processes of a crew say: kept in a log, counted where it tells of something rare, and a violation where it must never be said.
import { appendFileSync } from "node:fs";
import { join } from "node:path";

const TELLING = [
  ["workers that were fenced and took a new incarnation", /takes a new incarnation/],
  ["dead workers whose runs were taken over", /is dead; its runs are taken over/],
  ["passes that were dropped and loaded again", /is loaded again/],
];
const NEVER = [/Please report this/, /lacks \d+ entries/];

/** `more` are further things to count, as [what, pattern]; `reached(what)` is called with each, `violation(text)` with what must not be. */
export function crewTalk(folder, more, { reached, violation }) {
  const telling = [...TELLING, ...more];
  return (place, member, { log, message, stderr }) => {
    const text = stderr ?? (log === undefined ? null : `${log}: ${message}\n`);
    if (text === null) return;
    appendFileSync(join(folder, "crew.log"), `${new Date().toISOString()} ${place} ${member.pid} ${text}`);
    for (const [what, pattern] of telling) if (pattern.test(text)) reached(what);
    if (NEVER.some((pattern) => pattern.test(text))) violation(text);
  };
}

export const pause = (ms) =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
