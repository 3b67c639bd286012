// A run: where it stands and why, its timeline, and everything its journal knows. While it goes on, the page follows it.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useEvents } from "../events.ts";
import { useHereInView } from "../here-in-view.ts";
import { useKeys } from "../keys.ts";
import { Empty, Loaded } from "../notice.tsx";
import { useResource, useThrottled } from "../resource.ts";
import { navigate } from "../router.ts";
import { type RunAction, RunActionDialog } from "../run/actions.tsx";
import { CostTab } from "../run/cost-tab.tsx";
import { DocumentTab } from "../run/document-tab.tsx";
import { EffectsTab } from "../run/effects-tab.tsx";
import { GraphTab } from "../run/graph-tab.tsx";
import { RunHeader } from "../run/header.tsx";
import { JournalTab } from "../run/journal-tab.tsx";
import { LogsTab } from "../run/logs-tab.tsx";
import { StateTab } from "../run/state-tab.tsx";
import { TimelineTab } from "../run/timeline-tab.tsx";
import type { RunView } from "../run/view.ts";
import type { WireStatus, WireTimeline, WireWhy } from "../wire.ts";

interface Tab {
  readonly id: string;
  readonly name: string;
  show(view: RunView): JSX.Element;
}

const TABS: readonly Tab[] = [
  { id: "timeline", name: "Timeline", show: (view) => <TimelineTab {...view} /> },
  { id: "journal", name: "Journal", show: (view) => <JournalTab {...view} /> },
  { id: "state", name: "State", show: (view) => <StateTab {...view} /> },
  { id: "effects", name: "Effects", show: (view) => <EffectsTab {...view} /> },
  { id: "cost", name: "Cost", show: (view) => <CostTab {...view} /> },
  { id: "logs", name: "Logs", show: (view) => <LogsTab {...view} /> },
  { id: "graph", name: "Graph", show: (view) => <GraphTab {...view} /> },
  { id: "document", name: "Document", show: (view) => <DocumentTab {...view} /> },
];

/** A run may write a thousand entries a second: it is read again at most so often. */
const REFRESH_MS = 400;

export function Run({ id, tab = "timeline" }: { readonly id: string; readonly tab?: string | undefined }): JSX.Element {
  const base = `/api/runs/${encodeURIComponent(id)}`;
  const status = useResource<WireStatus>(base);
  const why = useResource<WireWhy>(`${base}/why`);
  const line = useResource<WireTimeline>(`${base}/timeline`);
  const [change, setChange] = useState(0);
  const [action, setAction] = useState<RunAction | null>(null);

  const refresh = async () => {
    setChange((before) => before + 1);
    await Promise.all([status.reload(), why.reload(), line.reload()]);
  };
  const isLive = useFollowing(base, status.data, line.data, useThrottled(refresh, REFRESH_MS));
  useEffect(() => {
    if (status.data !== null) document.title = `${status.data.workflow} · Pawl`;
  }, [status.data?.workflow]);
  useKeys({
    ...Object.fromEntries(
      TABS.map(({ id: one, name }, i) => [String(i + 1), { says: name, act: () => navigate(tabPath(id, one)) }]),
    ),
    u: { says: "All runs", act: () => navigate("/runs") },
  });

  return (
    <div class="page">
      <Loaded of={status} missing={<NoRun id={id} />}>
        {(run) => (
          <>
            <RunHeader run={run} why={why.data} isLive={isLive} ask={setAction} />
            <Tabs id={id} tab={tab} />
            {(TABS.find((one) => one.id === tab) ?? TABS[0])?.show({ run, line, change, ask: setAction })}
            {action !== null && (
              <RunActionDialog
                run={run}
                steps={line.data?.steps.map(({ key }) => key) ?? []}
                action={action}
                onDone={() => void refresh()}
                onClose={() => setAction(null)}
              />
            )}
          </>
        )}
      </Loaded>
    </div>
  );
}

function Tabs({ id, tab }: { readonly id: string; readonly tab: string }): JSX.Element {
  const nav = useHereInView(tab);
  return (
    <nav class="tabs run-tabs" aria-label="Views of the run" ref={nav}>
      {TABS.map(({ id: one, name }) => (
        <a key={one} class="tab" href={tabPath(id, one)} aria-current={one === tab ? "page" : undefined}>
          {name}
        </a>
      ))}
    </nav>
  );
}

function tabPath(id: string, tab: string): string {
  const base = `/runs/${encodeURIComponent(id)}`;
  return tab === "timeline" ? base : `${base}/${tab}`;
}

/** Entries behind those that the timeline has, until the run ends. */
function useFollowing(base: string, run: WireStatus | null, line: WireTimeline | null, refresh: () => void): boolean {
  const [first, setFirst] = useState<number | null>(null);
  useEffect(() => {
    if (line !== null) setFirst((before) => before ?? line.entries - 1);
  }, [line]);
  const isOver = run === null || run.endedAt !== null;
  const path = isOver || first === null ? null : `${base}/events?after=${first}`;
  return useEvents(path, { entry: refresh, end: refresh }, { onGap: refresh });
}

function NoRun({ id }: { readonly id: string }): JSX.Element {
  return (
    <Empty title="There is no such run.">
      <p>
        <code>{id}</code> is not in this store: it may have been removed after its time, or belong to another store.
      </p>
      <a href="/runs">All runs</a>
    </Empty>
  );
}
