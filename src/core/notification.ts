// Notifications
// A notification is a run of a small workflow of Pawl's own, created in the commit of what it tells about. So it never blocks the run it is about,
// survives crashes and is tried again. Its id comes from the event: it is sent at least once, and can be told from a second one.
import { encode } from "../base/codec.ts";
import type { ApprovalDenials, LevelAction, Risk } from "./approval.ts";
import { type ApprovalRequested, approversAt, levelAt } from "./approval-request.ts";
import type { Remaining } from "./compensation.ts";
import { Draft } from "./draft.ts";
import type { RunStarted } from "./journal.ts";
import { DEFAULTS } from "./limits.ts";
import type { Pass } from "./pass.ts";
import type { PassPorts } from "./pass-ports.ts";
import type { NewRun, ParentLink, RunRow } from "./store.ts";

/** Something that people should know. */
export type Notification = ApprovalNotification | IncompleteNotification;

interface AnyNotification {
  /** The same if it is sent again. */
  readonly id: string;
  readonly run: string;
  readonly workflow: string;
  /** Who is told. */
  readonly to: readonly string[];
  /** What it is about, on one line. */
  readonly summary: string;
  /** Store time of the event. */
  readonly at: number;
}

/** An approval waits for people. */
export interface ApprovalNotification extends AnyNotification {
  readonly event: "approval.requested" | "approval.reminder" | "approval.escalated";
  /** The name of the approval. */
  readonly step: string;
  readonly approval: string;
  /** The level of escalation that is reached; 0 for none. */
  readonly level: number;
  /** What the level does, for "approval.escalated". */
  readonly action: LevelAction | null;
  readonly waitedMs: number;
  /** Who may decide. */
  readonly approvers: readonly string[];
  readonly risk: Risk;
  /** How often people had said no in this run before. */
  readonly denials: ApprovalDenials;
  /** Store time at which the approval expires. */
  readonly due: number;
  /** Pages to decide on, one for each of `to`, where the engine has a `publicUrl`. They are made when it is sent and are recorded nowhere. */
  readonly links?: readonly NotificationLink[];
}

export interface NotificationLink {
  /** Of `to`. A role's members sign in. */
  readonly for: string;
  /** Whoever has it can decide: pass it on to its receiver alone. */
  readonly url: string;
}

/** A run has ended, and not all that it had done could be undone. */
export interface IncompleteNotification extends AnyNotification {
  readonly event: "compensation_incomplete";
  /** The owner of the workflow, who is to see to it. */
  readonly owner: string | null;
  /** What could not be undone, and why. */
  readonly remaining: readonly Remaining[];
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
  readonly event: ApprovalNotification["event"];
  readonly at: number;
  readonly action: LevelAction | null;
  readonly to: readonly string[] | null;
}

/** Has people told of an event of an approval, if this worker can: in the commit that records the event. */
export function notify(pass: Pass, key: string, request: ApprovalRequested, event: Event): void {
  // What a dry run asks is found in the inbox; it calls for nobody (DR5).
  if (!pass.ports.notifies || pass.dry !== null) return;
  send(pass, { key, generation: pass.generation }, notificationOf(pass, request, event));
  pass.draft.onDurable(() => pass.ports.mailed());
}

/** Who ends a run: a pass of it, or whoever ends it without its body. */
interface Ending {
  readonly draft: Draft;
  readonly row: RunRow;
  readonly ports: Pick<PassPorts, "clock" | "codec" | "host" | "notifies" | "mailed">;
}

/** Has the owner told that something could not be undone, if this worker can: in the commit of the run's end. A run ends once, and so is told of once. */
export function notifyIncomplete(ending: Ending, error: unknown): void {
  const { draft, row, ports } = ending;
  if (!ports.notifies) return;
  const { owner, remaining } = (error as { fields: Pick<IncompleteNotification, "owner" | "remaining"> }).fields;
  const event = "compensation_incomplete";
  send(
    ending,
    { key: event, generation: 0 },
    {
      id: `n${ports.host.digest(`${row.id}/${event}`)}`,
      event,
      run: row.id,
      workflow: row.workflow,
      owner,
      remaining,
      to: owner === null ? [] : [owner],
      summary: shortened(remaining.map(({ effect, error: why }) => `"${effect}" (${why})`).join(", ")),
      at: ports.clock.now(),
    },
  );
  draft.onDurable(() => ports.mailed());
}

/** Creates the run that sends it. */
function send(
  { draft, row, ports }: Ending,
  from: Pick<ParentLink, "key" | "generation">,
  notification: Notification,
): void {
  const { id } = notification;
  const now = ports.clock.now();
  const create: NewRun = {
    workflow: NOTIFY_WORKFLOW,
    version: NOTIFY_VERSION,
    traceId: row.traceId,
    key: null,
    tags: [],
    priority: row.priority,
    parent: { run: row.id, ...from, detached: true },
    origin: null,
    deadline: now + DEFAULTS.notifyMs,
    claimed: false,
    readyAt: now,
    codec: ports.codec.id,
  };
  const first = new Draft(id, { head: 0, hash: id, at: 0 }, ports.host, ports.codec);
  const { workflow, version, deadline } = create;
  first.append(now, "run.started", null, {
    workflow,
    version,
    input: notification,
    seed: id,
    deadline,
  } satisfies RunStarted);
  const [entry] = first.take().commit.entries;
  if (entry === undefined) throw new Error("a draft gives back what was appended");
  draft.child({ run: id, create, entry });
}

function notificationOf(
  pass: Pass,
  request: ApprovalRequested,
  { event, at, action, to }: Event,
): ApprovalNotification {
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
  return shortened(`${action.tool} ${encode(action.arguments)}`);
}

function shortened(text: string): string {
  return text.length > SUMMARY_LENGTH ? `${text.slice(0, SUMMARY_LENGTH - 1)}…` : text;
}
