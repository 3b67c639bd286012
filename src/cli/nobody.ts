import type { Pawl } from "../client/pawl.ts";
import type { Output } from "./output.ts";
import { clean } from "./printable.ts";
import { storeFlag } from "./store-url.ts";

/** Says what a cancel waits for. */
export async function noteNobodyUndoes(out: Output, url: string, { store }: Pawl, run: string): Promise<void> {
  const row = await store.run(run);
  out.note(
    out.noteColor.yellow(
      `No live worker has ${clean(row?.workflow ?? "its workflow")} ${row?.version ?? ""}: run ${run} is cancelled, and what it has done undone, when one is started with "pawl worker <file>${storeFlag(url)}".`,
    ),
  );
}
