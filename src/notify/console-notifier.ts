import { formatMs } from "../base/duration.ts";
import type { Notification, Notifier } from "../core/notification.ts";

/** Writes a line for each notification, by default to stderr. */
export function consoleNotifier(
  options: { readonly name?: string; readonly write?: (line: string) => void } = {},
): Notifier {
  const { name = "console", write = (line: string) => void process.stderr.write(`${line}\n`) } = options;
  return { name, notify: (notification) => write(lineOf(notification)) };
}

const WORDS: Readonly<Record<Notification["event"], string>> = {
  "approval.requested": "is asked for",
  "approval.reminder": "still waits",
  "approval.escalated": "is escalated",
};

function lineOf({
  event,
  step,
  run,
  workflow,
  level,
  action,
  waitedMs,
  to,
  risk,
  summary,
  denials,
  approval,
}: Notification): string {
  const reached = level === 0 ? "" : `, level ${level}${action === null ? "" : ` (${action})`}`;
  const denied =
    denials.tool === 0 ? "" : `Denied in this run before: ${denials.tool}, this very action ${denials.action}. `;
  const text =
    `[pawl] Approval "${step}" ${WORDS[event]} in ${workflow} ${run}: ${summary} (risk ${risk}). ${denied}` +
    `Waiting ${formatMs(waitedMs)}${reached}. For ${to.join(", ")}: pawl approve ${approval} --by <name>`;
  // Arguments may hold anything: a line stays a line, and moves no cursor.
  return text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, " ");
}
