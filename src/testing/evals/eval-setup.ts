import { PawlError } from "../../base/errors.ts";
import type { Workflow } from "../../core/workflow.ts";

/** A call of a tool, as whoever answers it sees it. */
export interface EvalToolCall {
  readonly workflow: string;
  /** The name of the step or effect; of an undo `name/undo`. */
  readonly tool: string;
  /** Its key in the run: `map/0/charge#2`. */
  readonly key: string;
  readonly attempt: number;
}

/** What a tool answers where no event of a case says otherwise. */
export type EvalTool =
  | { readonly output: unknown }
  | { readonly answer: (call: EvalToolCall) => unknown }
  /** Its function runs: code that changes nothing, or a fake of its own. */
  | { readonly run: true };

interface EvalNotes {
  /** The usual answers, by the name of the step or effect. */
  readonly tools?: Readonly<Record<string, EvalTool>>;
  /** What cases call things, where the rule for names does not find it: tools, steps and approvals. */
  readonly names?: Readonly<Record<string, string>>;
  /** What flags such as `must_not_issue_refund` mean: names of steps and effects. */
  readonly flags?: Readonly<Record<string, readonly string[]>>;
  /** Children, and whatever else is started. */
  readonly workflows?: readonly Workflow<never, unknown>[];
  /** What a `deploy` brings, by version. Default: the same code, one patch later. */
  readonly deployments?: Readonly<Record<string, Workflow<never, unknown>>>;
}

/** What the cases of a workflow need to know of it. */
export interface EvalSetup<I> extends EvalNotes {
  readonly workflow: Workflow<I, unknown>;
  /** For cases that have none of their own. */
  readonly input?: NoInfer<I>;
}

/** A workflow that cases can be played against. */
export interface EvalSubject extends EvalNotes {
  readonly workflow: Workflow<never, unknown>;
  readonly input?: unknown;
}

/** Describes a workflow for its eval cases; export it from the file that is given to `pawl eval run --workflows`. */
export function evalSetup<I>(setup: EvalSetup<I>): EvalSubject {
  if (typeof setup?.workflow?.definition?.handler === "function") return setup as EvalSubject;
  throw new PawlError(
    "invalid_argument",
    "evalSetup needs `workflow`: evalSetup({ workflow: refund, input, tools }).",
    {
      fields: { field: "workflow" },
    },
  );
}
