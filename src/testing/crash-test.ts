import type { Workflow } from "../core/workflow.ts";
import type { CrashOptions } from "./crash-everywhere.ts";

/** What `pawl test --crash-everywhere FILE` looks for among a file's exports: a workflow, its input, and how to explore it. */
export interface CrashTest<I = unknown, O = unknown> extends CrashOptions<I, O> {
  readonly workflow: Workflow<I, O>;
  readonly input: I;
}

/**
 * Describes a crash test; `export default` it, or export several by name.
 *
 * ```ts
 * export default crashTest({ workflow: checkout, input: { id: "order-17", cents: 4200 } });
 * ```
 */
export function crashTest<I, O>(test: CrashTest<I, O>): CrashTest<I, O> {
  return test;
}
