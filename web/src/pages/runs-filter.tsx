// What of the runs is shown. The filter is the address's query: nothing else remembers it.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { clockTime, count } from "../format.ts";
import { useHereInView } from "../here-in-view.ts";
import { useResource } from "../resource.ts";
import { query, setQuery } from "../router.ts";
import { Shape, type Tone } from "../status.tsx";
import type { WireCounts } from "../wire.ts";

export interface RunFilter {
  readonly q: string | null;
  readonly status: string | null;
  readonly state: string | null;
  readonly workflow: string | null;
  readonly tag: string | null;
  readonly owner: string | null;
  readonly after: string | null;
  readonly before: string | null;
}

const HOUR = 3_600_000;
const SINCE: readonly (readonly [string, string, number])[] = [
  ["1h", "Last hour", HOUR],
  ["24h", "Last 24 hours", 24 * HOUR],
  ["7d", "Last 7 days", 7 * 24 * HOUR],
  ["30d", "Last 30 days", 30 * 24 * HOUR],
];

const OWN_STATES: ReadonlySet<string> = new Set(["waiting", "parked"]);

/** A minute is precise enough, and lets the same view have the same address for the server. */
const ROUND_MS = 60_000;

/** The filter that the address asks for, in the words of the API. */
export function filterOf(params: URLSearchParams): RunFilter {
  const status = params.get("status");
  const since = SINCE.find(([name]) => name === params.get("since"));
  const after = since === undefined ? params.get("after") : sinceTime(since[2]);
  return {
    q: params.get("q"),
    // What is parked waits as well, but has a tab of its own.
    status: OWN_STATES.has(status ?? "") ? null : status,
    state: OWN_STATES.has(status ?? "") ? status : params.get("state"),
    workflow: params.get("workflow"),
    tag: params.get("tag"),
    owner: params.get("owner"),
    after,
    before: params.get("before"),
  };
}

function sinceTime(ms: number): string {
  return new Date(Math.floor((Date.now() - ms) / ROUND_MS) * ROUND_MS).toISOString();
}

export function hasFilter(filter: RunFilter): boolean {
  return Object.values(filter).some((value) => value !== null);
}

const TABS: readonly (readonly [string, Tone | null, string])[] = [
  ["", null, "All"],
  ["running", "running", "Running"],
  ["waiting", "waiting", "Waiting"],
  ["parked", "parked", "Parked"],
  ["failed", "failed", "Failed"],
  ["succeeded", "succeeded", "Succeeded"],
  ["cancelled", "cancelled", "Cancelled"],
];

export function StatusTabs({ counts }: { readonly counts: WireCounts | null }): JSX.Element {
  const here = query.value.get("status") ?? "";
  const nav = useHereInView(here);
  return (
    <nav class="tabs" aria-label="Status" ref={nav}>
      {TABS.map(([status, tone, name]) => (
        <button
          key={status}
          type="button"
          class={tone === null ? "tab" : `tab tone-${tone}`}
          aria-pressed={here === status}
          onClick={() => setQuery({ status })}
        >
          {tone !== null && <Shape tone={tone} />}
          <span class="tab-name">{name}</span>
          <span class="tab-count">{countText(counts, status)}</span>
        </button>
      ))}
    </nav>
  );
}

function countText(counts: WireCounts | null, status: string): string {
  if (counts === null) return "";
  const number =
    status === "" ? Object.values(counts.counts).reduce((sum, one) => sum + one, 0) : counts.counts[status];
  return number === undefined ? "" : `${count(number)}${counts.atLeast && number > 0 ? "+" : ""}`;
}

const TYPING_MS = 200;

/** What the address asks for beside the fields: a plot leads to the runs of a time. */
function Range(): JSX.Element | null {
  const after = query.value.get("after");
  const before = query.value.get("before");
  if (after === null && before === null) return null;
  const text = [after !== null && `from ${clockTime(after)}`, before !== null && `to ${clockTime(before)}`];
  return (
    <p class="filters-range">
      Started {text.filter((part) => part !== false).join(" ")}
      <button type="button" class="link" onClick={() => setQuery({ after: null, before: null })}>
        Any time
      </button>
    </p>
  );
}

export function Filters(): JSX.Element {
  const [isOpen, setOpen] = useState(["workflow", "tag", "owner", "since"].some((name) => query.value.has(name)));
  return (
    <div class="filters">
      <TextFilter name="q" label="Search" id="search" placeholder="Id, workflow, key or tag" />
      <button type="button" class="filters-more" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Filter
      </button>
      <div class={isOpen ? "filters-rest is-open" : "filters-rest"}>
        <WorkflowFilter />
        <TextFilter name="tag" label="Tag" placeholder="Any" />
        <TextFilter name="owner" label="Owner" placeholder="Any" />
        <label class="field">
          <span>Started</span>
          <select
            value={query.value.get("since") ?? ""}
            onChange={(event) => setQuery({ since: event.currentTarget.value })}
          >
            <option value="">Any time</option>
            {SINCE.map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </label>
      </div>
      <Range />
    </div>
  );
}

interface WireWorkflows {
  readonly workflows: readonly { readonly name: string }[];
}

function WorkflowFilter(): JSX.Element {
  const { data } = useResource<WireWorkflows>("/api/workflows");
  const here = query.value.get("workflow") ?? "";
  const names = [
    ...new Set([...(data?.workflows.map(({ name }) => name) ?? []), ...(here === "" ? [] : [here])]),
  ].sort();
  return (
    <label class="field">
      <span>Workflow</span>
      <select value={here} onChange={(event) => setQuery({ workflow: event.currentTarget.value })}>
        <option value="">Any</option>
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

interface TextFilterProps {
  readonly name: string;
  readonly label: string;
  readonly placeholder: string;
  readonly id?: string;
}

/** What is typed takes effect after a moment, unless the address has come to say something else meanwhile. */
function TextFilter({ name, label, placeholder, id }: TextFilterProps): JSX.Element {
  const given = query.value.get(name) ?? "";
  /** `null`: the field shows what the address says. */
  const [typed, setTyped] = useState<string | null>(null);
  const sent = useRef<string | null>(null);
  useEffect(() => {
    if (given === sent.current) return;
    sent.current = null;
    setTyped(null);
  }, [given]);
  useEffect(() => {
    if (typed === null) return undefined;
    const { pathname } = location;
    const timer = setTimeout(() => {
      const here = query.peek().get(name) ?? "";
      if (location.pathname !== pathname || (here !== given && here !== sent.current)) return;
      sent.current = typed.trim();
      setQuery({ [name]: sent.current });
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [name, typed]);
  return (
    <label class={id === "search" ? "field field-search" : "field"}>
      <span>{label}</span>
      <input
        type="search"
        id={id}
        value={typed ?? given}
        placeholder={placeholder}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
    </label>
  );
}
