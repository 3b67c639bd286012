import type { RunSelection } from "../client/run-list.ts";
import { type PublicStatus, RUN_STATES, type RunState } from "../core/transition.ts";
import { STATUSES } from "./answers.ts";
import { moment, type Optional, oneOf, optional, text, type ValuesOf } from "./shape.ts";

/** Which runs are meant, in the words of an address or a body. */
export const RUN_FILTER: {
  readonly workflow: Optional<string>;
  readonly status: Optional<PublicStatus>;
  readonly state: Optional<RunState>;
  readonly tag: Optional<string>;
  readonly parent: Optional<string>;
  readonly owner: Optional<string>;
  readonly q: Optional<string>;
  readonly after: Optional<string>;
  readonly before: Optional<string>;
} = {
  workflow: optional(text("Only runs of this workflow.")),
  status: optional(oneOf("Only runs that stand so.", STATUSES)),
  state: optional(oneOf("Only runs in this state of the engine.", RUN_STATES)),
  tag: optional(text("Only runs with this tag.")),
  parent: optional(text("Only runs that this one has started.")),
  owner: optional(text("Only runs that this person has to see to, as their workflows say.")),
  q: optional(text("Only runs whose id, workflow, key or a tag begins so.")),
  after: optional(moment("Only runs started after this.")),
  before: optional(moment("Only runs started before this.")),
};

export function selectionOf({ q, after, before, ...rest }: ValuesOf<typeof RUN_FILTER>): RunSelection {
  return {
    ...rest,
    ...(q !== undefined && { search: q }),
    ...(after !== undefined && { after: new Date(after) }),
    ...(before !== undefined && { before: new Date(before) }),
  };
}
