// Links to approvals
// A link lets one person look at one approval and decide about it. Its token is random and known to its receiver alone; the store has the token's
// SHA-256, as the start key of a run that keeps what the link is for.
//
//   L1. Looking changes nothing, however often and by whom (B54).
//   L2. A link decides about the one action that it was made for: its approval, its run and the action's hash are compared again at the decision.
//   L3. Without sign-in a link speaks for the person it was made for; a role has nobody to speak for, so its members sign in.
//   L4. What a link allows is never more than what its person may: the approval itself judges the vote.
import { createHash, randomBytes } from "node:crypto";
import { type Duration, toMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import type { VoteDecision } from "../core/approval.ts";
import { isInvolved } from "../core/approval-request.ts";
import { mayDecide, ROLE } from "../core/approval-votes.ts";
import type { RunStarted } from "../core/journal.ts";
import { LIMITS } from "../core/limits.ts";
import { LINK_WORKFLOW } from "../core/own-workflows.ts";
import type { RunRow } from "../core/store.ts";
import { isTerminal } from "../core/transition.ts";
import { openEntry, sealValue } from "../core/values.ts";
import type { Workflow } from "../core/workflow.ts";
import type { ApprovalSummary, Approvals, DecisionReceipt } from "./approvals.ts";
import { type KeptLink, LINK_USED, linkWorkflow } from "./link-workflow.ts";
import type { CancelOutcome } from "./run.ts";
import { type StartPorts, startRun, startSpace } from "./start.ts";

export interface LinkOptions {
  /** Who decides with it: a person such as "ann", or a role such as "role:physician", whose members sign in. */
  readonly for: string;
  /** What the person is, where they may decide by a role. Default: none. */
  readonly roles?: readonly string[];
  /** How long it may be used. Default: as long as the approval is open, which is also the most. */
  readonly expires?: Duration;
  /** Whether whoever opens it must say who they are, so that it is of no use to anybody else. Default: only for a role. */
  readonly signIn?: boolean;
  /** Who makes it, for the record. */
  readonly by?: string;
}

/** A link that was just made. Nobody can read its token again. */
export interface NewLink {
  readonly id: string;
  readonly token: string;
  readonly expiresAt: Date;
}

export interface LinkSummary extends Omit<KeptLink, "expiresAt"> {
  readonly id: string;
  readonly expiresAt: Date;
  readonly status: "open" | "used" | "expired" | "revoked";
}

/** Who has signed in. */
export interface Person {
  readonly name: string;
  readonly roles: readonly string[];
}

/** What a receiver may see and decide. */
export interface OpenedLink {
  readonly link: LinkSummary;
  readonly approval: ApprovalSummary;
  /** Who would decide. */
  readonly by: string;
}

export interface LinkDecision {
  /** "approved", "denied" or "changes_requested". */
  readonly decision: VoteDecision;
  /** Why, for the record and for whoever waits. */
  readonly reason?: string;
  /** With "changes_requested": the arguments as they would have them. */
  readonly arguments?: unknown;
  /** Of the action that they were shown: refused if it is not the link's. */
  readonly hash?: string;
  /** Where they decide: an address, a browser. */
  readonly from?: string;
}

/** Why a link does not let anybody decide. */
export type LinkRefusal =
  | "unknown"
  | "expired"
  | "revoked"
  | "used"
  | "decided"
  | "closed"
  | "sign_in"
  | "wrong_audience"
  | "other_run"
  | "changed_action";

export interface ApprovalLinksPorts extends StartPorts {
  readonly approvals: Approvals;
  cancel(run: string, reason: string): Promise<CancelOutcome>;
  assertOpen(): void;
}

/** 256 bits: nobody guesses it. */
const TOKEN_BYTES = 32;

export class ApprovalLinks {
  readonly #ports: ApprovalLinksPorts;

  constructor(ports: ApprovalLinksPorts) {
    this.#ports = ports;
  }

  /** Makes a link to an open approval, for one person or one role. */
  async create(approval: string, options: LinkOptions): Promise<NewLink> {
    this.#ports.assertOpen();
    assertOptions(options);
    const summary = await this.#ports.approvals.get(approval);
    if (summary.status !== "open") throw refused(summary.status, { approval, run: summary.run });
    assertAudience(summary, options);
    const { for: person, roles = [], signIn = person.startsWith(ROLE), by = null } = options;
    const expiresAt = this.#expiry(options, summary);
    const token = randomBytes(TOKEN_BYTES).toString("base64url");
    const { run, hash } = summary;
    const kept: KeptLink = { approval, run, hash, for: person, roles: [...roles], signIn, expiresAt, by };
    const id = await startRun(this.#ports, linkWorkflow as unknown as Workflow, kept, {
      key: keyOf(token),
      tags: [tagOf(approval)],
      deadline: new Date(expiresAt + LIMITS.linkGraceMs),
    });
    return { id, token, expiresAt: new Date(expiresAt) };
  }

  /** What the link leads to, for whoever has it. Changes nothing (L1). Throws `link_refused` with the reason. */
  async open(token: string, person: Person | null = null): Promise<OpenedLink> {
    this.#ports.assertOpen();
    const link = await this.#find(token);
    if (link === null) throw refused("unknown", {});
    if (link.status === "revoked" || link.status === "expired") throw refused(link.status, link);
    const by = deciderOf(link, person);
    const approval = await this.#ports.approvals.get(link.approval);
    assertBound(link, approval);
    const votes = approval.decision?.votes ?? approval.votes;
    if (link.status === "used" || votes.some((vote) => vote.by === by)) throw refused("used", link, approval);
    if (approval.status !== "open") throw refused(approval.status, link, approval);
    return { link, approval, by };
  }

  /** Records what its receiver has decided: once, and about what the link was made for (L2). */
  async decide(token: string, decision: LinkDecision, person: Person | null = null): Promise<DecisionReceipt> {
    const { link, by } = await this.open(token, person);
    if (decision.hash !== undefined && decision.hash !== link.hash) throw refused("changed_action", link);
    const receipt = await this.#ports.approvals.decide(link.approval, {
      ...decision,
      by,
      roles: link.signIn && person !== null ? person.roles : link.roles,
      hash: link.hash,
      link: { id: link.id, for: link.for },
    });
    if (!link.for.startsWith(ROLE)) await this.#end(link.id);
    return receipt;
  }

  /** Makes a link useless. False if it was so before. */
  async revoke(id: string, reason = "The link was revoked."): Promise<boolean> {
    this.#ports.assertOpen();
    const link = await this.get(id);
    if (link.status !== "open") return false;
    await this.#ports.cancel(id, reason);
    return true;
  }

  /** One link, by its id. */
  async get(id: string): Promise<LinkSummary> {
    this.#ports.assertOpen();
    const row = typeof id === "string" && id !== "" ? await this.#ports.store.run(id) : null;
    const link = row?.workflow === LINK_WORKFLOW ? await this.#read(row) : null;
    if (link === null) throw refused("unknown", { link: id });
    return link;
  }

  /** The links of an approval, newest first; also those that are of no use any more, while they are kept. */
  async list(approval: string): Promise<LinkSummary[]> {
    const { store, assertOpen } = this.#ports;
    assertOpen();
    const rows = await store.runs({ workflow: LINK_WORKFLOW, tag: tagOf(approval), limit: LIMITS.listPageMax });
    const links = await Promise.all(rows.map((row) => this.#read(row)));
    return links.filter((link) => link !== null);
  }

  async #find(token: string): Promise<LinkSummary | null> {
    const { store } = this.#ports;
    if (typeof token !== "string" || token === "") return null;
    const holder = await store.key(startSpace(LINK_WORKFLOW), keyOf(token));
    const row = holder === null ? null : await store.run(holder.run);
    return row === null ? null : this.#read(row);
  }

  async #read(row: RunRow): Promise<LinkSummary | null> {
    const { store, codec } = this.#ports;
    const [first] = await store.journal(row.id, { limit: 1 });
    if (first === undefined) return null;
    const kept = (openEntry(codec, row.id, first).payload as RunStarted).input as KeptLink;
    return { ...kept, id: row.id, expiresAt: new Date(kept.expiresAt), status: this.#statusOf(row, kept) };
  }

  #statusOf(row: RunRow, { expiresAt }: KeptLink): LinkSummary["status"] {
    // A retry of a revoked one takes its key along, and must not bring it back.
    if (row.cancel !== null || row.state === "cancelled" || row.origin !== null) return "revoked";
    if (this.#ports.store.clock.now() >= expiresAt) return "expired";
    return isTerminal(row.state) ? "used" : "open";
  }

  /** It need not wait for its expiry. What it allows does not depend on that: the vote is recorded. */
  async #end(run: string): Promise<void> {
    const { store, codec, worker } = this.#ports;
    const data = sealValue(codec, "used", { run, seq: -1, field: `inbox:${LINK_USED}` }, "end of the link");
    await store.deliver({ to: run, id: LINK_USED, kind: "signal", name: LINK_USED, data });
    worker.hint();
  }

  #expiry({ expires }: LinkOptions, { due }: ApprovalSummary): number {
    const latest = due.getTime();
    if (expires === undefined) return latest;
    return Math.min(latest, Math.ceil(this.#ports.store.clock.now() + toMs(expires, "expires")));
  }
}

/** Where a token leads: nobody who reads the store can make the token from it. */
function keyOf(token: string): string {
  return createHash("sha256").update(token).digest("base64url");
}

function tagOf(approval: string): string {
  return `approval:${approval}`;
}

/** Who decides, if whoever opens the link may (L3). */
function deciderOf(link: LinkSummary, person: Person | null): string {
  if (!link.signIn) return link.for;
  if (person === null) throw refused("sign_in", link);
  if (!mayDecide([link.for], person.name, person.roles)) throw refused("wrong_audience", link);
  return person.name;
}

function assertBound(link: LinkSummary, approval: ApprovalSummary): void {
  if (approval.run !== link.run) throw refused("other_run", link, approval);
  if (approval.hash !== link.hash) throw refused("changed_action", link, approval);
}

function assertOptions(options: LinkOptions): void {
  if (typeof options !== "object" || options === null)
    throw invalid("for", "Say who decides with it: a person or a role");
  const { for: person, roles = [], by, signIn } = options;
  assertName("`for` of the link", person);
  if (!Array.isArray(roles)) throw invalid("roles", "Give a list of roles");
  for (const role of roles) assertName("role", role);
  if (by !== undefined) assertName("`by` of the link", by);
  if (signIn === false && person.startsWith(ROLE))
    throw invalid("signIn", `Members of ${person} must sign in: make a link for a person to do without`);
}

/** A link that could decide nothing is a mistake of whoever makes it. */
function assertAudience(approval: ApprovalSummary, { for: person, roles = [] }: LinkOptions): void {
  const { approvers, id, run } = approval;
  const may = person.startsWith(ROLE)
    ? approvers.includes(person)
    : !isInvolved(approval, person) && mayDecide(approvers, person, roles);
  if (may) return;
  throw new PawlError(
    "approval_mismatch",
    `${person} may not decide about approval ${id} of run ${run}, with a link or without. Make it for one of: ${approvers.join(", ")}.`,
    { fields: { run, approval: id, reason: "wrong_role", approvers } },
  );
}

function invalid(field: string, action: string): PawlError {
  return new PawlError("invalid_argument", `\`${field}\` of the link cannot be used. ${action}.`, {
    fields: { field },
  });
}

const WHY: Readonly<Record<LinkRefusal, string>> = {
  unknown: "There is no such link: it is incomplete, was made elsewhere, or is long gone. Ask for a new one.",
  expired: "The link has expired. Ask for a new one if the approval is still open.",
  revoked: "The link was revoked. Ask whoever sent it.",
  used: "The decision was made before, and a link counts once. Nothing has changed.",
  decided: "Somebody else has decided about it before. Nothing has changed.",
  closed: "The run no longer waits for this approval: there is nothing left to decide.",
  sign_in: "Whoever opens this link must sign in.",
  wrong_audience: "The link was made for somebody else. Ask for one of your own.",
  other_run: "The link was made for another run. Ask for a new one.",
  changed_action: "What is to be approved is not what the link was made for. Ask for a new one and look again.",
};

function refused(
  reason: LinkRefusal,
  about: { readonly id?: string; readonly link?: string; readonly approval?: string; readonly run?: string },
  approval?: ApprovalSummary,
): PawlError {
  const decided = approval?.decision ?? null;
  return new PawlError("link_refused", WHY[reason], {
    fields: {
      reason,
      ...(about.run !== undefined && { run: about.run, approval: about.approval }),
      ...(about.id !== undefined && { link: about.id }),
      ...(decided !== null && { decision: decided.decision, by: decided.by }),
    },
  });
}
