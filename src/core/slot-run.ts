// Names
// How the run of a schedule and the runs of its slots are named, and how a run knows its slot.
import { PawlError } from "../base/errors.ts";

/** What the run of a schedule is a run of. It has no body: its worker settles what is due and lets it go. */
export const SCHEDULE_WORKFLOW = "pawl.schedule";

/** Only `pawl.schedule` makes such a run: any other would have neither definition nor cursor, and nobody could list schedules any more. */
export function assertNoSchedule(workflow: unknown): void {
  if (workflow !== SCHEDULE_WORKFLOW) return;
  throw new PawlError("invalid_argument", "A schedule is no workflow. Use pawl.schedule(name, workflow, options).");
}

/** The id of the run that a slot starts: there can only be one (I13). */
export function slotRun(name: string, slot: number): string {
  return `${name}@${new Date(slot).toISOString()}`;
}

const SLOT_TAG = "slot:";

/** What the runs of a schedule are found by, and know their slot from. */
export function slotTags(name: string, slot: number): string[] {
  return [`schedule:${name}`, `${SLOT_TAG}${slotRun(name, slot)}`];
}

/** The slot that a run was started for. A fork keeps its tags, and so its slot. */
export function slotOf(tags: readonly string[]): { readonly name: string; readonly slot: Date } | null {
  const tag = tags.find((one) => one.startsWith(SLOT_TAG));
  const at = tag?.lastIndexOf("@") ?? -1;
  if (tag === undefined || at < 0) return null;
  const slot = new Date(tag.slice(at + 1));
  return Number.isNaN(slot.getTime()) ? null : { name: tag.slice(SLOT_TAG.length, at), slot };
}
