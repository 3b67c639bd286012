// The journal, entry by entry: everything that is known about a run is in it.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get, messageOf } from "../api.ts";
import { fullTime, msOf, oneLine, plural } from "../format.ts";
import { Empty } from "../notice.tsx";
import { may } from "../session.ts";
import { Value } from "../value.tsx";
import type { WireEntry, WireJournal } from "../wire.ts";
import type { RunView } from "./view.ts";

const PAGE = 200;

export function JournalTab({ run, change, ask }: RunView): JSX.Element {
  const journal = useJournal(run.id, change);
  const [text, setText] = useState("");
  const [group, setGroup] = useState("");
  const shown = journal.entries.filter((entry) => fits(entry, text.toLowerCase(), group));
  const groups = [...new Set(journal.entries.map(({ type }) => groupOf(type)))].sort();
  return (
    <section aria-label="Journal">
      <div class="filters">
        <label class="field field-search">
          <span>Find</span>
          <input
            type="search"
            value={text}
            placeholder="In types, keys and values"
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <label class="field">
          <span>Kind</span>
          <select value={group} onChange={(event) => setGroup(event.currentTarget.value)}>
            <option value="">All</option>
            {groups.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </label>
      </div>
      {journal.error !== null && (
        <p class="form-error" role="alert">
          {journal.error}
        </p>
      )}
      <ol class="journal">
        {shown.map((entry) => (
          <li key={entry.seq}>
            <EntryLine
              entry={entry}
              start={msOf(run.createdAt) ?? 0}
              fork={may("operator") ? () => ask({ kind: "fork", at: entry.seq }) : null}
            />
          </li>
        ))}
      </ol>
      {shown.length === 0 && journal.isLoaded && (
        <Empty title="No entry fits.">Look for something else, or choose another kind.</Empty>
      )}
      <div class="list-foot">
        <span class="dim">
          {plural(shown.length, "entry", "entries")}
          {shown.length < journal.entries.length && ` of ${journal.entries.length} loaded`}
        </span>
        {journal.next !== null && (
          <button type="button" onClick={() => void journal.more()}>
            Show more
          </button>
        )}
      </div>
    </section>
  );
}

interface Journal {
  readonly entries: readonly WireEntry[];
  readonly next: number | null;
  readonly isLoaded: boolean;
  readonly error: string | null;
  more(): Promise<void>;
}

function useJournal(run: string, change: number): Journal {
  const [entries, setEntries] = useState<readonly WireEntry[]>([]);
  const [next, setNext] = useState<number | null>(0);
  const [isLoaded, setLoaded] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const read = async (from: number) => {
    try {
      const page = await get<WireJournal>(`/api/runs/${encodeURIComponent(run)}/journal?from=${from}&limit=${PAGE}`);
      setEntries((before) => [...before.filter(({ seq }) => seq < from), ...page.entries]);
      setNext(page.next);
      setLoaded(true);
      setError(null);
    } catch (thrown) {
      setError(messageOf(thrown));
    }
  };
  const end = (entries.at(-1)?.seq ?? -1) + 1;
  // New entries are read as they come; while there are pages in between, whoever reads asks for them.
  useEffect(() => {
    if (!isLoaded || next === null) void read(end);
  }, [run, change]);
  return { entries, next, isLoaded, error, more: () => read(end) };
}

function groupOf(type: string): string {
  return type.split(".")[0] ?? type;
}

function fits(entry: WireEntry, text: string, group: string): boolean {
  if (group !== "" && groupOf(entry.type) !== group) return false;
  if (text === "") return true;
  return `${entry.type} ${entry.key ?? ""} ${JSON.stringify(entry.payload) ?? ""}`.toLowerCase().includes(text);
}

interface EntryLineProps {
  readonly entry: WireEntry;
  readonly start: number;
  readonly fork: (() => void) | null;
}

function EntryLine({ entry, start, fork }: EntryLineProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const { seq, at, type, key, payload } = entry;
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="entry-line">
        <span class="num dim entry-seq">{seq}</span>
        <span class="num dim entry-at" title={fullTime(at)}>
          +{(Math.max(0, (msOf(at) ?? start) - start) / 1000).toFixed(3)} s
        </span>
        <span class={`entry-type entry-${groupOf(type)}`}>{type}</span>
        <span class="entry-key">{key}</span>
        <span class="entry-payload dim">{payload === null ? "" : oneLine(payload, 160)}</span>
      </summary>
      {isOpen && (
        <div class="entry-body">
          <p class="dim">{fullTime(at)}</p>
          <Value value={payload} name={`entry ${seq}`} />
          {fork !== null && seq > 0 && (
            <button type="button" onClick={fork}>
              Fork from here…
            </button>
          )}
        </div>
      )}
    </details>
  );
}
