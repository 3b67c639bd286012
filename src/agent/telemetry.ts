// What is told on the bus while an agent works
import type { PromptResponse } from "./adapter.ts";
import type { Session } from "./session.ts";
import { type EventType, eventType, type SessionEvent } from "./session-event.ts";
import type { ToolRecord } from "./tool.ts";

export interface PromptRenderedPayload {
  readonly session: Session;
  /** "namespace:key". */
  readonly prompt: string;
  readonly text: string;
  readonly hash: string;
  readonly tools: readonly string[];
}

export interface ToolInvokedPayload {
  /** As it is after the call. */
  readonly session: Session;
  readonly tool: string;
  readonly callId: string;
  readonly params: unknown;
  readonly record: ToolRecord;
  /** `undefined`: none. */
  readonly value: unknown;
  readonly events: readonly SessionEvent[];
  readonly at: number;
  /** How many tool calls of this evaluation there were, with this one. */
  readonly toolCalls: number;
}

export interface PromptExecutedPayload {
  readonly session: Session;
  readonly prompt: string;
  readonly response: PromptResponse;
}

/** A prompt is about to be given to the model for the first time. */
export const PromptRendered: EventType<PromptRenderedPayload> = eventType("PromptRendered");
/** A tool has ended, and the session has what it changed. Not told in replay. */
export const ToolInvoked: EventType<ToolInvokedPayload> = eventType("ToolInvoked");
/** An evaluation has ended. */
export const PromptExecuted: EventType<PromptExecutedPayload> = eventType("PromptExecuted");
