// The checkpoint observer
// Listens to the tool calls of one execution, and has the session saved whenever its trigger says so.
//
//   CO1. It hears of its own session alone, and of nothing once it is removed: a bus may serve many executions.
//   CO2. A call without a value is no progress: the trigger is not even asked.
import type { EventBus } from "./bus.ts";
import type { Session } from "./session.ts";
import { ToolInvoked } from "./telemetry.ts";
import type { Trigger } from "./trigger.ts";

export interface ObserverOptions {
  readonly bus: EventBus;
  readonly session: Session;
  readonly trigger: Trigger;
  /** When the work began, or its last checkpoint was taken. */
  readonly since: number;
  /** Awaited before the agent goes on. */
  readonly save: (session: Session) => Promise<void>;
}

/** Saves the session at the milestones of one execution. Gives the function that removes it. */
export function observeCheckpoints({ bus, session, trigger, since, save }: ObserverOptions): () => void {
  let checkpointAt = since;
  let toolCalls = 0;
  return bus.subscribe(
    ToolInvoked,
    async ({ payload }) => {
      const { tool, params, value, events, at, record } = payload;
      toolCalls += 1;
      if (value === undefined || value === null || !record.success) return;
      if (!trigger.matches({ tool, params, value, events, at, checkpointAt, toolCalls })) return;
      checkpointAt = at;
      toolCalls = 0;
      await save(session);
    },
    { session },
  );
}
