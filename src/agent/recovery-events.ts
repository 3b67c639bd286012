// What is told on the bus about checkpoints and recovery
import type { Session } from "./session.ts";
import { type EventType, eventType } from "./session-event.ts";

export interface CheckpointSavedPayload {
  readonly session: Session;
  readonly execution: string;
  readonly attempt: number;
  readonly sequence: number;
  /** "milestone": the trigger said so. "effect": before or after something was done outside. "final": with the answer. */
  readonly cause: "milestone" | "effect" | "final";
}

export interface RecoveryPayload {
  readonly execution: string;
  readonly attempt: number;
  /** Where it goes on: the checkpoint's number; 0: from the request. */
  readonly sequence: number;
}

/** A checkpoint is durable. */
export const CheckpointSaved: EventType<CheckpointSavedPayload> = eventType("CheckpointSaved");
/** An execution of an earlier process is taken up. */
export const RecoveryStarted: EventType<RecoveryPayload> = eventType("RecoveryStarted");
/** One that was taken up has ended with an answer. */
export const RecoveryCompleted: EventType<RecoveryPayload> = eventType("RecoveryCompleted");
/** One that was taken up has failed again. */
export const RecoveryFailed: EventType<RecoveryPayload & { readonly message: string }> = eventType("RecoveryFailed");
