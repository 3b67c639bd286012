// A run that a start has found instead of making one.
import type { Resolved } from "../core/journal.ts";
import type { RunRow } from "../core/store.ts";
import { openEntry } from "../core/values.ts";
import { versionMismatch } from "../core/version-mismatch.ts";
import type { StartPorts } from "./start.ts";

/**
 * The run itself, or the one that has taken its place. Refuses one that is parked because of its version and that this process can never run: whoever
 * waits for it here would wait for somebody else (E-1).
 */
export async function workable(ports: StartPorts, run: string): Promise<string> {
  const { store, registry } = ports;
  ports.duplicate(run);
  const row = await store.run(run);
  if (row === null) return run;
  if (row.state === "cancelled") return (await successorOf(ports, row)) ?? run;
  const current = registry.newest(row.workflow)?.version;
  if (row.state !== "parked" || current === undefined) return run;
  if (registry.forRun(row.workflow, row.version) !== undefined) return run;
  const waits = await store.waits({ run, kind: "decision", name: "version_mismatch" });
  if (waits.length === 0) return run;
  throw versionMismatch({ run, workflow: row.workflow, saved: row.version, current });
}

/** The run that has taken the place of one that was started afresh; `null` if there is none. */
async function successorOf({ store, codec }: StartPorts, row: RunRow): Promise<string | null> {
  if (row.state !== "cancelled") return null;
  const resolved = (await store.journal(row.id)).findLast(({ type }) => type === "run.resolved");
  if (resolved === undefined) return null;
  const { choice, value } = openEntry(codec, row.id, resolved).payload as Resolved;
  const run = (value as { readonly run?: unknown } | null | undefined)?.run;
  return choice === "fresh" && typeof run === "string" && (await store.run(run)) !== null ? run : null;
}
