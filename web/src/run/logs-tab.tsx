// What a run has said: its notes, its latest progress, and what its steps emit while they run.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { StreamEvent } from "../../../src/client/stream.ts";
import { useEvents } from "../events.ts";
import { clockTime, oneLine } from "../format.ts";
import { Empty, Loaded } from "../notice.tsx";
import { Value } from "../value.tsx";
import type { RunView } from "./view.ts";

const SHOWN: ReadonlySet<string> = new Set(["cost", "refused", "patched"]);

export function LogsTab({ run, line }: RunView): JSX.Element {
  const streams = useStreams(run.id);
  return (
    <section aria-label="Logs">
      {run.progress !== undefined && (
        <section class="part">
          <h2>Latest progress</h2>
          <Value value={run.progress} name="progress" />
        </section>
      )}
      {streams.size > 0 && (
        <section class="part">
          <h2>What its steps emit</h2>
          <ol class="streams">
            {[...streams].map(([key, text]) => (
              <li key={key}>
                <span class="dim">{key}</span>
                <pre class="code">{text}</pre>
              </li>
            ))}
          </ol>
        </section>
      )}
      <Loaded of={line}>
        {({ notes }) => {
          const shown = notes.filter(({ kind }) => !SHOWN.has(kind));
          if (shown.length === 0)
            return (
              <Empty title="No notes.">
                <code>ctx.note(text)</code> writes a line here, <code>ctx.progress(value)</code> shows how far it is.
              </Empty>
            );
          return (
            <>
              <h2>Notes</h2>
              <ol class="log">
                {shown.map(({ seq, at, kind, text }) => (
                  <li key={seq}>
                    <span class="num dim">{clockTime(at)}</span>
                    <span>
                      {kind !== "note" && <span class="log-kind">{kind}</span>} {text}
                    </span>
                  </li>
                ))}
              </ol>
            </>
          );
        }}
      </Loaded>
    </section>
  );
}

/** What each step has emitted, as text; what an attempt that was given up has emitted goes again. */
function useStreams(run: string): ReadonlyMap<string, string> {
  const [streams, setStreams] = useState<ReadonlyMap<string, string>>(new Map());
  const take = (data: unknown) => {
    const event = data as StreamEvent;
    setStreams((before) => {
      const next = new Map(before);
      if (event.type === "retract" || (event.type === "chunk" && event.n === 0)) next.delete(event.key);
      if (event.type === "chunk") next.set(event.key, (next.get(event.key) ?? "") + textOf(event.value));
      return next;
    });
  };
  useEvents(`/api/runs/${encodeURIComponent(run)}/stream`, { stream: take });
  return streams;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : `${oneLine(value, 10_000)}\n`;
}
