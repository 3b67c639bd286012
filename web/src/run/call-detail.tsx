// One call of the timeline, in full: its attempts, what went in, what came out, and what can be done from there.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { clockTime, duration, errorText, plural } from "../format.ts";
import { may } from "../session.ts";
import { Word } from "../status.tsx";
import { Took } from "../time.tsx";
import { Value } from "../value.tsx";
import type { WireTimeline } from "../wire.ts";
import type { RunAction } from "./actions.tsx";
import { rowsOf, type TimelineRow } from "./timeline-rows.ts";

interface CallDetailProps {
  readonly line: WireTimeline;
  readonly seq: number;
  ask(action: RunAction): void;
  onClose(): void;
}

export function CallDetail({ line, seq, ask, onClose }: CallDetailProps): JSX.Element | null {
  const row = rowsOf(line).find((one) => one.seq === seq);
  if (row === undefined) return null;
  const { call, kind, label, status } = row;
  return (
    <aside class="detail" aria-label={`${kind} ${label}`}>
      <div class="detail-head">
        <h2>{label}</h2>
        <Word word={status} />
        <button type="button" class="link detail-close" aria-label="Close" onClick={onClose}>
          ✕
        </button>
      </div>
      <dl class="facts">
        <div>
          <dt>{kind}</dt>
          <dd>entry {seq}</dd>
        </div>
        <div>
          <dt>Began</dt>
          <dd>{clockTime(call.startedAt)}</dd>
        </div>
        <div>
          <dt>Took</dt>
          <dd>
            <Took from={call.startedAt} to={call.endedAt} />
          </dd>
        </div>
      </dl>
      <What row={row} />
      {may("operator") && kind === "step" && <Actions line={line} row={row} ask={ask} />}
    </aside>
  );
}

function Actions({
  line,
  row,
  ask,
}: Pick<CallDetailProps, "line" | "ask"> & { readonly row: TimelineRow }): JSX.Element {
  const hasStopped = line.status === "failed" || line.status === "cancelled";
  return (
    <div class="detail-actions">
      {hasStopped && (
        <button type="button" onClick={() => ask({ kind: "retry", from: row.label })}>
          Retry from this step…
        </button>
      )}
      <button type="button" onClick={() => ask({ kind: "fork", at: row.label })}>
        Fork before it…
      </button>
    </div>
  );
}

function What({ row }: { readonly row: TimelineRow }): JSX.Element {
  const { call } = row;
  if ("attempts" in call)
    return (
      <>
        {(call.attempts.length > 1 || call.attempts[0]?.error !== undefined) && <Attempts attempts={call.attempts} />}
        {call.saved !== undefined && (
          <p class="dim">
            Saved {call.saved.count} checkpoints, the last at {clockTime(call.saved.at)}.
          </p>
        )}
        <Part name="Input" value={call.input} />
        <Part name="Output" value={call.output} />
        <Part name="Error" value={call.error} />
      </>
    );
  if ("child" in call)
    return (
      <>
        <p>
          Child run of {call.workflow}: <a href={`/runs/${encodeURIComponent(call.child)}`}>{call.child}</a>
        </p>
        <Part name={call.status === "succeeded" ? "Output" : "Error"} value={call.value} />
      </>
    );
  return (
    <>
      {call.due !== null && <p>Due {clockTime(call.due)}.</p>}
      <Part name="What it brought" value={call.payload} />
    </>
  );
}

type Attempts = Extract<TimelineRow["call"], { readonly attempts: unknown }>["attempts"];

/** The last ones say most; the others are shown to whoever asks. */
const LAST_ATTEMPTS = 5;

function Attempts({ attempts }: { readonly attempts: Attempts }): JSX.Element {
  const [isAll, setAll] = useState(false);
  const shown = isAll ? attempts : attempts.slice(-LAST_ATTEMPTS);
  return (
    <ol class="attempts">
      {shown.length < attempts.length && (
        <li>
          <button type="button" onClick={() => setAll(true)}>
            {plural(attempts.length - shown.length, "attempt")} before these
          </button>
        </li>
      )}
      {shown.map(({ attempt, startedAt, endedAt, outcome, error, retryAt }) => (
        <li key={attempt}>
          <span class="attempt-line">
            <span class="num">{attempt}</span> <Word word={outcome} />{" "}
            <span class="dim">
              {clockTime(startedAt)}
              {endedAt !== null && `, ${duration(endedAt - startedAt)}`}
            </span>
          </span>
          {error !== undefined && <span class="attempt-error">{errorText(error)}</span>}
          {retryAt !== undefined && endedAt !== null && (
            <span class="dim">Next attempt after {duration(retryAt - endedAt)}</span>
          )}
        </li>
      ))}
    </ol>
  );
}

function Part({ name, value }: { readonly name: string; readonly value: unknown }): JSX.Element | null {
  if (value === undefined) return null;
  return (
    <section class="part">
      <h3>{name}</h3>
      <Value value={value} name={name.toLowerCase()} />
    </section>
  );
}
