// What simulated runs do in the world outside, with leave and for money
// Effects of every class and guard, approvals before them, calls that spend from a budget, and a failure in the middle. As all programs they
// are data, and their answers can be judged without running them.
import { type ErrorCode, hasCode, RetryableError } from "../../base/errors.ts";
import type {
  ApprovalAction,
  ApprovalRecord,
  ApproveOptions,
  EscalationLevel,
  VoteDecision,
} from "../../core/approval.ts";
import type { Context, StepInfo } from "../../core/context.ts";
import type { EffectOptions, EffectSpec } from "../../core/effect.ts";
import type { EffectClass } from "../../core/journal.ts";
import type { Detected } from "../../core/undoable-call.ts";
import type { Situation } from "./situations.ts";

/** What a program may do outside. */
export type DeedProgram = Deal | Ask | Spend | Stop;

/** Does something outside, and knows how to take it back, or not. */
export interface Deal {
  readonly op: "deal";
  /** What keeps it from happening twice; "step": it is a step with an `undo`, whose key the outside recognises. */
  readonly guard: "detect" | "idempotent" | "none" | "step";
  readonly class: EffectClass;
  /** Refused: it does not happen. Answer lost: it did, and the first attempt does not know. Lost, refused: first the one, then the other. Slow: the first answer takes longer than anybody waits. */
  readonly trouble: "none" | "refused" | "answer-lost" | "lost-refused" | "slow";
  readonly undo: "none" | "works" | "fails-once" | "broken";
  /** What becomes of it where nobody can tell: by its guard, or it fails, or the run fails and is undone. */
  readonly recovery: "default" | "fail" | "compensate";
  /** It has a key of the business instead of its own. */
  readonly isKeyed: boolean;
  /** What it reserves of the run's budgets. */
  readonly usd: number;
  readonly ms: number;
}

/** Asks for leave, and does what was approved. */
export interface Ask {
  readonly op: "ask";
  readonly approvers: readonly string[];
  readonly quorum: number;
  readonly fourEyes: boolean;
  readonly timeoutMs: number;
  readonly levels: readonly AskLevel[];
  readonly onDenied: "compensate" | "fail" | "branch";
  readonly onExpired: "escalate" | "compensate" | "cancel" | "fail" | "branch";
  readonly onChanges: "compensate" | "fail" | "branch";
  /** Who will say what, and when. */
  readonly votes: readonly VotePlan[];
  /** What is done with an approval: the very action, another one first, or the same twice. */
  readonly use: "as-approved" | "changed" | "twice";
  readonly deal: Deal;
}

export interface AskLevel extends Pick<EscalationLevel, "action" | "to" | "revoke"> {
  readonly afterMs: number;
}

/** What a person will say about an approval. */
export interface VotePlan {
  readonly by: string;
  readonly decision: VoteDecision;
  readonly afterMs: number;
}

/** A step that spends money. */
export interface Spend {
  readonly op: "spend";
  /** What it reserves, and what it says that it has really spent. */
  readonly usd: number;
  readonly says: number | null;
  readonly fails: number;
  /** A call that the budget has no room for is no failure of the run. */
  readonly isCaught: boolean;
  readonly ms: number;
}

/** Fails the run in its middle, after a while. */
export interface Stop {
  readonly op: "stop";
  readonly ms: number;
}

/** What a run may spend, with all runs below it, and what a person does when it is used up. */
export interface SpendingLimit {
  readonly usd: number;
  readonly calls: number;
  readonly onExceeded: "park" | "fail";
  readonly decision: "raise" | "fail" | "cancel";
}

/** What deeds need from the world outside. */
export interface DeedOutside {
  began(run: string, info: StepInfo): void;
  ended(info: StepInfo): void;
  pause(ms: number): Promise<void>;
  /** It happens. Returns what the outside says of it. */
  book(run: string, info: StepInfo, deal: Deal, leave: Leave | null): string;
  /** Whether it has happened. */
  look(key: string): Detected<string>;
  takeBack(run: string, key: string, value: unknown): void;
  /** An attempt has spent so much, whatever becomes of it. */
  spent(run: string, info: StepInfo, usd: number): void;
  sometimes(what: Situation): void;
}

/** The approval that an action rests on, and what is done. */
export interface Leave {
  readonly approval: string;
  readonly action: ApprovalAction;
}

const RETRY = { max: 3, base: 20, factor: 2, jitter: false, on: "any" } as const;

/** What the run says that was meant to fail. */
export const FAILURE = "this run was meant to fail";

/** On whose behalf things are done. */
export const ACTOR = "eve";

/** What is asked in an approval: the plan of the votes is shown to those who are to cast them. */
export interface Evidence {
  readonly votes: readonly VotePlan[];
}

export class Deeds {
  readonly #ctx: Context;
  readonly #outside: DeedOutside;
  readonly #generation: number;
  #keys = 0;

  constructor(ctx: Context, outside: DeedOutside, generation: number) {
    this.#ctx = ctx;
    this.#outside = outside;
    this.#generation = generation;
  }

  async run(node: DeedProgram): Promise<unknown> {
    switch (node.op) {
      case "deal":
        return this.#deal(node, null);
      case "ask":
        return this.#ask(node, node.votes, { amount: 10 }, true);
      case "spend":
        return this.#spend(node);
      case "stop":
        if (node.ms > 0) await this.#ctx.sleep(node.ms);
        throw new Error(FAILURE);
    }
  }

  async #deal(node: Deal, leave: { readonly record: ApprovalRecord; readonly action: ApprovalAction } | null) {
    try {
      return await (node.guard === "step" ? this.#step(node) : this.#effect(node, leave));
    } catch (error) {
      if (isRefusal(error)) return "refused";
      const isUnknown = hasCode(error, "step_interrupted") || hasCode(error, "unsafe_retry");
      if (isUnknown && node.recovery === "fail") return "unknown";
      throw error;
    }
  }

  #step(node: Deal): Promise<unknown> {
    const { id } = this.#ctx.run;
    const undo = this.#undo(node);
    const spend = node.usd === 0 ? {} : { spend: { usd: node.usd } };
    const options = { retry: RETRY, ...spend, ...patienceFor(node), ...(undo === null ? {} : { undo }) };
    return this.#ctx.step("deal", (info) => this.#do(id, info, node, null), options);
  }

  #effect(node: Deal, leave: { readonly record: ApprovalRecord; readonly action: ApprovalAction } | null) {
    const { id } = this.#ctx.run;
    const { guard, recovery } = node;
    const undo = this.#undo(node);
    const bound = leave === null ? null : { approval: leave.record.id, action: leave.action };
    const spec: EffectSpec<string> = {
      do: (info) => this.#do(id, info, node, bound),
      class: node.class,
      ...(guard === "detect" && { detect: (info: StepInfo) => this.#detect(info) }),
      ...(guard === "idempotent" && { idempotent: true }),
      ...(undo !== null && { undo }),
      ...(node.isKeyed && { key: `deal-${id}-${this.#generation}-${this.#keys++}` }),
      ...(leave !== null && { needs: { approval: leave.record, action: leave.action } }),
    };
    const options: EffectOptions = {
      ...patienceFor(node),
      ...(node.usd > 0 && { spend: { usd: node.usd } }),
      ...(recovery !== "default" && { recovery }),
    };
    return this.#ctx.effect("deal", spec, options);
  }

  async #do(run: string, info: StepInfo, node: Deal, leave: Leave | null): Promise<string> {
    const outside = this.#outside;
    outside.began(run, info);
    if (node.trouble === "refused" || (node.trouble === "lost-refused" && info.attempt > 1)) {
      outside.ended(info);
      throw new Error(REFUSED);
    }
    // It happens as the first thing, while the run surely belongs to this process. What takes its time is the answer.
    const value = outside.book(run, info, node, leave);
    if (node.usd > 0) outside.spent(run, info, node.usd);
    const isSlow = node.trouble === "slow" && info.attempt === 1;
    if (isSlow || node.ms > 0) await outside.pause(isSlow ? SLOW_MS : node.ms);
    outside.ended(info);
    if ((node.trouble === "answer-lost" || node.trouble === "lost-refused") && info.attempt === 1)
      throw new RetryableError("the answer was lost");
    return value;
  }

  #detect({ key }: StepInfo): Detected<string> {
    const found = this.#outside.look(key);
    if (found.found) this.#outside.sometimes("an effect was found by its detector");
    return found;
  }

  #undo(node: Deal) {
    if (node.undo === "none") return null;
    const outside = this.#outside;
    const { id } = this.#ctx.run;
    return async (value: unknown, info: StepInfo & { readonly undoes: string }) => {
      outside.began(id, info);
      if (node.undo === "broken") {
        outside.ended(info);
        throw new Error("it cannot be undone");
      }
      outside.takeBack(id, info.undoes, value);
      if (node.ms > 0) await outside.pause(node.ms);
      outside.ended(info);
      if (node.undo === "fails-once" && info.attempt === 1) throw new Error("the answer to the undo was lost");
    };
  }

  async #ask(node: Ask, votes: readonly VotePlan[], given: object, isFirst: boolean): Promise<unknown> {
    const action: ApprovalAction = { tool: "deal", arguments: given };
    const isAuto = node.levels.some((level) => level.action === "approve");
    const options: ApproveOptions = {
      action,
      approvers: node.approvers,
      evidence: { votes } satisfies Evidence,
      risk: "low",
      quorum: node.quorum,
      fourEyes: node.fourEyes,
      actor: ACTOR,
      timeout: node.timeoutMs,
      escalate: node.levels.map(({ afterMs, ...level }) => ({ after: afterMs, ...level })),
      autoApprove: isAuto ? { maxRisk: "low" } : false,
      onDenied: node.onDenied,
      onExpired: node.onExpired,
      onChanges: isFirst ? node.onChanges : "fail",
      // A loop may ask for the same again: what people say is up to chance here.
      maxDenials: { action: Number.POSITIVE_INFINITY },
    };
    const record: ApprovalRecord = await this.#ctx.approve("leave", options);
    if (record.decision === "changes_requested") return this.#askAgain(node, record);
    if (record.decision !== "approved") return record.decision;
    return this.#use(node, record, action);
  }

  /** What was asked for instead is another action: it needs leave of its own. */
  #askAgain(node: Ask, { by, arguments: wanted }: ApprovalRecord): Promise<unknown> {
    const votes = node.approvers.map((name) => ({ by: name, decision: "approved", afterMs: 20 }) as const);
    return this.#ask(node, votes, { ...(wanted as object), for: by }, false);
  }

  async #use(node: Ask, record: ApprovalRecord, action: ApprovalAction): Promise<unknown> {
    const { deal, use } = node;
    if (use === "changed") {
      const other = { ...action, arguments: { amount: 999 } };
      await this.#deal(deal, { record, action: other }).catch(this.#uncovered);
    }
    const value = await this.#deal(deal, { record, action });
    if (use === "twice") await this.#deal(deal, { record, action }).catch(this.#uncovered);
    return value;
  }

  readonly #uncovered = (error: unknown): void => {
    if (!hasCode(error, "approval_mismatch")) throw error;
    this.#outside.sometimes("an approval did not cover an action");
  };

  #spend({ usd, says, fails, isCaught, ms }: Spend): Promise<unknown> {
    const outside = this.#outside;
    const { id } = this.#ctx.run;
    const spent = this.#ctx.step(
      "spend",
      async (info) => {
        outside.began(id, info);
        outside.spent(id, info, says ?? usd);
        if (says !== null) info.spent({ usd: says });
        if (ms > 0) await outside.pause(ms);
        outside.ended(info);
        if (info.attempt <= fails) throw new Error(`attempt ${info.attempt} fails`);
        return `spent ${usd}`;
      },
      { spend: { usd }, retry: RETRY },
    );
    if (!isCaught) return spent;
    return spent.catch((error: unknown) => {
      if (hasCode(error, "budget_exceeded")) return "no budget";
      throw error;
    });
  }
}

const REFUSED = "the outside refuses it";

/** What is slow takes so long, and nobody waits so long for it. Everything else takes less. */
const SLOW_MS = 6000;
const PATIENCE_MS = 3000;

function patienceFor({ trouble }: Deal): { readonly timeout?: number } {
  return trouble === "slow" ? { timeout: PATIENCE_MS } : {};
}

/** Steps try again after any error, and say so in the end. */
function isRefusal(error: unknown): boolean {
  const last = hasCode(error, "max_retries_exceeded") ? (error as Error).cause : error;
  return last instanceof Error && last.message === REFUSED;
}

/** Whether a deed may give this to the body. */
export function isAllowedDeed(node: DeedProgram, value: unknown): boolean {
  switch (node.op) {
    case "deal":
      if (value === "refused") return node.trouble === "refused" || node.trouble === "lost-refused";
      if (value === "unknown") return node.recovery === "fail";
      return typeof value === "string" && value.startsWith("done ");
    case "ask":
      if (value === "denied") return node.onDenied === "branch";
      if (value === "expired") return node.onExpired === "branch";
      return isAllowedDeed(node.deal, value);
    case "spend":
      return value === `spent ${node.usd}` || (node.isCaught && value === "no budget");
    case "stop":
      return false;
  }
}

/** The codes of the errors that a deed may fail its run with. */
export function failuresOf(node: DeedProgram): readonly ErrorCode[] {
  switch (node.op) {
    case "deal":
      return [
        ...codesIf(node.recovery === "compensate", "step_interrupted", "unsafe_retry"),
        ...codesIf(node.usd > 0, "budget_exceeded"),
      ];
    case "ask":
      return [
        ...codesIf(node.onDenied !== "branch", "approval_denied"),
        ...codesIf(node.onExpired !== "branch" && node.onExpired !== "cancel", "approval_expired"),
        "changes_requested",
        ...failuresOf(node.deal),
      ];
    case "spend":
      return codesIf(!node.isCaught, "budget_exceeded");
    case "stop":
      return [];
  }
}

function codesIf(isSo: boolean, ...codes: ErrorCode[]): readonly ErrorCode[] {
  return isSo ? codes : [];
}

export function isDeed(node: { readonly op: string }): node is DeedProgram {
  return node.op === "deal" || node.op === "ask" || node.op === "spend" || node.op === "stop";
}
