// Pins
// What a run, or a generation of it, was given when it began and keeps: recorded in its first entry, or, where whoever started it did not know
// the definition, in a mark right behind that.
import type { Continued, Entry, RunStarted, Uses, VersionChanged } from "./journal.ts";
import type { Definition, Workflow } from "./workflow.ts";

export interface Pins {
  readonly adopted: unknown;
  readonly uses: Uses | null;
}

export function pinsOf(entries: readonly Entry[], { uses }: Pick<Definition, "uses">): Pins {
  const first = entries[0]?.payload as RunStarted | Continued | undefined;
  return { adopted: first?.adopted, uses: first?.uses ?? markedUses(entries) ?? (entries.length === 1 ? uses : null) };
}

function markedUses(entries: readonly Entry[]): Uses | undefined {
  const mark = entries[1];
  return mark?.type === "version.changed" ? (mark.payload as VersionChanged).uses : undefined;
}

/** What the first entry of a run says of the definition that it begins with. */
export function pinned({
  structure,
  uses,
}: Pick<Definition, "structure" | "uses">): Pick<RunStarted, "structure" | "uses"> {
  return { ...(structure !== null && { structure }), ...(uses !== null && { uses }) };
}

/** The structural hash that the run has last gone on with; `null`: it has none, or nobody knew it. */
export function structureIn(entries: readonly Entry[]): string | null {
  for (let at = entries.length - 1; at >= 0; at--) {
    const { type, payload } = entries[at] as Entry;
    if (type === "version.changed" && (payload as VersionChanged).structure !== undefined)
      return (payload as VersionChanged).structure?.to ?? null;
    if (type === "run.continued" || type === "run.started") return (payload as RunStarted).structure ?? null;
  }
  return null;
}

/** What the journal says when code takes a run over that is newer than what the run began with, or is the first to know its definition. */
export function versionChange(from: string, workflow: Workflow, entries: readonly Entry[]): VersionChanged | null {
  const { version: to, definition } = workflow;
  const saved = structureIn(entries);
  if (to === from && saved === definition.structure) return null;
  const hasStructure = saved !== null || definition.structure !== null;
  const structure = hasStructure ? { structure: { from: saved, to: definition.structure } } : {};
  const isPinning = to === from && saved === null && begins(entries.at(-1)) && definition.uses !== null;
  return { from, to, ...structure, ...(isPinning && { uses: definition.uses }) };
}

/** Nothing has followed the first entry of its generation. */
function begins(last: Entry | undefined): boolean {
  return last?.type === "run.started" || last?.type === "run.continued";
}
