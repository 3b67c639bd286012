// Rewriting a run
// The way in for whoever wants a run to go on from something else than its journal leads to: an edit, an import, a migration. Checked here, written
// as the next generation by `core/rewrite.ts`, in one commit.
import type { Codec } from "../base/envelope.ts";
import { PawlError } from "../base/errors.ts";
import { parseVersion } from "../base/semver.ts";
import { utf8Length } from "../base/utf8.ts";
import type { Host } from "../core/host.ts";
import type { RewriteCause } from "../core/journal.ts";
import { LIMITS } from "../core/limits.ts";
import { assertNotBodiless } from "../core/own-workflows.ts";
import { pinned } from "../core/pins.ts";
import { type Rewriting, rewriteCommit } from "../core/rewrite.ts";
import { validate } from "../core/schema.ts";
import { isPlainRecord } from "../core/stable-digest.ts";
import type { RunRow, Store } from "../core/store.ts";
import type { Workflow } from "../core/workflow.ts";
import type { Registry } from "../worker/registry.ts";
import type { TakenOver } from "../worker/take-over.ts";
import type { Worker } from "../worker/worker.ts";
import { rowOf, runNotFound } from "./run.ts";

/** What a run is to go on from. What is absent stays as it is. */
export interface RewriteOptions {
  /** Its input. */
  readonly input?: unknown;
  /** Its run state, all of it: what is not in it is gone. */
  readonly state?: Readonly<Record<string, unknown>>;
  /** What is said to have been done: the body sees it as `ctx.run.adopted`. */
  readonly adopted?: unknown;
  /** The version of its workflow from here on. */
  readonly version?: string;
  /** What it comes from: `"edit"`, `"import"`, `"migration"` or `"accept"`. */
  readonly cause: RewriteCause;
  /** Who does it. */
  readonly by: string;
  /** Why. */
  readonly reason: string;
}

export interface RewritePorts {
  readonly store: Store;
  readonly host: Host;
  readonly codec: Codec;
  readonly registry: Registry;
  readonly worker: Worker;
}

/** Makes a run that nobody works on go on from another state, as a new generation. */
export async function rewriteRun(ports: RewritePorts, run: string, options: RewriteOptions): Promise<void> {
  const row = await rowOf(run, ports.store);
  assertNotBodiless(row.workflow);
  const workflow = ports.registry.forRun(row.workflow, options.version ?? row.version) ?? null;
  const rewriting = await checkedRewriting(options, workflow);
  const outcome = await ports.worker.takeOver.write(run, (claimed) =>
    rewriteCommit(claimed, rewriting, workflow, ports.worker.ports),
  );
  if (outcome.kind !== "written") throw await notWritten(ports.store, run, outcome);
  ports.worker.hint();
}

/** What is asked for, with what the definition that is known here has to say about it. */
export async function checkedRewriting(options: RewriteOptions, workflow: Workflow | null): Promise<Rewriting> {
  checkOptions(options);
  if (workflow === null) return options;
  const { definition, name } = workflow;
  return {
    ...options,
    ...("input" in options && {
      input: await validate(definition.input, options.input, `The input of workflow "${name}"`),
    }),
    ...(options.version !== undefined && pinned(definition)),
  };
}

function checkOptions({ by, reason, version, state }: RewriteOptions): void {
  assertText("by", by);
  assertText("reason", reason);
  if (version !== undefined) parseVersion(version);
  if (state !== undefined && !isPlainRecord(state))
    throw new PawlError("invalid_argument", "`state` must be an object: run state by key.", {
      fields: { field: "state" },
    });
}

function assertText(field: string, value: unknown): void {
  if (typeof value === "string" && value !== "" && utf8Length(value) <= LIMITS.reasonBytes) return;
  throw new PawlError(
    "invalid_argument",
    `\`${field}\` must be text of up to ${LIMITS.reasonBytes} bytes: the journal says who has changed the run, and why.`,
    { fields: { field } },
  );
}

export async function notWritten(store: Store, run: string, outcome: TakenOver): Promise<PawlError> {
  if (outcome.kind === "missing") return runNotFound(run);
  if (outcome.kind === "busy") return busy(run, outcome.owner, await nameOf(store, outcome.owner));
  const [code, what] =
    outcome.kind === "ended"
      ? (["run_ended", "has ended, and stays as it is. Fork it to go on from another state."] as const)
      : (["run_busy", "is being cancelled. Wait until it has ended."] as const);
  return new PawlError(code, `Run ${run} ${what}`, { fields: { run } });
}

async function nameOf(store: Store, owner: string | null): Promise<string | null> {
  return (await store.workers()).find(({ id }) => id === owner)?.name ?? null;
}

function busy(run: string, owner: RunRow["owner"], name: string | null): PawlError {
  const who = owner === null ? "Somebody else writes to it right now" : `Worker ${owner} (${name ?? "unknown"}) has it`;
  return new PawlError(
    "run_busy",
    `Run ${run} is being worked on, and only its owner may write to it. ${who}. Try again when it waits or is parked, or stop that worker.`,
    { fields: { run, owner } },
  );
}
