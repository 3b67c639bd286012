// The list of runs
// The first page comes first and alone; counts are asked for when it is there. What changes arrives by itself: runs that are shown change in their
// place, new ones come on top, and those that no longer fit the filter go.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get, messageOf, withQuery } from "../api.ts";
import { useEvents } from "../events.ts";
import { plural, shortId } from "../format.ts";
import { useKeys } from "../keys.ts";
import { Empty, Loaded } from "../notice.tsx";
import { useResource, useThrottled } from "../resource.ts";
import { navigate, query, setQuery } from "../router.ts";
import { may } from "../session.ts";
import { RunState } from "../status.tsx";
import { Ago, Took } from "../time.tsx";
import { sayFailure } from "../toast.tsx";
import type { WireCounts, WireRuns, WireSummary } from "../wire.ts";
import { BulkDialog, type BulkTarget } from "./runs-bulk.tsx";
import { Filters, filterOf, hasFilter, StatusTabs } from "./runs-filter.tsx";
import { merged } from "./runs-merge.ts";

const PAGE = 50;

export function Runs(): JSX.Element {
  const filter = filterOf(query.value);
  const list = useResource<WireRuns>(withQuery("/api/runs", { ...filter, limit: PAGE }), { keep: true });
  const counts = useCounts(filter, list.data !== null);
  const selection = useSelection(list.data?.runs ?? []);
  const [bulk, setBulk] = useState<BulkTarget | null>(null);
  const [isPaging, setPaging] = useState(false);
  const arrivals = useArrivals(filter, list, counts.refresh);

  const more = async () => {
    setPaging(true);
    const { search } = location;
    const cursor = list.data?.cursor ?? null;
    try {
      const next = await get<WireRuns>(withQuery("/api/runs", { ...filter, limit: PAGE, cursor }));
      // The list may be another one by now, or end elsewhere.
      if (location.search === search)
        list.set((page) =>
          page.cursor === cursor ? { runs: [...page.runs, ...next.runs], cursor: next.cursor } : page,
        );
    } catch (error) {
      sayFailure(messageOf(error));
    }
    setPaging(false);
  };

  return (
    <div class="page">
      <div class="page-head">
        <h1>Runs</h1>
        <span class={arrivals.isLive ? "live is-live" : "live"} role="status">
          {arrivals.isLive ? "Live" : "Not live"}
        </span>
      </div>
      <StatusTabs counts={counts.data} />
      <Filters />
      <Loaded of={list}>
        {({ runs, cursor }) => (
          <>
            <Rows runs={runs} selection={selection} isStale={list.isLoading} />
            {runs.length === 0 && <NoRuns isFiltered={hasFilter(filter)} />}
            <div class="list-foot">
              <span class="dim">{runs.length > 0 && `${plural(runs.length, "run")} shown`}</span>
              {cursor !== null && (
                <button type="button" onClick={() => void more()} disabled={isPaging}>
                  {isPaging ? "Loading…" : "Show more"}
                </button>
              )}
            </div>
          </>
        )}
      </Loaded>
      {selection.chosen.length > 0 && <SelectionBar selection={selection} filter={filter} ask={setBulk} />}
      {bulk !== null && (
        <BulkDialog
          target={bulk}
          onClose={() => setBulk(null)}
          onDone={() => {
            selection.clear();
            void list.reload();
          }}
        />
      )}
    </div>
  );
}

type Filter = ReturnType<typeof filterOf>;

/** Counted once the first page is shown, and again when something has changed. */
function useCounts(filter: Filter, isReady: boolean) {
  const { status: _, state: __, ...others } = filter;
  const counts = useResource<WireCounts>(isReady ? withQuery("/api/runs/counts", others) : null, { keep: true });
  return { data: counts.data, refresh: useThrottled(counts.reload, 2000) };
}

function useArrivals(filter: Filter, list: ReturnType<typeof useResource<WireRuns>>, refreshCounts: () => void) {
  const isLive = useEvents(
    withQuery("/api/changes", { ...filter }),
    {
      runs: (data) => {
        const { runs } = data as { readonly runs: readonly WireSummary[] };
        refreshCounts();
        list.set((page) => merged(page, runs, filter));
      },
    },
    { onGap: list.reload },
  );
  return { isLive };
}

interface Selection {
  readonly chosen: readonly WireSummary[];
  /** The row that keys act on. */
  readonly at: number;
  has(id: string): boolean;
  toggle(id: string): void;
  set(ids: readonly string[]): void;
  clear(): void;
}

function useSelection(runs: readonly WireSummary[]): Selection {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const [at, setAt] = useState(-1);
  const toggle = (id: string) =>
    setIds((before) => (before.has(id) ? new Set([...before].filter((one) => one !== id)) : new Set([...before, id])));
  const move = (by: number) => {
    const next = Math.min(Math.max(at + by, 0), runs.length - 1);
    setAt(next);
    document.querySelectorAll<HTMLElement>(".run-link")[next]?.focus();
  };
  useKeys({
    j: { says: "Next run", act: () => move(1) },
    k: { says: "Run before", act: () => move(-1) },
    x: { says: "Select the run", act: () => runs[at] !== undefined && toggle(runs[at].id) },
    Enter: {
      says: "Open the run",
      act: (event) => {
        const focused = (event.target as HTMLElement).closest?.("a, button");
        if (focused instanceof HTMLElement) focused.click();
        else if (runs[at] !== undefined) navigate(`/runs/${encodeURIComponent(runs[at].id)}`);
      },
    },
    "/": { says: "Search", act: () => document.getElementById("search")?.focus() },
    Escape: {
      says: "Leave the field, drop the selection",
      act: (event) => {
        if (event.target instanceof HTMLInputElement) event.target.blur();
        else setIds(new Set());
      },
    },
  });
  return {
    chosen: runs.filter(({ id }) => ids.has(id)),
    at,
    has: (id) => ids.has(id),
    toggle,
    set: (all) => setIds(new Set(all)),
    clear: () => setIds(new Set()),
  };
}

function Rows({
  runs,
  selection,
  isStale,
}: {
  readonly runs: readonly WireSummary[];
  readonly selection: Selection;
  readonly isStale: boolean;
}): JSX.Element | null {
  if (runs.length === 0) return null;
  const isAll = runs.every(({ id }) => selection.has(id));
  return (
    <table class={isStale ? "list runs is-stale" : "list runs"}>
      <thead>
        <tr>
          {may("operator") && (
            <th class="pick">
              <Tick
                label="Select all shown"
                checked={isAll}
                onChange={() => (isAll ? selection.clear() : selection.set(runs.map(({ id }) => id)))}
              />
            </th>
          )}
          <th>Status</th>
          <th>Workflow</th>
          <th>Run</th>
          <th class="num">Started</th>
          <th class="num">Took</th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <Row key={run.id} run={run} isChosen={selection.has(run.id)} toggle={() => selection.toggle(run.id)} />
        ))}
      </tbody>
    </table>
  );
}

function Tick({
  label,
  checked,
  onChange,
}: {
  readonly label: string;
  readonly checked: boolean;
  onChange(): void;
}): JSX.Element {
  return <input type="checkbox" aria-label={label} checked={checked} onChange={onChange} />;
}

function Row({
  run,
  isChosen,
  toggle,
}: {
  readonly run: WireSummary;
  readonly isChosen: boolean;
  toggle(): void;
}): JSX.Element {
  const href = `/runs/${encodeURIComponent(run.id)}`;
  const open = (event: MouseEvent) => {
    if ((event.target as Element).closest("a, input, button") === null && getSelection()?.isCollapsed !== false)
      navigate(href);
  };
  return (
    <tr class={isChosen ? "is-chosen" : ""} onClick={open}>
      {may("operator") && (
        <td class="pick">
          <Tick label={`Select run ${run.id}`} checked={isChosen} onChange={toggle} />
        </td>
      )}
      <td class="cell-status">
        <RunState run={run} />
      </td>
      <td class="cell-workflow">
        <a class="run-link" href={href}>
          {run.workflow}
        </a>
        <span class="dim"> {run.version}</span>
      </td>
      <td class="cell-id">
        <span class="mono dim" title={run.id}>
          {shortId(run.id)}
        </span>
        {run.key !== null && <span class="tag">{run.key}</span>}
        {run.tags.map((tag) => (
          <button
            key={tag}
            type="button"
            class="tag"
            onClick={() => setQuery({ tag })}
            title={`Only runs with tag ${tag}`}
          >
            {tag}
          </button>
        ))}
        {run.responsible != null && (
          <button type="button" class="tag" onClick={() => setQuery({ owner: run.responsible ?? null })}>
            {run.responsible} has to see to it
          </button>
        )}
      </td>
      <td class="num cell-started">
        <Ago at={run.createdAt} />
      </td>
      <td class="num cell-took">
        <Took from={run.createdAt} to={run.endedAt} />
      </td>
    </tr>
  );
}

function NoRuns({ isFiltered }: { readonly isFiltered: boolean }): JSX.Element {
  if (isFiltered)
    return (
      <Empty title="No run fits this filter.">
        <a href="/runs">Show all runs</a>
      </Empty>
    );
  return (
    <Empty title="No runs yet.">
      Start one: <code>pawl start FILE WORKFLOW</code>, or <code>pawl.start(workflow, input)</code> in your code. It
      appears here by itself.
    </Empty>
  );
}

function SelectionBar({
  selection,
  filter,
  ask,
}: {
  readonly selection: Selection;
  readonly filter: Filter;
  ask(target: BulkTarget): void;
}): JSX.Element {
  const { chosen, clear } = selection;
  return (
    <section class="selection" aria-label="Selected runs">
      <span>{plural(chosen.length, "run")} selected</span>
      <button type="button" onClick={() => ask({ kind: "runs", action: "retry", runs: chosen })}>
        Retry…
      </button>
      <button type="button" onClick={() => ask({ kind: "runs", action: "cancel", runs: chosen })}>
        Cancel…
      </button>
      {may("admin") && hasFilter(filter) && (
        <>
          <span class="selection-or">or all that fit the filter:</span>
          <button type="button" onClick={() => ask({ kind: "filter", action: "retry", filter })}>
            Retry all…
          </button>
          <button type="button" onClick={() => ask({ kind: "filter", action: "cancel", filter })}>
            Cancel all…
          </button>
        </>
      )}
      <button type="button" class="link" onClick={clear}>
        Clear
      </button>
    </section>
  );
}
