// Approvals, for people
// The inbox of open questions, and decisions on their way to the runs that asked. Nothing here decides: a decision is a message, and the owner of
// the run judges it again (I15). What is only read changes nothing (B54).
import type { Codec } from "../base/envelope.ts";
import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import { utf8Length } from "../base/utf8.ts";
import {
  type ApprovalHandoff,
  type ApprovalRecord,
  type ApprovalVote,
  type Risk,
  VOTES,
  type VoteDecision,
  type VoteLink,
} from "../core/approval.ts";
import {
  type ApprovalDecided,
  type ApprovalRequested,
  approversAt,
  handoffsAt,
  isInvolved,
  levelAt,
  recordOf,
} from "../core/approval-request.ts";
import { closesAt } from "../core/approval-times.ts";
import {
  type CastVote,
  decisionOf,
  isVote,
  mayDecide,
  refusalOf,
  type TimedVote,
  voteId,
  votesIn,
  votesOf,
} from "../core/approval-votes.ts";
import { APPROVAL_SPACE } from "../core/approvals.ts";
import { encodeRecord } from "../core/draft.ts";
import type { Entry } from "../core/journal.ts";
import { LIMITS } from "../core/limits.ts";
import type { InboxRow, Store, WaitRow } from "../core/store.ts";
import { asKept, openEntry, openValue } from "../core/values.ts";
import { positive } from "./run-list.ts";

export interface ApprovalQuery {
  /** Only those of this run. */
  readonly run?: string;
  /** Only what this person may decide, by name or by one of `roles`. */
  readonly by?: string;
  /** Only what somebody with one of these roles may decide. */
  readonly roles?: readonly string[];
  /** Only those of this risk. */
  readonly risk?: Risk;
  /** Of the page before. */
  readonly cursor?: string;
  /** How many on a page. */
  readonly limit?: number;
}

/** An approval and where it stands. */
export interface ApprovalSummary
  extends Pick<
    ApprovalRequested,
    "id" | "name" | "hash" | "action" | "evidence" | "risk" | "kind" | "quorum" | "fourEyes" | "notBy" | "denials"
  > {
  readonly run: string;
  readonly workflow: string;
  /** "closed": its run stopped waiting for it without a decision. */
  readonly status: "open" | "decided" | "closed";
  readonly actor: string | null;
  readonly policyVersion: string | null;
  /** Who may decide now. */
  readonly approvers: readonly string[];
  /** How it came to them, if others were asked first. */
  readonly handoffs: readonly ApprovalHandoff[];
  /** The level of escalation that is reached; 0 for none. */
  readonly level: number;
  readonly since: Date;
  readonly waitedMs: number;
  /** Until when people may decide. */
  readonly due: Date;
  /** Votes so far that count. */
  readonly votes: readonly ApprovalVote[];
  /** Once it is decided. */
  readonly decision: ApprovalRecord | null;
}

export interface ApprovalPage {
  readonly approvals: readonly ApprovalSummary[];
  /** Pass it to the next call; `null` at the end. */
  readonly cursor: string | null;
}

export interface Decision {
  /** "approved", "denied" or "changes_requested". */
  readonly decision: VoteDecision;
  /** Who decides. Whoever calls must know that it is them. */
  readonly by: string;
  /** What they are: "physician" counts for an approver "role:physician". */
  readonly roles?: readonly string[];
  /** Why, for the record and for whoever waits. */
  readonly reason?: string;
  /** Where they decided: an address, a device, a channel. */
  readonly from?: string;
  /** With "changes_requested": the arguments as they would have them. */
  readonly arguments?: unknown;
  /** Of the action that they have seen: refused if the approval is about another one. Default: that of the approval. */
  readonly hash?: string;
  /** The link that they decided with; `pawl.links.decide` says so. */
  readonly link?: VoteLink;
}

/** What became of a decision that was recorded. */
export interface DecisionReceipt {
  readonly approval: string;
  readonly run: string;
  readonly decision: VoteDecision;
  /** How many more people must approve. */
  readonly missing: number;
}

export interface ApprovalsPorts {
  readonly store: Store;
  readonly codec: Codec;
  assertOpen(): void;
  /** A message has been sent. */
  sent(): void;
}

/** An approval as the journal and the inbox of its run have it. */
interface Found {
  readonly run: string;
  readonly workflow: string;
  readonly request: ApprovalRequested;
  readonly decided: ApprovalDecided | null;
  readonly isWaiting: boolean;
  readonly votes: readonly TimedVote[];
}

export class Approvals {
  readonly #ports: ApprovalsPorts;

  constructor(ports: ApprovalsPorts) {
    this.#ports = ports;
  }

  /** Open approvals, those of the oldest runs first. */
  async list(query: ApprovalQuery = {}): Promise<ApprovalPage> {
    const { store, assertOpen } = this.#ports;
    assertOpen();
    const limit = Math.min(positive("limit", query.limit ?? LIMITS.listPage), LIMITS.listPageMax);
    const shown: ApprovalSummary[] = [];
    let after = cursorOf(query.cursor);
    for (;;) {
      const waits = await store.waits({
        kind: "approval",
        ...(query.run === undefined ? {} : { run: query.run }),
        ...(after === undefined ? {} : { after }),
        limit: limit + 1,
      });
      for (const wait of waits) {
        if (shown.length === limit) return { approvals: shown, cursor: textOf(after) };
        after = { run: wait.run, key: wait.key };
        const found = await this.#open(wait);
        if (found === null) continue;
        const summary = this.#summaryOf(found);
        if (fits(summary, query)) shown.push(summary);
      }
      if (waits.length <= limit) return { approvals: shown, cursor: null };
    }
  }

  /** One approval, open or decided. */
  async get(id: string): Promise<ApprovalSummary> {
    this.#ports.assertOpen();
    return this.#summaryOf(await this.#find(id));
  }

  /** Records what a person has decided. Of two who decide at once one comes first; the other is told who. */
  async decide(id: string, decision: Decision): Promise<DecisionReceipt> {
    const { store, assertOpen } = this.#ports;
    assertOpen();
    assertDecision(decision);
    const found = await this.#find(id);
    const { run, request } = found;
    const vote = asKept(
      this.#ports.codec,
      castVote(request, decision),
      addressOf(run, voteId(request, "", 0)),
      "decision",
    );
    const known = this.#settled(found, vote);
    if (known !== null) return known;
    const refused = refusalOf(run, request, { ...vote, at: store.clock.now() });
    if (refused !== null) throw refused;
    return this.#send(found, vote);
  }

  async #send({ run, request }: Found, vote: CastVote): Promise<DecisionReceipt> {
    const { store, codec, sent } = this.#ports;
    for (let refusedBefore = 0; ; refusedBefore++) {
      const messageId = voteId(request, vote.by, refusedBefore);
      const data = codec.seal(encodeRecord(vote, "decision"), addressOf(run, messageId));
      const delivery = await store.deliver({ to: run, id: messageId, kind: "approval", name: request.id, data });
      if (delivery === "missing" || delivery === "ended") return this.#tooLate(await this.#find(request.id), vote);
      sent();
      const row = (await store.inbox(run)).find((one) => one.id === messageId);
      const earlier = row === undefined ? null : this.#read(run, row);
      const found = await this.#find(request.id);
      // Its row has been used, and the journal says what for.
      if (row === undefined || earlier === null) return this.#tooLate(found, vote);
      const refused = refusalOf(run, request, { ...earlier, at: row.at });
      // The store's clock has the last word: it may have come a moment too late after all.
      if (refused !== null && delivery === "delivered") throw refused;
      if (refused !== null) continue;
      if (!isSame(earlier, vote)) throw overtaken(run, request, { ...earlier, at: row.at }, earlier.by === vote.by);
      // It may lie there unread for good: the run has stopped waiting meanwhile.
      return this.#settled(found, vote) ?? receipt(found, vote.decision);
    }
  }

  /** The run has gone on: with this vote, with somebody else's, or without any. */
  #tooLate(found: Found, vote: CastVote): DecisionReceipt {
    const known = this.#settled(found, vote);
    if (known !== null) return known;
    throw notWaiting(found);
  }

  /** What is left to say where the decision has been made, or cannot be made any more. */
  #settled(found: Found, vote: CastVote): DecisionReceipt | null {
    const { run, request, decided, isWaiting, votes } = found;
    // Said before, and so it was decided. Where others decided otherwise, that is what they have to know.
    if (isAmong(decided, vote) && hasSameChanges(decided, vote)) return receipt(found, vote.decision);
    if (decided?.decision === "expired") throw expired(run, request);
    if (decided !== null) throw overtaken(run, request, decided);
    if (!isWaiting) throw notWaiting(found);
    // No worker has taken it up yet, and it is decided all the same.
    const pending = decisionOf(run, request, votes);
    if (pending !== null && !isAmong(pending, vote)) throw overtaken(run, request, pending, pending.by === vote.by);
    return null;
  }

  #summaryOf({ run, workflow, request, isWaiting, votes, ...found }: Found): ApprovalSummary {
    // What the votes have decided is decided, also if no worker has taken it up yet.
    const decided = found.decided ?? (isWaiting ? decisionOf(run, request, votes) : null);
    const now = decided?.at ?? this.#ports.store.clock.now();
    const { id, name, hash, action, evidence, risk, kind, quorum, fourEyes, notBy, denials, actor, policyVersion, at } =
      request;
    return {
      id,
      name,
      hash,
      run,
      workflow,
      status: decided !== null ? "decided" : isWaiting ? "open" : "closed",
      action,
      evidence,
      risk,
      kind,
      quorum,
      fourEyes,
      ...(notBy !== undefined && { notBy }),
      denials,
      actor,
      policyVersion,
      approvers: approversAt(request, now),
      handoffs: handoffsAt(request, now),
      level: levelAt(request, now),
      since: new Date(at),
      waitedMs: Math.max(0, now - at),
      due: new Date(closesAt(request)),
      votes: decided === null ? votesOf(run, request, votes) : decided.votes,
      decision: decided === null ? null : recordOf(request, decided),
    };
  }

  /** The approval that a wait is for. Its request is read from the journal, where it is sealed. */
  async #open({ run, workflow, name: id, detail }: WaitRow): Promise<Found | null> {
    const { store, codec } = this.#ports;
    const [entry] = await store.journal(run, { from: seqIn(detail), limit: 1 });
    const opened = entry?.type === "approval.requested" ? openEntry(codec, run, entry) : null;
    const request = opened?.payload as ApprovalRequested | undefined;
    // The wait was written while its place in the journal was not yet known; or it has just been closed.
    if (request?.id !== id) return this.#lookUp(id);
    return { run, workflow, request, decided: null, isWaiting: true, votes: await this.#votes(run, id) };
  }

  async #find(id: string): Promise<Found> {
    const found = await this.#lookUp(id);
    if (found !== null) return found;
    throw new PawlError(
      "approval_not_found",
      `There is no approval ${id} in this store. List the open ones with pawl.approvals.list() or \`pawl approvals\`.`,
      { fields: { approval: id } },
    );
  }

  async #lookUp(id: string): Promise<Found | null> {
    const { store, codec } = this.#ports;
    if (typeof id !== "string" || id === "") return null;
    const holder = await store.key(APPROVAL_SPACE, id);
    if (holder === null) return null;
    const { run } = holder;
    const [row, waits] = await Promise.all([store.run(run), store.waits({ run, kind: "approval", name: id })]);
    // The inbox before the journal: a vote that is used in between is in the journal by then.
    const votes = await this.#votes(run, id);
    const entries = (await store.journal(run))
      .filter(({ type }) => type === "approval.requested" || type === "approval.decided")
      .map((entry) => openEntry(codec, run, entry));
    const request = payloadOf<ApprovalRequested>(entries, "approval.requested", id);
    if (row === null || request === null) return null;
    const decided = payloadOf<ApprovalDecided>(entries, "approval.decided", id);
    return { run, workflow: row.workflow, request, decided, isWaiting: waits.length > 0, votes };
  }

  async #votes(run: string, id: string): Promise<TimedVote[]> {
    return votesIn(await this.#ports.store.inbox(run), id, (row) => this.#read(run, row));
  }

  #read(run: string, row: InboxRow): CastVote | null {
    try {
      const value = openValue(this.#ports.codec, row.data, addressOf(run, row.id));
      return isVote(value) ? value : null;
    } catch {
      return null;
    }
  }
}

function payloadOf<P extends { readonly id: string }>(entries: readonly Entry[], type: string, id: string): P | null {
  const entry = entries.findLast((one) => one.type === type && (one.payload as P).id === id);
  return entry === undefined ? null : (entry.payload as P);
}

function addressOf(run: string, id: string) {
  return { run, seq: -1, field: `inbox:${id}` };
}

function seqIn(detail: string | null): number {
  try {
    const { seq } = JSON.parse(detail ?? "{}") as { readonly seq?: unknown };
    return typeof seq === "number" && seq >= 0 ? seq : 0;
  } catch {
    return 0;
  }
}

function fits(summary: ApprovalSummary, { by, roles = [], risk }: ApprovalQuery): boolean {
  if (summary.status !== "open") return false;
  if (risk !== undefined && summary.risk !== risk) return false;
  if (by === undefined && roles.length === 0) return true;
  return !isInvolved(summary, by ?? "") && mayDecide(summary.approvers, by ?? "", roles);
}

/** A page goes on behind the last wait of the one before: its run and key, which has no line break. */
function cursorOf(cursor: string | undefined): Pick<WaitRow, "run" | "key"> | undefined {
  const [run, key] = cursor?.split("\n") ?? [];
  if (run === undefined) return undefined;
  if (key === undefined) throw invalid("cursor", cursor, "Give the cursor of the page before");
  return { run, key };
}

function textOf(after: Pick<WaitRow, "run" | "key"> | undefined): string | null {
  return after === undefined ? null : `${after.run}\n${after.key}`;
}

function castVote(request: ApprovalRequested, decision: Decision): CastVote {
  const { by, roles = [], reason, from, hash, link } = decision;
  return {
    approval: request.id,
    hash: hash ?? request.hash,
    decision: decision.decision,
    by,
    roles: [...roles],
    ...(from === undefined ? {} : { from }),
    ...(reason === undefined ? {} : { reason }),
    ...("arguments" in decision ? { arguments: decision.arguments } : {}),
    ...(link === undefined ? {} : { link }),
  };
}

/** The same decision sent again, after its answer was lost. */
function isSame(a: CastVote, b: CastVote): boolean {
  return encodeRecord(a, "decision") === encodeRecord(b, "decision");
}

/** Whether this very vote is one of those that have decided so. */
function isAmong(decided: ApprovalDecided | null, { by, decision }: CastVote): boolean {
  return decided?.decision === decision && decided.votes.some((one) => one.by === by && one.decision === decision);
}

/** Other arguments are other changes: whoever sends them must not take them for recorded. */
function hasSameChanges(decided: ApprovalDecided | null, vote: CastVote): boolean {
  if (vote.decision !== "changes_requested") return true;
  const changes = (one: ApprovalDecided | CastVote | null) => encodeRecord({ arguments: one?.arguments }, "decision");
  return changes(decided) === changes(vote);
}

function assertDecision(decision: Decision): void {
  if (!VOTES.includes(decision?.decision))
    throw invalid("decision", decision?.decision, `Give one of: ${VOTES.join(", ")}`);
  const { by, roles = [], reason, from } = decision;
  assertName("`by` of the decision", by);
  if (!Array.isArray(roles)) throw invalid("roles", roles, "Give a list of roles");
  for (const role of roles) assertName("role", role);
  for (const [field, text] of Object.entries({ reason, from })) {
    if (text === undefined) continue;
    if (typeof text !== "string") throw invalid(field, text, "Give text");
    if (utf8Length(text) > LIMITS.reasonBytes)
      throw invalid(field, "too long", `Give at most ${LIMITS.reasonBytes} bytes`);
  }
  if (decision.decision !== "changes_requested") {
    if ("arguments" in decision) throw invalid("arguments", "given", 'They belong to "changes_requested"');
  } else if (!("arguments" in decision) && reason === undefined)
    throw invalid("arguments", "missing", "Give the arguments as they should be, or a `reason`");
}

function invalid(field: string, given: unknown, action: string): PawlError {
  return new PawlError("invalid_argument", `\`${field}\` of the decision is ${String(given)}. ${action}.`, {
    fields: { field },
  });
}

function receipt({ run, request, decided, votes }: Found, decision: VoteDecision): DecisionReceipt {
  const isOver = decided !== null || decisionOf(run, request, votes) !== null;
  const missing = isOver ? 0 : request.quorum - votesOf(run, request, votes).length;
  return { approval: request.id, run, decision, missing };
}

function expired(run: string, request: ApprovalRequested): PawlError {
  const { id, name } = request;
  return new PawlError(
    "approval_expired",
    `Approval ${id} ("${name}" of run ${run}) expired at ${new Date(request.expiresAt).toISOString()}: it is too late to decide. \`pawl why ${run}\` tells what the run does now.`,
    { fields: { run, approval: id, name, reason: "expired" } },
  );
}

function overtaken(
  run: string,
  { id, name }: ApprovalRequested,
  { decision, by, at }: Pick<ApprovalDecided, "decision" | "by" | "at">,
  isOwn = false,
): PawlError {
  const time = new Date(at).toISOString();
  const before = isOwn
    ? `${by} has said "${decision}" about it before, at ${time}. What was said does not change`
    : `it has been decided before, ${decision} by ${by} at ${time}. A decision does not change`;
  return new PawlError(
    "approval_decided",
    `Approval ${id} ("${name}" of run ${run}): ${before}; cancel the run to stop it.`,
    { fields: { run, approval: id, name, reason: "consumed", decision, by, at } },
  );
}

function notWaiting({ run, request: { id, name } }: Found): PawlError {
  return new PawlError(
    "run_ended",
    `Run ${run} no longer waits for approval ${id} ("${name}"): nothing was decided. \`pawl why ${run}\` tells what became of it.`,
    { fields: { run, approval: id, name } },
  );
}
