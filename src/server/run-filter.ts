import type { RunQuery } from "../client/run-list.ts";
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
  readonly after: Optional<string>;
  readonly before: Optional<string>;
} = {
  workflow: optional(text("Only runs of this workflow.")),
  status: optional(oneOf("Only runs that stand so.", STATUSES)),
  state: optional(oneOf("Only runs in this state of the engine.", RUN_STATES)),
  tag: optional(text("Only runs with this tag.")),
  parent: optional(text("Only runs that this one has started.")),
  after: optional(moment("Only runs started after this.")),
  before: optional(moment("Only runs started before this.")),
};

export function queryOf({ after, before, ...rest }: ValuesOf<typeof RUN_FILTER>): RunQuery {
  return {
    ...rest,
    ...(after !== undefined && { after: new Date(after) }),
    ...(before !== undefined && { before: new Date(before) }),
  };
}
