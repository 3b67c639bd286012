import type { Pawl } from "../client/pawl.ts";
import { isCovered } from "../client/stranded.ts";
import { isTerminal } from "../core/transition.ts";
import { PLAYBOOK_TAG } from "../flows/playbook.ts";
import type { Call } from "./command.ts";
import { playbookStoreFlag } from "./playbook-store.ts";
import { clean } from "./printable.ts";
import { storeFlag } from "./store-url.ts";

/** Tells of a run that inherits another one's journal, and whether anybody will work on it. */
export async function printInheritor(
  { out, url }: Call<unknown>,
  pawl: Pawl,
  runs: { readonly from: string; readonly run: string },
): Promise<void> {
  if (out.isJson) out.json(runs);
  else out.print(`Run ${runs.run} goes on from run ${runs.from}.`);
  await noteIfNobodyWorks(out, url, pawl, runs.run);
}

/** A run that was accepted and that no live worker takes is a surprise best told at once. */
export async function noteIfNobodyWorks(out: Call<unknown>["out"], url: string, pawl: Pawl, id: string): Promise<void> {
  const row = await pawl.store.run(id);
  // What has ended needs nobody: the answer to something that was said before.
  if (row === null || isTerminal(row.state) || (await isCovered(pawl.store, row))) return;
  if (row.tags.includes(PLAYBOOK_TAG))
    return out.note(`Go on with: pawl playbook next --run ${row.id}${playbookStoreFlag(url)}`);
  out.note(
    out.noteColor.yellow(
      `No live worker has ${clean(row.workflow)} ${row.version}: the run begins when one is started, with "pawl worker <file>${storeFlag(url)}".`,
    ),
  );
}
