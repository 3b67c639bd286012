// What `pawl why` says about approvals.
import { formatMs } from "../base/duration.ts";
import type { ApprovalDecided } from "../core/approval-request.ts";
import type { ApprovalSummary } from "./approvals.ts";
import type { RunWait } from "./run.ts";
import { decisionText, short, type Timeline } from "./timeline.ts";

/** Decisions so far, and the last reminders and escalations. */
export function approvalsSoFar(line: Timeline): string[] {
  const decided = line.waits.filter((wait) => wait.kind === "approval" && wait.status === "decided");
  const escalated = line.notes.filter(({ kind }) => kind === "escalated");
  return [
    ...escalated.slice(-3).map(({ text }) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`),
    ...decided.slice(-3).map((wait) => {
      const text = decisionText(wait.payload as ApprovalDecided);
      return `Approval "${wait.key}" was ${text}${/[.!?]$/.test(text) ? "" : "."}`;
    }),
  ];
}

/** What is asked, of whom, since when and until when. */
export function approvalNow(wait: RunWait, approvals: readonly ApprovalSummary[]): string {
  const approval = approvals.find(({ id }) => id === wait.name);
  if (approval === undefined) return `It waits for approval ${wait.name}.`;
  const { id, name, action, risk, approvers, quorum, votes, level, waitedMs, due, denials, decision } = approval;
  if (decision !== null)
    return `Approval "${name}" (${id}) is decided: ${decision.decision.replace("_", " ")} by ${decision.by}. The run goes on when a worker takes it up.`;
  const heads = quorum === 1 ? "" : ` (${quorum} of them, ${votes.length} so far)`;
  const reached = level === 0 ? "" : ` Level ${level} of its escalation is reached.`;
  const denied = denials.action === 0 ? "" : ` This very action was denied before in this run: ${denials.action}.`;
  return (
    `It waits for approval "${name}" (${id}) of ${action.tool} ${short(action.arguments, 100)}, risk ${risk}, for ${formatMs(waitedMs)}, ` +
    `at most until ${due.toISOString()}. It is up to ${approvers.join(", ")}${heads}.${reached}${denied}`
  );
}

export function approvalAdvice(approvals: readonly ApprovalSummary[]): string[] {
  return approvals
    .filter(({ status }) => status === "open")
    .map(
      ({ id, name }) => `To decide about "${name}": pawl approve ${id} --by <name>, pawl deny, or pawl request-changes`,
    );
}
