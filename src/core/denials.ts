// Denials
// How often people have said no in this run: those who are asked see it, and a body that asks for the same again and again is stopped. A fold of the
// decisions that the body has seen, so the same in every replay.
import { PawlError } from "../base/errors.ts";
import type { ApprovalDenials } from "./approval.ts";
import type { ApprovalSpec } from "./approval-request.ts";

type Asked = Pick<ApprovalSpec, "action" | "actor">;

export class Denials {
  readonly #actions = new Map<string, number>();
  readonly #tools = new Map<string, number>();

  /** `digest`: of tool, arguments and resources. A new version or policy does not make it another action here: people have said no to it. */
  before(digest: string, asked: Asked): ApprovalDenials {
    return { action: this.#actions.get(digest) ?? 0, tool: this.#tools.get(toolOf(asked)) ?? 0 };
  }

  add(digest: string, asked: Asked): void {
    const { action, tool } = this.before(digest, asked);
    this.#actions.set(digest, action + 1);
    this.#tools.set(toolOf(asked), tool + 1);
  }

  /** Why nobody is asked any more; `null` if people may be. */
  refusal(run: string, digest: string, spec: ApprovalSpec): PawlError | null {
    const denials = this.before(digest, spec);
    const { maxDenials, name, action, actor, onDenied } = spec;
    const isAction = denials.action >= maxDenials.action;
    if (!isAction && denials.tool < maxDenials.tool) return null;
    const what = isAction
      ? `this very action (${action.tool})`
      : `${action.tool}${actor === null ? "" : ` by ${actor}`}`;
    const message =
      `Approval "${name}" of run ${run} was not asked for: ${what} has been denied ${isAction ? denials.action : denials.tool} times in this run. ` +
      "Do something else, or give a higher `maxDenials`.";
    const fields = { run, name, tool: action.tool, actor, denials, reason: isAction ? "action" : "tool" };
    // As after a denial: what was done stays done where the body says so.
    const how = onDenied === "fail" ? { compensate: false } : {};
    return new PawlError("approval_refused", message, { fields: { ...fields, ...how } });
  }
}

/** No name holds a line break. */
function toolOf({ action, actor }: Asked): string {
  return `${action.tool}\n${actor ?? ""}`;
}
