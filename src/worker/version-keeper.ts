// The version keeper
// Looks after runs whose version no worker has: parks them for somebody to decide, takes up parked ones whose version is back, and migrates those
// that somebody wants migrated. Runs that wait for a key which this worker has, or for a build that understands them, are taken up, too.
//
//   VK1. A version counts as missing only after this worker has found no live worker for it for a whole grace time: a rolling deployment is no
//        mismatch. What it has seen is forgotten with the process.
//   VK2. Only runs that nobody owns are written to, each in one commit, by whoever has taken it (P18, P19).
//   VK3. No code of another version is called but migrations, and those only if somebody has decided so.
import { messageOf, PawlError } from "../base/errors.ts";
import { isVersion } from "../base/semver.ts";
import { isKnownDemand } from "../core/demands.ts";
import { Draft, encodeRecord } from "../core/draft.ts";
import { writePark } from "../core/endings.ts";
import type { Entry, Parked, Resolved } from "../core/journal.ts";
import { DEFAULTS, LIMITS } from "../core/limits.ts";
import { adoptedOf, type MigrationPlan, migrate, savedRun } from "../core/migration.ts";
import { isOwnWorkflow } from "../core/own-workflows.ts";
import type { PassPorts } from "../core/pass-ports.ts";
import { pinned } from "../core/pins.ts";
import { rewriteCommit } from "../core/rewrite.ts";
import { validateNow } from "../core/schema.ts";
import type { ClaimedRun, RunCommit, Store, UnclaimedRow, WaitRow } from "../core/store.ts";
import { openJournal, openKey, opensHere } from "../core/values.ts";
import { isHandled } from "../core/version-line.ts";
import { type Mismatch, parkedMismatch } from "../core/version-mismatch.ts";
import { openPark } from "./load-run.ts";
import type { Registry } from "./registry.ts";
import type { TakenOver, TakeOver } from "./take-over.ts";

export interface VersionKeeperParts {
  readonly store: Store;
  readonly registry: Registry;
  readonly ports: PassPorts;
  readonly takeOver: TakeOver;
  readonly versionGraceMs: number;
  isStopping(): boolean;
}

export class VersionKeeper {
  readonly #parts: VersionKeeperParts;
  /** Since when no live worker was found for a version of a workflow, on the lease clock. */
  readonly #missingSince = new Map<string, number>();
  /** Entries that nobody can open, by run and position: looked at once. */
  readonly #damaged = new Set<string>();
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** Where the last look at parked runs has ended, if there were more than one look takes. */
  #after: Pick<WaitRow, "run" | "key"> | null = null;

  constructor(parts: VersionKeeperParts) {
    this.#parts = parts;
  }

  async look(): Promise<void> {
    await this.#settle();
    await this.#parkStranded();
  }

  /** Parks runs that have found no worker for too long (VK1). Asked for less often than the rest: nothing depends on the minute. */
  async #parkStranded(): Promise<void> {
    const { store, registry, versionGraceMs } = this.#parts;
    const now = store.leaseClock.monotonic();
    if (now - this.#lookedAt < Math.min(versionGraceMs / 2, DEFAULTS.housekeepingMs)) return;
    this.#lookedAt = now;
    const own = registry.names.filter((name) => !isOwnWorkflow(name));
    const rows = await store.unclaimed({ workflows: own, limit: LIMITS.parkBatch });
    const stranded = rows.length === 0 ? [] : await this.#strandedOf(rows);
    this.#forgetOthers(stranded);
    for (const row of stranded) {
      const since = this.#missingSince.get(nameOf(row)) ?? now;
      this.#missingSince.set(nameOf(row), since);
      if (now - since >= versionGraceMs) await this.#parkAll(row);
    }
  }

  async #strandedOf(rows: readonly UnclaimedRow[]): Promise<UnclaimedRow[]> {
    const { store, registry } = this.#parts;
    const live = (await store.workers()).filter(({ leaseLeftMs }) => leaseLeftMs > 0);
    const handles = [...registry.handles, ...live.flatMap((worker) => worker.handles)];
    // A row with no version at all is damaged: it cannot be parked, and `doctor` names it.
    return rows.filter(({ workflow, version }) => isVersion(version) && !isHandled(handles, workflow, version));
  }

  #forgetOthers(stranded: readonly UnclaimedRow[]): void {
    const names = new Set(stranded.map(nameOf));
    for (const name of [...this.#missingSince.keys()]) if (!names.has(name)) this.#missingSince.delete(name);
  }

  async #parkAll({ workflow, version, runs }: UnclaimedRow): Promise<void> {
    const { registry, takeOver, isStopping } = this.#parts;
    const current = registry.newest(workflow)?.version;
    for (const run of runs) {
      if (current === undefined || isStopping()) return;
      await takeOver.writeNow(run, (claimed) => this.#park(claimed, { run, workflow, saved: version, current }));
    }
  }

  /** Somebody may have been faster, or brought it to another version. */
  #park(claimed: ClaimedRun, mismatch: Mismatch): RunCommit | null {
    const { state, version } = claimed.row;
    if (state === "parked" || version !== mismatch.saved) return null;
    return this.#parkedAs(claimed, parkedMismatch(mismatch), this.#parts.ports.clock.now());
  }

  #parkedAs(claimed: ClaimedRun, park: Parked, now: number): RunCommit {
    const { ports } = this.#parts;
    ports.log.warn(park.message, { run: claimed.run, reason: park.reason });
    const draft = this.#draftOf(claimed);
    writePark(draft, claimed.row, now, park);
    return draft.take().commit;
  }

  #draftOf({ run, head, journal }: ClaimedRun): Draft {
    const last = journal.at(-1);
    const { host, codec } = this.#parts.ports;
    return new Draft(run, { head, hash: last?.hash ?? run, at: last?.at ?? 0 }, host, codec);
  }

  /** Goes through runs that wait for a decision: takes up those that this worker can run after all, and migrates what is to be migrated. */
  async #settle(): Promise<void> {
    const { store, isStopping } = this.#parts;
    const limit = LIMITS.settleBatch;
    const waits = await store.waits({ kind: "decision", limit, ...(this.#after !== null && { after: this.#after }) });
    this.#after = waits.length < limit ? null : (waits.at(-1) ?? null);
    for (const wait of waits) {
      if (isStopping()) return;
      if (wait.name === "migration_pending") await this.#migratePending(wait);
      else if (this.#canGoOn(wait)) await this.#takeUp(wait, { choice: "old", value: WITH_DEFINITION });
      else if (this.#hasKey(wait)) await this.#takeUp(wait, { choice: "retry", value: WITH_KEY });
      else if (await this.#understands(wait)) await this.#takeUp(wait, { choice: "retry", value: NEWER });
    }
  }

  /** What it was parked for is there now. */
  #canGoOn({ workflow, name, detail }: WaitRow): boolean {
    const { registry } = this.#parts;
    const { version, saved } = detailOf(detail);
    if (name === "version_mismatch") return saved !== null && registry.forRun(workflow, saved) !== undefined;
    if (name !== "definition_changed" || version === null) return false;
    const code = registry.forRun(workflow, version);
    return code !== undefined && code.definition.structure === saved;
  }

  /** The key that its values are sealed with is here. */
  #hasKey({ name, detail }: WaitRow): boolean {
    const { key } = detailOf(detail);
    return name === "key_missing" && key !== null && this.#parts.ports.codec.holds?.(key) === true;
  }

  /** Another build could not follow its journal, and this one can: that build has said so, or has taken the entry for damaged (DM3). */
  async #understands({ run, name, detail }: WaitRow): Promise<boolean> {
    const { store, ports } = this.#parts;
    const { demand, seq } = detailOf(detail);
    if (name === "newer_journal") return isKnownDemand(demand);
    if (name !== "corrupted_journal" || seq === null || this.#damaged.has(`${run} ${seq}`)) return false;
    const entries = await store.journal(run, { from: Math.max(0, seq - 1), limit: 2 });
    const entry = entries.find((one) => one.seq === seq);
    const before = entries.find((one) => one.seq === seq - 1);
    // One that is damaged indeed would be parked again, each time.
    const isIt = entry !== undefined && isKnownDemand(openKey(ports.codec, entry));
    if (isIt && opensHere(ports.host, ports.codec, run, entry, before)) return true;
    this.#damaged.add(`${run} ${seq}`);
    return false;
  }

  /** As if somebody had decided so; whoever has decided before is first. */
  async #takeUp({ run, detail }: WaitRow, decision: Resolved): Promise<void> {
    const { store, ports } = this.#parts;
    const row = await store.run(run);
    if (row === null || row.state !== "parked" || row.owner !== null || row.readyAt !== null) return;
    // Read behind its position: it may have gone on since it was listed, and be parked for something that only a person decides.
    if (!(await store.waits({ run, kind: "decision" })).some((wait) => wait.detail === detail)) return;
    const id = `decision-${row.head}`;
    const data = ports.codec.seal(encodeRecord(decision, "decision"), { run, seq: -1, field: `inbox:${id}` });
    await store.deliver({ to: run, id, kind: "decision", name: "", data });
    ports.mailed();
  }

  async #migratePending({ run, workflow, detail }: WaitRow): Promise<void> {
    const { registry, ports } = this.#parts;
    const { saved, by } = detailOf(detail);
    if (saved === null || registry.migrationFrom(workflow, saved) === null) return;
    try {
      await this.migrate(run, { by: by ?? "unknown", reason: "It was decided to migrate it." });
    } catch (error) {
      ports.log.error(`Run ${run} could not be migrated: ${messageOf(error)}`, { run });
      await this.#askAgain(run, messageOf(error));
    }
  }

  /** Whoever wants it migrated has to know that it did not work. */
  async #askAgain(run: string, why: string): Promise<void> {
    const { takeOver, ports } = this.#parts;
    await takeOver.writeNow(run, (claimed) => {
      const park = openPark(this.#entriesOf(claimed));
      const { saved, current } = (park?.detail ?? {}) as { saved?: string; current?: string };
      const { workflow, version } = claimed.row;
      const again = parkedMismatch({ run, workflow, saved: saved ?? version, current: current ?? "another version" });
      const message = `${again.message}\nThe migration that was tried has failed: ${why}`;
      return this.#parkedAs(claimed, { ...again, message }, ports.clock.now());
    });
  }

  /** Brings a run to the newest version here that migrations lead to; throws what they throw, and if there are none. */
  async migrate(run: string, who: { readonly by: string; readonly reason: string }): Promise<TakenOver> {
    return this.#parts.takeOver.write(run, (claimed) => this.#migrated(claimed, who));
  }

  #migrated(claimed: ClaimedRun, who: { readonly by: string; readonly reason: string }): RunCommit {
    const { registry, ports } = this.#parts;
    const { workflow: name, version } = claimed.row;
    const plan = registry.migrationFrom(name, version);
    if (plan === null) throw migrationMissing(claimed.run, name, version, registry.newest(name)?.version ?? null);
    const { workflow } = plan;
    const given = resultOf(claimed, plan, this.#entriesOf(claimed));
    const what = `The input that a migration of workflow "${name}" gives`;
    const adopted = adoptedOf(given);
    const rewriting = {
      ...who,
      cause: "migration" as const,
      version: workflow.version,
      ...("input" in given && { input: validateNow(workflow.definition.input, given.input, what) }),
      ...(given.state !== undefined && { state: given.state }),
      ...(adopted !== undefined && { adopted }),
      ...pinned(workflow.definition),
    };
    return rewriteCommit(claimed, rewriting, workflow, ports);
  }

  #entriesOf({ row, journal }: ClaimedRun): Entry[] {
    const { host, codec } = this.#parts.ports;
    return openJournal(host, codec, row, journal, false);
  }
}

function resultOf({ run, row }: ClaimedRun, plan: MigrationPlan, entries: readonly Entry[]) {
  return migrate(plan, savedRun(run, row.version, entries));
}

/** Nothing leads from one version to the other. */
export function migrationMissing(run: string, workflow: string, saved: string, current: string | null): PawlError {
  const line = saved.split(".").slice(0, 2).join(".");
  const to = current ?? "the new version";
  return new PawlError(
    "version_mismatch",
    `Run ${run} cannot be migrated: workflow "${workflow}" has no migration from ${saved} to ${to}. Give it one: migrations: [{ from: "${line}", to: "${current ?? "2.0.0"}", migrate({ input, state }) { … } }]; or edit the run by hand with \`pawl state edit\`.`,
    { fields: { run, workflow, saved, current } },
  );
}

function nameOf({ workflow, version }: UnclaimedRow): string {
  return `${workflow} ${version}`;
}

const WITH_DEFINITION = { by: "a worker that has its definition" };
const WITH_KEY = { by: "a worker that has its key" };
const NEWER = { by: "a newer worker" };

interface ParkDetail {
  readonly saved: string | null;
  readonly version: string | null;
  readonly by: string | null;
  readonly key: string | null;
  readonly demand: string | null;
  readonly seq: number | null;
}

const NO_DETAIL: ParkDetail = { saved: null, version: null, by: null, key: null, demand: null, seq: null };

/** What a wait says of its park; nothing where that cannot be read. */
function detailOf(text: string | null): ParkDetail {
  try {
    const { detail } = JSON.parse(text ?? "null") as { readonly detail: Record<string, unknown> };
    const textAt = (key: string) => (typeof detail[key] === "string" ? (detail[key] as string) : null);
    const { seq } = detail;
    return {
      saved: textAt("saved"),
      version: textAt("version"),
      by: textAt("by"),
      key: textAt("key"),
      demand: textAt("demand"),
      seq: typeof seq === "number" ? seq : null,
    };
  } catch {
    return NO_DETAIL;
  }
}
