// Replay packets
// Everything that somebody needs to follow a run elsewhere: the run, those below it, its ledger, and the versions that it was pinned to.

import type { RunStarted, Uses } from "../core/journal.ts";
import type { EffectRecord } from "../core/ledger.ts";
import { damaged, type ExportedRun, type ExportOptions, type ExportSource, exportRun, readExport } from "./export.ts";

const PACKET_FORMAT = "pawl-replay-packet";

export interface ReplayPacket {
  readonly format: typeof PACKET_FORMAT;
  readonly formatVersion: 1;
  /** The run that it is about. */
  readonly root: string;
  /** That run first, then those below it. */
  readonly runs: readonly ExportedRun[];
  /** The versions of prompts, policies, models and tools that it was pinned to. */
  readonly uses: Uses;
  /** What it has done outside; without values if the packet is redacted. */
  readonly effects: readonly Pick<EffectRecord, "effect" | "status" | "class" | "guard" | "attempts" | "dry">[];
}

/** Reads a run with all runs below it, as one value that can be written to a file as JSON. */
export async function exportPacket(pawl: ExportSource, id: string, options: ExportOptions = {}): Promise<ReplayPacket> {
  const runs = await withChildren(pawl, id, options);
  const effects = await pawl.get(id).effects();
  const first = runs[0]?.entries[0]?.value as Partial<RunStarted> | undefined;
  return {
    format: PACKET_FORMAT,
    formatVersion: 1,
    root: id,
    runs,
    uses: first?.uses ?? {},
    effects: effects.map(({ effect, status, class: kind, guard, attempts, dry }) => ({
      effect,
      status,
      class: kind,
      guard,
      attempts,
      ...(dry === true && { dry }),
    })),
  };
}

/** A run and all below it, the topmost first. */
export async function withChildren(
  pawl: ExportSource,
  id: string,
  options: ExportOptions = {},
): Promise<ExportedRun[]> {
  const exported = await exportRun(pawl, id, options);
  const below: ExportedRun[] = [];
  for (const child of exported.children) below.push(...(await withChildren(pawl, child, options)));
  return [exported, ...below];
}

/** The runs in a packet, or the one of an export. */
export function readExports(value: unknown): ExportedRun[] {
  const { format, runs } = (value ?? {}) as Partial<ReplayPacket>;
  if ((format as string | undefined) !== PACKET_FORMAT) return [readExport(value)];
  if (!Array.isArray(runs) || runs.length === 0) throw damaged("runs", "is no list of runs");
  return runs.map((run) => readExport(run));
}
