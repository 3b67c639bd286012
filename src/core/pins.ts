// Pins
// What a run, or a generation of it, was given when it began and keeps: recorded in its first entry, or, where whoever started it did not know
// the definition, in a mark right behind that.
import type { Continued, Entry, RunStarted, Uses, VersionChanged } from "./journal.ts";
import type { Definition } from "./workflow.ts";

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
