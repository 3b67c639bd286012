// Crash everywhere
// Attacks a workflow at every point at which its process can die, and tells what of it does not hold.
import { PawlError, readProperty } from "../base/errors.ts";
import type { EncryptionOptions } from "../client/keyring.ts";
import type { Run } from "../client/run.ts";
import type { Workflow } from "../core/workflow.ts";
import { shieldRejections } from "../worker/rejections.ts";
import { CRASH_MODES, type CrashMode } from "./explorer/crash-point.ts";
import { exploreAll } from "./explorer/exploration.ts";
import { watchBodies } from "./explorer/hazards.ts";
import type { Script } from "./explorer/history.ts";
import type { CrashReport } from "./explorer/report.ts";
import { show } from "./explorer/run-end.ts";
import { watchTimers } from "./explorer/step-timers.ts";
import { Stillness } from "./explorer/stillness.ts";
import { RecordBook, type Recorder } from "./recorder.ts";
import type { TestEngine } from "./test-engine.ts";

/** How a workflow is explored, and what stands for the outside world meanwhile. */
export interface CrashOptions<I, O> {
  /** What is tried at each point. Default: all three. */
  readonly modes?: readonly CrashMode[];
  /** Also two crashes in one history: all pairs while they are few, otherwise some, by the seed. */
  readonly pairs?: boolean;
  /** Only this point, to debug it. */
  readonly at?: number;
  /** For what is sampled. Default 1. */
  readonly seed?: number;
  /** Stop exploring after this long; `isComplete` then says so. */
  readonly budgetMs?: number;
  /** Children, and whatever else is started. */
  readonly workflows?: readonly Workflow<never, unknown>[];
  /** Signals, cancels and whatever else comes from outside. It is made again after each crash; signals without an id get one by their order. */
  readonly script?: (run: Run<O>, engine: TestEngine, input: I) => Promise<void>;
  /** Resets the test's own fakes; called before each history. */
  readonly fresh?: () => void | Promise<void>;
  /** What the outside world has seen; compared with the undisturbed run, unless it varies along with a step. */
  readonly observe?: () => unknown;
  /** As the option of `Pawl.open`: everything is kept sealed meanwhile. Names stay readable. */
  readonly encryption?: Omit<EncryptionOptions, "names">;
  /** Outside effects with their keys, made by `recorder()`; compared with the undisturbed run, by name and key alone where steps vary. */
  readonly recorder?: Recorder;
}

/**
 * Runs a workflow once, then again for every point at which its process can die, lose an answer or be overtaken, and compares result and
 * outside effects. Where steps vary without any crash, the result is compared with what the run itself has recorded.
 *
 * ```ts
 * const outside = recorder();
 * const report = await crashEverywhere(checkout, order, { recorder: outside });
 * assert(report.ok, report.toString());
 * ```
 */
export async function crashEverywhere<I, O>(
  workflow: Workflow<I, O>,
  input: I,
  options: CrashOptions<I, O> = {},
): Promise<CrashReport> {
  assertSound(workflow, options);
  const book = bookOf(options.recorder);
  if (book !== null) take(book);
  const { seed = 1, modes = CRASH_MODES, fresh, observe, script } = options;
  const bodies = new WeakMap();
  const undo = [watchBodies(bodies), watchTimers(), shieldRejections()];
  try {
    return await exploreAll(
      {
        scene: { workflow: workflow as Workflow<never, unknown>, input, script: script as Script | undefined },
        workflows: [...new Set([workflow as Workflow<never, unknown>, ...(options.workflows ?? [])])],
        encryption: options.encryption,
        book,
        stillness: new Stillness(),
        bodies,
        fresh: fresh ?? (() => {}),
        observe: observe ?? (() => undefined),
        isForkable: fresh === undefined && observe === undefined,
      },
      {
        modes,
        seed,
        pairs: options.pairs === true,
        at: options.at ?? null,
        budgetMs: options.budgetMs ?? Number.POSITIVE_INFINITY,
      },
    );
  } finally {
    for (const one of undo) one();
    if (book !== null) book.onEffect = null;
  }
}

/** What is misspelt would have nothing tried, and that passes for a workflow without a fault. */
function assertSound(
  workflow: unknown,
  { modes = CRASH_MODES, budgetMs = 0 }: Pick<CrashOptions<never, never>, "modes" | "budgetMs">,
): void {
  const refuse = (message: string, fields: Record<string, unknown>) => {
    throw new PawlError("invalid_argument", message, { fields });
  };
  if (typeof readProperty(readProperty(workflow, "definition"), "handler") !== "function")
    refuse(`crashEverywhere needs a workflow, as made by workflow(name, body); this is ${show(workflow)}.`, {});
  const isKnown = (mode: unknown) => CRASH_MODES.some((one) => one === mode);
  if (!Array.isArray(modes) || modes.length === 0 || !modes.every(isKnown))
    refuse(`\`modes\` is ${show(modes)}: give a list with one or more of ${CRASH_MODES.join(", ")}.`, { modes });
  if (typeof budgetMs !== "number" || Number.isNaN(budgetMs))
    refuse(`\`budgetMs\` is ${show(budgetMs)}: give a number of milliseconds.`, { budgetMs });
}

/** Each history puts it back to what was recorded before. */
function take(book: RecordBook): void {
  if (book.onEffect !== null)
    throw new PawlError(
      "invalid_argument",
      "Another crashEverywhere that has not ended uses this `recorder`. Wait for that one first, or give each a recorder of its own.",
    );
  book.onEffect = () => {};
}

function bookOf(given: Recorder | undefined): RecordBook | null {
  if (given === undefined || given instanceof RecordBook) return given ?? null;
  throw new PawlError("invalid_argument", "`recorder` is none of ours. Make it with recorder() of pawl/testing.");
}
