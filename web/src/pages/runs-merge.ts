// A list of runs that stays up to date: what the server tells of changes, put into what is shown.
import { msOf } from "../format.ts";
import type { WireRuns, WireSummary } from "../wire.ts";

/** Those parts of a filter that a run can begin or cease to fit. */
interface Changing {
  readonly status: string | null;
  readonly state: string | null;
  readonly owner: string | null;
}

/** Changed runs in their places, new ones on top, and those that no longer fit out. */
export function merged({ runs: shown, cursor }: WireRuns, changed: readonly WireSummary[], filter: Changing): WireRuns {
  const byId = new Map(changed.map((run) => [run.id, run]));
  const known = new Set(shown.map(({ id }) => id));
  // What is older belongs to a later page, if there is one: otherwise it has just begun to fit.
  const oldest = cursor === null ? "" : (shown.at(-1)?.createdAt ?? "");
  const kept = shown.map((run) => byId.get(run.id) ?? run).filter((run) => fits(run, filter));
  const fresh = changed.filter((run) => !known.has(run.id) && fits(run, filter) && run.createdAt >= oldest);
  // Of the same moment, new ones stay on top: ids are no order, since those of children are digests.
  const runs = [...fresh, ...kept].sort((a, b) => (msOf(b.createdAt) ?? 0) - (msOf(a.createdAt) ?? 0));
  return { runs, cursor };
}

/** Of what may change in a run. */
function fits(run: WireSummary, { status, state, owner }: Changing): boolean {
  if (owner !== null && run.responsible !== owner) return false;
  return (status === null || run.status === status) && (state === null || run.state === state);
}
