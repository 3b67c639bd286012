// Calls
// Where the outside work of an agent's rounds happens. The loop of rounds knows nothing else of it: the same loop runs call by call in a journal,
// inside one step, or in a plain process with a directory.
//
//   CA1. What a call returns is what was recorded of it, live and in replay alike. Its function may not be called at all.
//   CA2. All tool calls of a round are made in the same turn, in order, before any of them is awaited; but those that are `inOrder` one by one.

import type { Amounts } from "../core/budget.ts";
import type { StepInfo } from "../core/context.ts";
import type { ModelReply } from "./model.ts";
import type { Session } from "./session.ts";
import type { SessionEvent } from "./session-event.ts";
import type { Tool, ToolRecord } from "./tool.ts";

/** A model call that is about to be made. */
export interface ModelCallFacts {
  /** Counted from 1. */
  readonly round: number;
  /** Of the conversation so far, without the prompt: it rolls over rounds, so it costs the same in each. */
  readonly inputHash: string;
  /** What it reserves of the run's budgets. */
  readonly spend?: Amounts;
}

/** A tool call that is about to be made: known, allowed, with arguments that fit. */
export interface ToolCall {
  /** As the model gave it. */
  readonly id: string;
  readonly name: string;
  readonly args: unknown;
  /** Its key in the journal: unlike any other of the run, and without what keys must not have. */
  readonly key: string;
  readonly round: number;
}

/** Where a round's outside work happens. */
export interface Calls {
  /** Whether people can be asked here. Where not, a tool that needs them is refused and never begun (I26). */
  readonly asksPeople: boolean;
  /** Asks the model, or gives back what it answered. */
  model(call: ModelCallFacts, run: (info: StepInfo) => Promise<ModelReply>): Promise<ModelReply>;
  /** Does what a tool does, with approval, effect and guards; or gives back what it left. Rejects only if the whole evaluation must end. */
  tool(call: ToolCall, tool: Tool, run: (info: StepInfo) => Promise<ToolRecord>): Promise<ToolRecord>;
  /** Asks people about what the agent has escalated: what they say, or `null` if it ends with that. Default: it does. */
  escalate?(reason: string): Promise<string | null>;
  /** Saves the session, where there is a place for it. */
  checkpoint(session: Session): Promise<void>;
  /** Tells those who listen on the bus. In a journal nobody waits for them. */
  publish(event: SessionEvent): Promise<void>;
  now(): number;
  uuid(): string;
  note(text: string): void;
}
