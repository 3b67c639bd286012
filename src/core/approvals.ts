// Approvals in the journal
// How a request, what falls due and a decision are written, and what the decision does to the body.
//
//   A1. At most one decision, by somebody who was allowed to at that time, about this very action (I15). Reading never decides.
//   A2. All due times are those of the request. What falls due acts only while this very call is open, and after a look into the inbox at or
//       after its time: whoever decided a moment earlier has won (P5, T-22). What then decides instead of people is written only if no more
//       mail has come since that look: a vote that was acknowledged counts.
//   A3. A reminder or an escalation is a mark: the body does not see it. Its notification is a child of the same commit.
import { cancelText } from "../base/cancel-text.ts";
import { PawlError } from "../base/errors.ts";
import type { LevelAction } from "./approval.ts";
import type { ApprovalSpec } from "./approval-request.ts";
import {
  type ApprovalDecided,
  type ApprovalEscalated,
  type ApprovalRequested,
  approvalHash,
  approversAt,
  levelAt,
  recordOf,
  requestOf,
} from "./approval-request.ts";
import { requestedAt } from "./approval-spec.ts";
import { type ApprovalEvent, nextDue } from "./approval-times.ts";
import { type CastVote, POLICY, votesIn, votesOf } from "./approval-votes.ts";
import { ApprovalCall, rejectCall } from "./call.ts";
import type { Denials } from "./denials.ts";
import { decodePayload, encodeRecord } from "./draft.ts";
import { recordCancel } from "./endings.ts";
import type { Host } from "./host.ts";
import type { Entry } from "./journal.ts";
import { notify } from "./notification.ts";
import type { Pass } from "./pass.ts";
import type { InboxRow, WaitChange } from "./store.ts";
import { type Recorded, readMail, recordedText } from "./wakeup-delivery.ts";

/** Where the id of an approval leads to its run, also after the decision. */
export const APPROVAL_SPACE = "approval";

/** Seed and generation are in it, as in the id of a child (P10). */
export function approvalId(host: Host, seed: string, generation: number, key: string): string {
  return `a${host.digest(`${seed}/${generation}/${key}`)}`;
}

/** A call whose votes are opened as the mail of its run. */
export function newApprovalCall(
  { id, ports }: Pass,
  key: string,
  spec: ApprovalSpec,
  digest: string,
  denials: Denials,
): ApprovalCall {
  const read = (row: InboxRow) => {
    const mail = readMail(ports.codec, id, row);
    return mail.error === undefined ? (mail.value as CastVote) : null;
  };
  return new ApprovalCall(key, id, spec, digest, read, denials);
}

/** Writes the request, its wait, and the notification of those who are asked. */
export function recordApproval(pass: Pass, call: ApprovalCall, at: number): void {
  const { spec, key } = call;
  const { host } = pass.ports;
  const digest = (text: string) => host.digest(text);
  const scope = { workflow: pass.row.workflow, actor: spec.actor, policyVersion: spec.policyVersion };
  const text = encodeRecord(
    requestedAt(spec, at, {
      id: approvalId(host, pass.seed, pass.generation, key),
      hash: approvalHash(digest, spec.action, scope),
      digest: call.digest,
      denials: call.denials.before(call.digest, spec),
    }),
    `approval "${spec.name}"`,
  );
  // As replay will have it (I21).
  const request = decodePayload(text) as ApprovalRequested;
  adoptRequest(call, request, pass.draft.appendText(at, "approval.requested", key, text));
  pass.draft.wait(approvalWait(key, request, request.due, call.seq));
  pass.draft.key({ space: APPROVAL_SPACE, key: request.id, digest: request.hash });
  notify(pass, key, request, { event: "approval.requested", at: request.at, action: null, to: null });
}

/** A fork asks anew what its source has asked, and is made where nobody can be told: its first pass tells them. Another one would say the same again. */
export function notifyOfFork(pass: Pass, entries: readonly Entry[]): void {
  if (entries.at(-1)?.type !== "run.forked") return;
  const open = new Map<string, ApprovalRequested>();
  for (const { type, key, payload } of entries) {
    if (type === "run.continued") open.clear();
    if (type === "approval.requested") open.set(key ?? "", payload as ApprovalRequested);
    if (type === "approval.decided") open.delete(key ?? "");
  }
  for (const [key, request] of open)
    notify(pass, key, request, { event: "approval.requested", at: request.at, action: null, to: null });
}

/** The wait says where the request stands in the journal: what is asked stays sealed there. */
export function approvalWait(
  key: string,
  { id, name }: ApprovalRequested,
  due: number | null,
  seq: number,
): WaitChange {
  return { open: { key: `approval:${key}`, kind: "approval", name: id, due, detail: JSON.stringify({ name, seq }) } };
}

export function adoptRequest(call: ApprovalCall, request: ApprovalRequested, seq: number): void {
  call.request = request;
  call.seq = seq;
  call.until = request.at;
  call.due = request.due;
}

export function adoptEscalated(call: ApprovalCall, { due, next }: ApprovalEscalated): void {
  call.until = due;
  call.due = next;
}

/** A decision has come, or something fell due: what is written, and what the body is to see of it. */
export function recordApprovalWakeup(
  pass: Pass,
  wakeup:
    | {
        readonly kind: "decision";
        readonly call: ApprovalCall;
        readonly row: InboxRow;
        readonly decided: ApprovalDecided | null;
      }
    | { readonly kind: "approval"; readonly call: ApprovalCall; readonly event: ApprovalEvent },
): Recorded | null {
  if (wakeup.kind === "approval") return fallDue(pass, wakeup.call, wakeup.event);
  if (wakeup.decided !== null) return decide(pass, wakeup.call, wakeup.decided);
  // Nobody can read what was said: the run is parked as for any other message.
  const mail = readMail(pass.ports.codec, pass.id, wakeup.row);
  if (mail.error !== undefined) pass.park(mail.error);
  return null;
}

function decide(pass: Pass, call: ApprovalCall, decided: ApprovalDecided): Recorded {
  const { key } = call;
  const given = encodeRecord(decided, `decision about approval "${call.spec.name}"`);
  const text = recordedText(pass, "approval.decided", key, given);
  pass.draft.appendText(pass.ports.clock.now(), "approval.decided", key, text);
  pass.draft.wait({ close: `approval:${key}` });
  for (const row of pass.mailbox.rows)
    if (row.kind === "approval" && row.name === decided.id) pass.mailbox.consume(row, pass.draft);
  return { type: "approval.decided", key, payload: decodePayload(text) };
}

function fallDue(pass: Pass, call: ApprovalCall, event: ApprovalEvent): Recorded | null {
  const request = requestOf(call);
  const action = event.kind === "level" ? event.level.action : null;
  // A vote that is on its way may yet be there first (A2).
  if (event.kind === "expiry" || DECIDING.has(action)) pass.draft.ifWake(pass.mailbox.wake);
  if (action === "approve" || action === "deny") return decideByLevel(pass, call, request, event);
  if (action === "cancel" || (event.kind === "expiry" && request.onExpired === "cancel")) {
    mark(pass, call, request, event);
    const why = event.kind === "level" ? `level ${event.number} of its escalation cancels the run` : "it has expired";
    const payload = recordCancel(
      pass,
      "cancel",
      cancelText({ reason: `Approval "${request.name}" (${request.id}): ${why}.`, compensate: true }),
    );
    return { type: "run.cancelling", key: null, payload };
  }
  if (event.kind === "expiry") return decide(pass, call, withoutPerson(pass, call, "expired", event.due, null));
  mark(pass, call, request, event);
  pass.ports.dirty(pass);
  return null;
}

/** What a level does instead of people. */
const DECIDING: ReadonlySet<LevelAction | null> = new Set<LevelAction | null>(["approve", "deny", "cancel"]);

function decideByLevel(pass: Pass, call: ApprovalCall, request: ApprovalRequested, event: ApprovalEvent): Recorded {
  tell(pass, call, request, event);
  const isApproval = event.kind === "level" && event.level.action === "approve";
  const level = levelAt(request, event.due);
  const reason = `Level ${level} of the escalation of "${request.name}" ${isApproval ? "approves" : "denies"} what nobody has decided by then.`;
  return decide(pass, call, {
    ...withoutPerson(pass, call, isApproval ? "approved" : "denied", event.due, POLICY),
    reason,
  });
}

/** A decision of a policy or of the clock; what people had said until then is kept with it. */
function withoutPerson(
  pass: Pass,
  call: ApprovalCall,
  decision: ApprovalDecided["decision"],
  at: number,
  by: string | null,
): ApprovalDecided {
  const request = requestOf(call);
  const votes = votesOf(pass.id, request, votesIn(pass.mailbox.rows, request.id, call.read));
  return { id: request.id, decision, by, at, votes, level: levelAt(request, at), waitedMs: at - request.at };
}

function mark(pass: Pass, call: ApprovalCall, request: ApprovalRequested, event: ApprovalEvent): void {
  const { due, kind } = event;
  const level = kind === "level" ? event.level : null;
  const next = nextDue(request, due);
  const escalated: ApprovalEscalated = {
    id: request.id,
    event: kind,
    level: levelAt(request, due),
    action: level?.action ?? null,
    ...(level?.action === "escalate" ? { from: approversAt(request, due - 1) } : {}),
    to: level?.to ?? [],
    due,
    next,
    waitedMs: due - request.at,
  };
  const { key } = call;
  pass.draft.append(pass.ports.clock.now(), "approval.escalated", key, escalated);
  pass.draft.wait(approvalWait(key, request, next, call.seq));
  adoptEscalated(call, escalated);
  if (kind === "reminder" || kind === "level") tell(pass, call, request, event);
}

/** Nobody is told of what a decision in hand has settled already. */
function tell(pass: Pass, call: ApprovalCall, request: ApprovalRequested, event: ApprovalEvent): void {
  if (call.decisionIn(pass.mailbox.rows) !== null) return;
  const level = event.kind === "level" ? event.level : null;
  notify(pass, call.key, request, {
    event: level === null ? "approval.reminder" : "approval.escalated",
    at: event.due,
    action: level?.action ?? null,
    to: level?.notify ?? null,
  });
}

/** Hands a recorded decision to the body: resolves if approved, otherwise rejects, unless the body asked for the decision itself. */
export function settleApproval(run: string, call: ApprovalCall, decided: ApprovalDecided): void {
  const request = requestOf(call);
  const record = recordOf(request, decided);
  if (decided.decision === "denied") call.denials.add(call.digest, request);
  call.record = record;
  const rule = ruleFor(request, decided);
  if (rule === null || rule === "branch") return call.resolve(record);
  const { id, name, hash } = request;
  const { decision, by, at, reason } = decided;
  const fields = {
    run,
    approval: id,
    name,
    decision,
    by,
    at,
    hash,
    ...(reason === undefined ? {} : { reason }),
    ...("arguments" in decided ? { arguments: decided.arguments } : {}),
    // What was done stays done.
    ...(rule === "fail" ? { compensate: false } : {}),
  };
  rejectCall(call, new PawlError(CODES[decision as keyof typeof CODES], messageOf(run, request, decided), { fields }));
}

function ruleFor({ onDenied, onExpired, onChanges }: ApprovalRequested, { decision }: ApprovalDecided): string | null {
  switch (decision) {
    case "approved":
      return null;
    case "denied":
      return onDenied;
    case "expired":
      return onExpired;
    case "changes_requested":
      return onChanges;
  }
}

const CODES = {
  denied: "approval_denied",
  expired: "approval_expired",
  changes_requested: "changes_requested",
} as const;

function messageOf(run: string, { id, name }: ApprovalRequested, { decision, by, reason }: ApprovalDecided): string {
  const what = `Approval "${name}" (${id}) of run ${run}`;
  const why = reason === undefined ? "" : `: ${reason}`;
  switch (decision) {
    case "denied":
      return `${what} was denied by ${by}${why}${why.endsWith(".") ? "" : "."} Catch this error, or use onDenied: "branch", to do something else.`;
    case "expired":
      return `Nobody decided about ${what.replace("Approval", "approval")} in time. Give it a longer \`timeout\` or levels of escalation, or catch this error.`;
    default:
      return `${what} was not approved: ${by} asks for changes${why}${why.endsWith(".") ? "" : "."} Ask again with the arguments in \`fields.arguments\`: they are another action.`;
  }
}
