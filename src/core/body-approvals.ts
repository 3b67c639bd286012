// The approvals of a body
// What it has asked for, what it has used, and how often people have said no. Made when the body asks for its first one.
import type { ApprovalAction, ApprovalRecord, Approved, ApproveOptions } from "./approval.ts";
import { givenApproval, matchApproval, notGiven, type PendingAction } from "./approval-match.ts";
import { actionDigest } from "./approval-request.ts";
import { approvalSpec } from "./approval-spec.ts";
import { newApprovalCall } from "./approvals.ts";
import type { ApprovalCall } from "./call.ts";
import { Denials } from "./denials.ts";
import type { NeededApproval } from "./effect.ts";
import type { CallType } from "./journal.ts";
import type { Pass } from "./pass.ts";

/** Keys of calls, in the scope that the body is in. */
interface Keys {
  take(): string;
  giveBack(type: CallType): void;
}

export class BodyApprovals {
  readonly #pass: Pass;
  readonly #asked: ApprovalCall[] = [];
  /** Ids of those that something was done with. */
  readonly #used = new Set<string>();
  readonly #denials = new Denials();

  constructor(pass: Pass) {
    this.#pass = pass;
  }

  ask(name: string, options: ApproveOptions, keys: Keys): Promise<Approved> {
    const spec = approvalSpec(name, options);
    const digest = actionDigest(this.#digest, spec.action);
    const call = newApprovalCall(this.#pass, keys.take(), spec, digest, this.#denials);
    const refused = this.#denials.refusal(this.#pass.id, digest, spec);
    // What is in the journal was asked, whatever the limit is now.
    if (refused !== null && !this.#pass.replay.knows(call)) {
      keys.giveBack(call.type);
      return Promise.reject(refused);
    }
    this.#asked.push(call);
    return this.#pass.issue(call) as Promise<Approved>;
  }

  /** An approval counts once, and for this very action (Q6). Asked again when that begins: time may have passed since. */
  use(effect: string, key: string, { approval: named, ...needed }: NeededApproval): () => void {
    const { ports, row, now, replay } = this.#pass;
    const approval: ApprovalRecord = givenApproval(this.#asked, named, effect);
    const assertCovered = (pending: Omit<PendingAction, "workflow">) => {
      const mismatch = matchApproval(this.#digest, approval, { workflow: row.workflow, ...pending });
      if (mismatch !== null) throw mismatch;
    };
    // What the journal has was covered by the rules of its day: a new policy or version is no drift, and another action is.
    const rules = replay.plans(key, approval.id) ? { action: { ...approval.action, ...said(needed.action) } } : needed;
    assertCovered({ ...rules, now, isConsumed: this.#used.has(approval.id) });
    this.#used.add(approval.id);
    return () => {
      // What the source has been given, it has used or may still use: here it would count a second time.
      if (replay.leftApprovals.includes(approval.id)) throw notGiven(effect, approval.id);
      assertCovered({ ...needed, now: ports.clock.now(), isConsumed: false });
    };
  }

  readonly #digest = (text: string): string => this.#pass.ports.host.digest(text);
}

/** What is done, without the version of what does it. */
function said({ tool, arguments: given, resources = [] }: ApprovalAction): ApprovalAction {
  return { tool, arguments: given, resources };
}
