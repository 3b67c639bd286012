import { append } from "./operation.ts";
import { reducing } from "./reducers.ts";
import { type EventType, eventType } from "./session-event.ts";
import { type Slice, slice } from "./slice.ts";

/** A section that was summed up is to be shown in full. */
export const SectionOpened: EventType<{ readonly key: string }> = eventType("SectionOpened");

/** The keys of sections that the model has opened. Every session has this slice, so that a restored prompt shows what the last one did. */
export const openedSections: Slice<string> = slice<string>("opened_sections", {
  on: [
    reducing(SectionOpened, (items: readonly string[], { payload }) =>
      items.includes(payload.key) ? null : append(payload.key),
    ),
  ],
});
