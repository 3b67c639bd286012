import { formatMs } from "../base/duration.ts";
import type {
  AlertNotification,
  ApprovalNotification,
  IncompleteNotification,
  Notification,
  Notifier,
} from "../core/notification.ts";

/** Writes a line for each notification, by default to stderr. */
export function consoleNotifier(
  options: { readonly name?: string; readonly write?: (line: string) => void } = {},
): Notifier {
  const { name = "console", write = (line: string) => void process.stderr.write(`${line}\n`) } = options;
  return { name, notify: (notification) => write(lineOf(notification)) };
}

const WORDS: Readonly<Record<ApprovalNotification["event"], string>> = {
  "approval.requested": "is asked for",
  "approval.reminder": "still waits",
  "approval.escalated": "is escalated",
};

function lineOf(notification: Notification): string {
  const text = textOf(notification);
  // What it tells of may hold anything: a line stays a line, moves no cursor, and reads in the order in which it is written.
  return text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu, " ");
}

function textOf(notification: Notification): string {
  switch (notification.event) {
    case "compensation_incomplete":
      return incompleteText(notification);
    case "alert.firing":
      return alertText(notification);
    default:
      return approvalText(notification);
  }
}

function alertText({ kind, level, summary, to, alert }: AlertNotification): string {
  const who = to.length === 0 ? "" : ` For ${to.join(", ")}:`;
  const reached = level === 0 ? "" : ` (level ${level})`;
  return `[pawl] Alert ${kind}${reached}: ${summary}.${who} pawl alerts ack ${alert} --by <name>`;
}

function incompleteText({ run, workflow, owner, summary }: IncompleteNotification): string {
  const who = owner === null ? "" : `For ${owner}: `;
  return `[pawl] ${workflow} ${run} has ended, and not all that it did could be undone: ${summary}. ${who}pawl effects ${run}`;
}

function approvalText({
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
  links = [],
}: ApprovalNotification): string {
  const reached = level === 0 ? "" : `, level ${level}${action === null ? "" : ` (${action})`}`;
  const denied =
    denials.tool === 0 ? "" : `Denied in this run before: ${denials.tool}, this very action ${denials.action}. `;
  const pages = links.map((link) => ` ${link.for}: ${link.url}`).join("");
  return (
    `[pawl] Approval "${step}" ${WORDS[event]} in ${workflow} ${run}: ${summary} (risk ${risk}). ${denied}` +
    `Waiting ${formatMs(waitedMs)}${reached}. For ${to.join(", ")}: pawl approve ${approval} --by <name>${pages === "" ? "" : ` or on a page.${pages}`}`
  );
}
