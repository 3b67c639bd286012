import { PawlError } from "../base/errors.ts";
import { isName } from "../base/ids.ts";
import type { Pawl } from "../client/pawl.ts";

const SHORTEST = 4;
const PAGE = 200;
/** How many of the newest runs are searched for an abbreviated id. */
const MAX_SEARCHED = 2000;

/** The id of the run that was meant: in full, or the beginning or end of one, if no other run's fits. */
export async function findRun(pawl: Pawl, text: string): Promise<string> {
  if (isName(text) && (await pawl.store.run(text)) !== null) return text;
  const found = text.length >= SHORTEST ? await search(pawl, text) : [];
  const [only, ...others] = found;
  if (only === undefined) throw notFound(text);
  if (others.length === 0) return only;
  throw new PawlError(
    "invalid_argument",
    `"${text}" fits ${found.length} runs: ${found.slice(0, 5).join(", ")}${found.length > 5 ? ", …" : ""}. Give more of the id.`,
    {
      fields: { run: text, runs: found },
    },
  );
}

async function search(pawl: Pawl, text: string): Promise<string[]> {
  const found: string[] = [];
  let cursor: string | null = null;
  for (let seen = 0; seen < MAX_SEARCHED; seen += PAGE) {
    const page: Awaited<ReturnType<Pawl["list"]>> = await pawl.list({
      limit: PAGE,
      ...(cursor !== null && { cursor }),
    });
    for (const { id } of page.runs) if (id.startsWith(text) || id.endsWith(text)) found.push(id);
    cursor = page.cursor;
    if (cursor === null) break;
  }
  return found;
}

function notFound(text: string): PawlError {
  const shown = JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
  return new PawlError(
    "run_not_found",
    `There is no run ${shown} in this store. List the runs with "pawl ls"; finished ones go when their retention is over.`,
    {
      fields: { run: text },
    },
  );
}
