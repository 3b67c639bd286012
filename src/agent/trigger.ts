import { type Duration, toMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import { UpdateStep } from "./plan.ts";
import { type AnyEventType, isEvent, type SessionEvent } from "./session-event.ts";

/** A tool call that has succeeded, and what happened since the last checkpoint. */
export interface TriggerFacts {
  readonly tool: string;
  readonly params: unknown;
  readonly value: unknown;
  /** What the tool dispatched, in order. */
  readonly events: readonly SessionEvent[];
  /** Now, in milliseconds since 1970. */
  readonly at: number;
  /** When the last checkpoint was taken; before the first one, when the work began. */
  readonly checkpointAt: number;
  /** Tool calls since the last checkpoint, this one included. */
  readonly toolCalls: number;
}

/** Says after which tool calls a checkpoint is taken. It remembers nothing, so one can serve any number of sessions. */
export interface Trigger {
  readonly matches: (call: TriggerFacts) => boolean;
}

/** A trigger that listens to types of events. */
export interface CheckpointTrigger extends Trigger {
  readonly events: readonly AnyEventType[];
}

export interface CheckpointTriggerOptions {
  /** Types whose events are milestones, with those that extend them. A step of the plan counts when it is done. Default `[UpdateStep]`. */
  readonly events?: readonly AnyEventType[];
}

/** A checkpoint at every milestone: by default, whenever a step of the plan is done. */
export function checkpointTrigger(options: CheckpointTriggerOptions = {}): CheckpointTrigger {
  const events: readonly AnyEventType[] = Object.freeze([...(options.events ?? [UpdateStep])]);
  const isMilestone = (event: SessionEvent): boolean => {
    if (!events.some((type) => type.is(event))) return false;
    return UpdateStep.is(event) ? event.payload.status === "done" : true;
  };
  // A tool may dispatch its milestone, or return it: an update tool that one day returns the whole plan still makes checkpoints.
  const matches = ({ events: dispatched, value }: TriggerFacts): boolean =>
    dispatched.some(isMilestone) || (isEvent(value) && isMilestone(value));
  return Object.freeze({ events, matches });
}

/** A checkpoint after a tool call, if the last one is so long ago. For long steps without a milestone. */
export function everyInterval(interval: Duration): Trigger {
  const ms = toMs(interval, "interval of a trigger");
  return Object.freeze<Trigger>({ matches: ({ at, checkpointAt }) => at - checkpointAt >= ms });
}

/** A checkpoint after so many tool calls. */
export function everyToolCalls(count: number): Trigger {
  if (!Number.isSafeInteger(count) || count < 1)
    throw new PawlError("invalid_argument", `everyToolCalls(${count}): give a whole number, at least 1.`, {
      fields: { field: "count" },
    });
  return Object.freeze<Trigger>({ matches: ({ toolCalls }) => toolCalls >= count });
}

/** A checkpoint if one of the triggers says so. */
export function anyOf(...triggers: readonly Trigger[]): Trigger {
  return Object.freeze<Trigger>({ matches: (call) => triggers.some((trigger) => trigger.matches(call)) });
}

/** A checkpoint if all of the triggers say so. */
export function allOf(...triggers: readonly Trigger[]): Trigger {
  return Object.freeze<Trigger>({
    matches: (call) => triggers.length > 0 && triggers.every((trigger) => trigger.matches(call)),
  });
}
