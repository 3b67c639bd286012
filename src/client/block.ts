// Runs that wait for a decision of their own making: a phase has failed, or its output is gone. People see and decide it like a park.
import { PawlError } from "../base/errors.ts";
import { LIMITS } from "../core/limits.ts";
import { BLOCKED, type Block, DECISION_SIGNAL, type DecisionMessage } from "../core/outline.ts";
import { sendOnce, stateOf } from "./own-signals.ts";
import type { Choice, ResolvePorts } from "./resolve.ts";
import type { RunSource } from "./run.ts";

/** What a run is blocked by; `null` if it is not, or a decision is on its way, unless that is wanted as well. */
export async function blockOf(
  source: Pick<RunSource, "store" | "codec">,
  run: string,
  { evenDecided = false }: { readonly evenDecided?: boolean } = {},
): Promise<Block | null> {
  // The mail first: a decision that is used up after this look has ended the block by the next one.
  const mail = evenDecided ? [] : await source.store.inbox(run);
  const block = (await stateOf(source, run))[BLOCKED] as Block | null | undefined;
  if (block == null) return null;
  return mail.some(({ id }) => id === messageId(block)) ? null : block;
}

export async function resolveBlock(ports: ResolvePorts, run: string, block: Block, choice: Choice): Promise<void> {
  const decision = typeof choice === "string" ? { choice } : choice;
  if (decision.choice === "abort" || decision.choice === "cancel") {
    const reason = `"${block.at}" failed (${block.error}), and the run was aborted`;
    return void (await ports.cancel(run, { reason: reason.slice(0, LIMITS.reasonBytes / 4) }));
  }
  const reason = decision.choice === "skip" ? reasonIn(run, decision.value) : undefined;
  const message: DecisionMessage = {
    ticket: block.ticket,
    choice: decision.choice,
    ...(reason !== undefined && { reason }),
  };
  await sendOnce(ports, run, DECISION_SIGNAL, messageId(block), message);
}

function messageId({ ticket }: Block): string {
  return `block-${ticket}`;
}

/** Whoever reads the document later must know why something was left out. */
function reasonIn(run: string, value: unknown): string {
  const reason = typeof value === "object" && value !== null && "reason" in value ? value.reason : value;
  if (typeof reason === "string" && reason.trim() !== "") return reason;
  throw new PawlError(
    "invalid_argument",
    `"skip" needs a reason: \`pawl resolve ${run} skip --reason "…"\`, or { choice: "skip", value: { reason } }.`,
    { fields: { run, field: "reason" } },
  );
}
