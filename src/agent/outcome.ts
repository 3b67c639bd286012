// What an agent came to
import { TerminalError } from "../base/errors.ts";
import type { AgentOutcome as MachineOutcome } from "../flows/machine-step.ts";

/** What an agent came to. Only the first is success: whoever asks has to say what follows from the others. */
export type AgentOutcome<O = unknown> =
  /** It has done its work. */
  | { readonly outcome: "result"; readonly value: O }
  | {
      /**
       * It will not; it does not know, or lacks evidence; a person has to look; it stopped before its work was done; or it could not.
       */
      readonly outcome: "refusal" | "uncertain" | "escalation" | "incomplete" | "error";
      readonly reason: string;
      /** The code of the error, if it was one. */
      readonly code?: string;
    };

type Failing = Exclude<AgentOutcome, { readonly outcome: "result" }>;

/** The stop reasons of runs that came to something else than a result. */
const STOP_REASONS: Readonly<Record<Failing["outcome"], string>> = {
  refusal: "refused",
  uncertain: "uncertain",
  escalation: "escalated",
  incomplete: "incomplete",
  error: "agent_failed",
};

/** What ends a run whose agent came to something else than a result. */
export function stopError(agent: string, run: string, { outcome, reason, code }: Failing): TerminalError {
  const word = /^(no_progress|max_rounds)\b/.exec(reason)?.[1];
  const stop = code ?? (outcome === "error" && word !== undefined ? word : STOP_REASONS[outcome]);
  return Object.assign(
    new TerminalError(`Agent "${agent}" of run ${run} ended without a result (${outcome}): ${reason}`),
    {
      code: stop,
      fields: { run, agent, outcome, reason },
    },
  );
}

/**
 * The outcome in the words of a machine's agent step: what an agent is unsure of is for a person, and what it has not finished can be tried again.
 */
export function machineOutcome<O>(outcome: AgentOutcome<O>): MachineOutcome<O, never> {
  if (outcome.outcome === "result") return { outcome: "result", value: outcome.value };
  const { reason } = outcome;
  switch (outcome.outcome) {
    case "refusal":
      return { outcome: "refusal", reason };
    case "escalation":
    case "uncertain":
      return { outcome: "escalation", reason };
    default:
      return { outcome: "error", reason };
  }
}
