// Notifications
// A notification is a run of a small workflow of Pawl's own, created in the commit of what it tells about. So it never blocks the run it is about,
// survives crashes and is tried again. Its id comes from the event: it is sent at least once, and can be told from a second one.
import { encode } from "../base/codec.ts";
import type { ApprovalDenials, LevelAction, Risk } from "./approval.ts";
import { type ApprovalRequested, approversAt, levelAt } from "./approval-request.ts";
import { Draft } from "./draft.ts";
import type { RunStarted } from "./journal.ts";
import { DEFAULTS } from "./limits.ts";
import type { Pass } from "./pass.ts";
import type { NewRun } from "./store.ts";

/** Something that people should know. */
export interface Notification {
  /** The same if it is sent again. */
  readonly id: string;
  readonly event: "approval.requested" | "approval.reminder" | "approval.escalated";
  readonly run: string;
  readonly workflow: string;
  /** The name of the approval. */
  readonly step: string;
  readonly approval: string;
  /** The level of escalation that is reached; 0 for none. */
  readonly level: number;
  /** What the level does, for "approval.escalated". */
  readonly action: LevelAction | null;
  readonly waitedMs: number;
  /** Who is told. */
  readonly to: readonly string[];
  /** Who may decide. */
  readonly approvers: readonly string[];
  readonly risk: Risk;
  /** How often people had said no in this run before. */
  readonly denials: ApprovalDenials;
  /** What is to be approved, on one line. */
  readonly summary: string;
  /** Store time at which the approval expires. */
  readonly due: number;
  /** Store time of the event. */
  readonly at: number;
}

/** Where notifications go. A failed one is tried again; one that was sent may come once more, with the same id. */
export interface Notifier {
  /** Unique among the notifiers of a process. */
  readonly name: string;
  notify(notification: Notification, how: { readonly signal: AbortSignal }): unknown;
}

/** What the runs that send notifications are runs of. */
export const NOTIFY_WORKFLOW = "pawl.notify";
export const NOTIFY_VERSION = "1.0.0";

const SUMMARY_LENGTH = 200;

interface Event {
  readonly event: Notification["event"];
  readonly at: number;
  readonly action: LevelAction | null;
  readonly to: readonly string[] | null;
}

/** Has people told of an event of an approval, if this worker can: in the commit that records the event. */
export function notify(pass: Pass, key: string, request: ApprovalRequested, event: Event): void {
  if (!pass.ports.notifies) return;
  const notification = notificationOf(pass, request, event);
  const { id } = notification;
  const now = pass.ports.clock.now();
  const create: NewRun = {
    workflow: NOTIFY_WORKFLOW,
    version: NOTIFY_VERSION,
    traceId: pass.row.traceId,
    key: null,
    tags: [],
    priority: pass.row.priority,
    parent: { run: pass.id, key, generation: pass.generation, detached: true },
    origin: null,
    deadline: now + DEFAULTS.notifyMs,
    claimed: false,
    readyAt: now,
    codec: pass.ports.codec.id,
  };
  const draft = new Draft(id, { head: 0, hash: id, at: 0 }, pass.ports.host, pass.ports.codec);
  const { workflow, version, deadline } = create;
  draft.append(now, "run.started", null, {
    workflow,
    version,
    input: notification,
    seed: id,
    deadline,
  } satisfies RunStarted);
  const [entry] = draft.take().commit.entries;
  if (entry === undefined) throw new Error("a draft gives back what was appended");
  pass.draft.child({ run: id, create, entry });
  pass.draft.onDurable(() => pass.ports.mailed());
}

function notificationOf(pass: Pass, request: ApprovalRequested, { event, at, action, to }: Event): Notification {
  const { id, name, risk, denials, expiresAt } = request;
  const approvers = approversAt(request, at);
  return {
    id: `n${pass.ports.host.digest(`${id}/${event}/${at}`)}`,
    event,
    run: pass.id,
    workflow: pass.row.workflow,
    step: name,
    approval: id,
    level: levelAt(request, at),
    action,
    waitedMs: at - request.at,
    to: to ?? approvers,
    approvers,
    risk,
    denials,
    summary: summaryOf(request),
    due: expiresAt,
    at,
  };
}

function summaryOf({ action }: ApprovalRequested): string {
  const text = `${action.tool} ${encode(action.arguments)}`;
  return text.length > SUMMARY_LENGTH ? `${text.slice(0, SUMMARY_LENGTH - 1)}…` : text;
}
