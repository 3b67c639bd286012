// Where code leaves a recorded run, as a difference that people can read.
import type { ExportedRun } from "../client/export.ts";
import type { ReplayDiff } from "../testing/replay.ts";
import { relativeToHere } from "./code-place.ts";
import { clean } from "./printable.ts";

/** How many entries are shown before the one that differs. */
const CONTEXT = 3;

/** The entries before it, the recorded one and what the code did instead. */
export function diffLines(
  { entries }: Pick<ExportedRun, "entries">,
  { seq, recorded, issued }: ReplayDiff,
  line: string | undefined,
): string[] {
  const width = String(seq).length;
  const row = (mark: string, at: number, text: string) => `${mark} ${String(at).padStart(width)}  ${clean(text)}`;
  const before = entries.filter((entry) => entry.seq < seq).slice(-CONTEXT);
  const place = line === undefined ? "" : `  at ${relativeToHere(line)}`;
  return [
    ...before.map(({ seq: at, type, key }) => row(" ", at, key === null ? type : `${type} "${key}"`)),
    row("-", seq, `${recorded ?? "(the run waits)"}  recorded`),
    row("+", seq, `${issued ?? "(nothing)"}  the code${place}`),
  ];
}
