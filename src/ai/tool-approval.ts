// Approvals of tool calls
// What the SDK asks its caller for with `needsApproval` is asked of people here, and waits as long as they need. A denial is a result for the model.
import { PawlError } from "../base/errors.ts";
import type { ApprovalAction, ApprovalRecord, ApproveOptions } from "../core/approval.ts";
import type { Context } from "../core/context.ts";
import { callName, safeName } from "./call-name.ts";
import type { ToolCallOptions, ToolLike } from "./tool-like.ts";

/** Who is asked about a tool call, and how long: as of `ctx.approve`. What the call is comes from the model, and what a denial leads to is its business. */
export type ToolApprovals = Omit<ApproveOptions, "action" | "onDenied" | "onExpired" | "onChanges">;

/** What a tool call comes to that nobody allowed: the model sees the SDK's own `execution-denied`. */
export interface ExecutionDenied {
  readonly type: "execution-denied";
  readonly reason: string;
  readonly decision: ApprovalRecord["decision"];
  /** Id of the approval. */
  readonly approval: string;
}

/** Whether this output of a tool says that it was not allowed to run. */
export function isDenied(output: unknown): output is ExecutionDenied {
  const { type, approval } = (typeof output === "object" && output !== null ? output : {}) as Partial<ExecutionDenied>;
  return type === "execution-denied" && typeof approval === "string";
}

/** Leave to do one exact action, or why not. */
export type Leave = { readonly approval: ApprovalRecord; readonly action: ApprovalAction } | ExecutionDenied;

/** A call that may need leave. */
export interface AskedCall {
  readonly tool: string;
  readonly needsApproval: NonNullable<ToolLike["needsApproval"]>;
  readonly input: unknown;
  readonly options: ToolCallOptions;
}

/** Asks for leave, if the call needs it; `null`: it does not. */
export async function leaveFor(
  ctx: Context,
  { tool, needsApproval, input, options }: AskedCall,
  approvals: ToolApprovals | undefined,
): Promise<Leave | null> {
  // A rule may look at prices, limits and other things that change: what it said is recorded.
  const isNeeded =
    typeof needsApproval === "function"
      ? await ctx.step(callName("needs-approval", tool, options.toolCallId), async () => needsApproval(input, options))
      : needsApproval;
  if (!isNeeded) return null;
  if (approvals === undefined) throw nobodyToAsk(tool);
  const action: ApprovalAction = { tool, arguments: input };
  const branch = { onDenied: "branch", onExpired: "branch", onChanges: "branch" } as const;
  const approval = await ctx.approve(safeName(tool), { ...approvals, action, ...branch });
  return approval.decision === "approved" ? { approval, action } : denied(approval);
}

function denied({ id, decision, by, reason, arguments: wished }: ApprovalRecord): ExecutionDenied {
  const who =
    by === null ? "nobody decided in time" : `${by} ${decision === "denied" ? "denied it" : "asks for changes"}`;
  const wish = wished === undefined ? "" : `; the arguments should be ${JSON.stringify(wished)}`;
  const text = `The call was not allowed: ${who}${reason === undefined ? "" : `, ${reason}`}${wish}.`;
  return { type: "execution-denied", reason: text, decision, approval: id };
}

/** What the model is told of an output. */
export function modelOutput(tool: ToolLike): NonNullable<ToolLike["toModelOutput"]> {
  return (given) => {
    const { output } = given;
    if (isDenied(output)) return { type: "execution-denied", reason: output.reason };
    if (tool.toModelOutput !== undefined) return tool.toModelOutput(given);
    // As the SDK does it for tools that have no say in it.
    if (typeof output === "string") return { type: "text", value: output };
    return { type: "json", value: JSON.parse(JSON.stringify(output) ?? "null") as unknown };
  };
}

export function nobodyToAsk(tool: string): PawlError {
  return new PawlError(
    "invalid_argument",
    `Tool "${tool}" needs approval, and nobody is named who could give it. Give \`approvals: { approvers: ["role:…"] }\`.`,
    { fields: { tool, field: "approvals" } },
  );
}
