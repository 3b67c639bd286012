// The timeline: a row for each call, drawn to time. It can be zoomed by keys, buttons and the wheel with Ctrl, and moved by dragging.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { now } from "../clock.ts";
import { duration, plural } from "../format.ts";
import { useKeys } from "../keys.ts";
import type { WireTimeline } from "../wire.ts";
import { rowsOf, type Segment, type Span, spanOf, type TimelineRow, ticksOf } from "./timeline-rows.ts";

const ROW = 28;
const AXIS = 24;
const BAR = 12;
const LEAST_WIDTH = 3;
const FIRST_ROWS = 200;
/** Room at the right, so that what goes on now does not end at the border. */
const AIR = 12;
/** A time that would be cut off is not written. */
const TICK_ROOM = 52;

interface TimelineProps {
  readonly line: WireTimeline;
  readonly chosen: number | null;
  choose(seq: number | null): void;
}

export function TimelineChart({ line, chosen, choose }: TimelineProps): JSX.Element {
  const all = rowsOf(line);
  const [most, setMost] = useState(FIRST_ROWS);
  const rows = all.slice(0, most);
  const isLive = line.endedAt === null;
  const whole = spanOf(line, all, isLive ? now.value : 0);
  const zoom = useZoom(whole);
  const [width, frame] = useWidth();
  useDrag(frame, zoom, width);
  useKeys({
    "+": { says: "Zoom in", act: () => zoom.by(0.5) },
    "-": { says: "Zoom out", act: () => zoom.by(2) },
    "0": { says: "Whole run", act: zoom.reset },
    ArrowLeft: { says: "Earlier", act: () => zoom.move(-0.25) },
    ArrowRight: { says: "Later", act: () => zoom.move(0.25) },
    j: { says: "Next call", act: () => choose(neighbour(rows, chosen, 1)) },
    k: { says: "Call before", act: () => choose(neighbour(rows, chosen, -1)) },
    Escape: { says: "Close the call", act: () => choose(null) },
  });
  return (
    <section class="timeline" aria-label="Timeline">
      <div class="timeline-tools">
        <span class="dim">
          {plural(all.length, "call")} in <span class="num">{duration(whole.to - whole.from)}</span>
        </span>
        <Legend />
        <span class="zoom">
          <button type="button" aria-label="Zoom out" onClick={() => zoom.by(2)} disabled={!zoom.isZoomed}>
            −
          </button>
          <button type="button" aria-label="Zoom in" onClick={() => zoom.by(0.5)}>
            +
          </button>
          <button type="button" onClick={zoom.reset} disabled={!zoom.isZoomed}>
            Fit
          </button>
        </span>
      </div>
      <div class="timeline-body">
        <ol class="timeline-labels">
          {rows.map((row) => (
            <li key={row.seq}>
              <Label row={row} isChosen={row.seq === chosen} choose={choose} />
            </li>
          ))}
        </ol>
        <div class="timeline-frame" ref={frame}>
          {width > 0 && (
            <Chart rows={rows} span={zoom.span} start={whole.from} width={width} chosen={chosen} choose={choose} />
          )}
        </div>
      </div>
      {all.length > rows.length && (
        <button type="button" onClick={() => setMost(most + 1000)}>
          {plural(all.length - rows.length, "more call")}
        </button>
      )}
    </section>
  );
}

function neighbour(rows: readonly TimelineRow[], chosen: number | null, by: number): number | null {
  const at = rows.findIndex(({ seq }) => seq === chosen);
  const next = chosen === null ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + by, 0), rows.length - 1);
  const seq = rows[next]?.seq ?? null;
  document.getElementById(`call-${seq}`)?.scrollIntoView({ block: "nearest" });
  return seq;
}

function Legend(): JSX.Element {
  return (
    <span class="legend" aria-hidden="true">
      <span class="legend-work">works</span>
      <span class="legend-wait">waits</span>
      <span class="legend-pause">before the next attempt</span>
    </span>
  );
}

function Label({
  row,
  isChosen,
  choose,
}: { readonly row: TimelineRow; readonly isChosen: boolean } & Pick<TimelineProps, "choose">): JSX.Element {
  const { seq, kind, label, status } = row;
  return (
    <button
      type="button"
      id={`call-${seq}`}
      class="timeline-label"
      aria-pressed={isChosen}
      aria-label={`${kind} ${label}, ${status}`}
      title={label}
      onClick={() => choose(isChosen ? null : seq)}
    >
      <span class="timeline-kind">{kind}</span>
      <span class="timeline-name">{label}</span>
    </button>
  );
}

interface ChartProps extends Pick<TimelineProps, "chosen" | "choose"> {
  readonly rows: readonly TimelineRow[];
  readonly span: Span;
  readonly start: number;
  readonly width: number;
}

function Chart({ rows, span, start, width, chosen, choose }: ChartProps): JSX.Element {
  const height = AXIS + rows.length * ROW;
  const x = (time: number) => ((time - span.from) / (span.to - span.from)) * (width - AIR);
  const ticks = ticksOf(span, start, Math.max(2, Math.floor(width / 96)));
  return (
    <svg class="chart" width={width} height={height} role="img" aria-label={`${plural(rows.length, "call")} over time`}>
      <Hatch />
      {ticks.map((tick) => (
        <g key={tick} transform={`translate(${x(start + tick)} 0)`}>
          <line class="tick" x1={0} x2={0} y1={AXIS - 4} y2={height} />
          {x(start + tick) < width - TICK_ROOM && (
            <text class="tick-text" x={3} y={12}>
              {tick === 0 ? "start" : `+${duration(tick)}`}
            </text>
          )}
        </g>
      ))}
      {rows.map((row, i) => (
        // biome-ignore lint/a11y/noStaticElementInteractions: the labels are what keys and readers use.
        <g
          key={row.seq}
          transform={`translate(0 ${AXIS + i * ROW})`}
          onClick={() => choose(row.seq === chosen ? null : row.seq)}
        >
          <rect class={row.seq === chosen ? "row-back is-chosen" : "row-back"} width={width} height={ROW} />
          {row.segments.map((segment) => (
            <Bar key={segment.from} segment={segment} x={x} width={width} />
          ))}
        </g>
      ))}
    </svg>
  );
}

/** Waits are hatched, so that work and waiting differ without their colours. */
function Hatch(): JSX.Element {
  return (
    <defs>
      <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect class="hatch-line" width="2" height="6" />
      </pattern>
    </defs>
  );
}

function Bar({
  segment,
  x,
  width,
}: {
  readonly segment: Segment;
  x(time: number): number;
  readonly width: number;
}): JSX.Element | null {
  const { kind, tone, from, to, says } = segment;
  const end = to ?? now.value;
  const left = Math.max(-10, x(from));
  const right = Math.min(width + 10, Math.max(x(end), x(from) + LEAST_WIDTH));
  if (right < 0 || left > width) return null;
  const title = <title>{`${says}, ${duration(end - from)}`}</title>;
  const y = (ROW - BAR) / 2;
  if (kind === "pause")
    return (
      <g class={`bar bar-pause tone-${tone}`}>
        {title}
        <line x1={left} x2={right} y1={ROW / 2} y2={ROW / 2} />
      </g>
    );
  const shape = { x: left, y, width: right - left, height: BAR, rx: 2.5 };
  return (
    <g class={`bar bar-${kind} tone-${tone}${to === null ? " is-open" : ""}`}>
      {title}
      <rect class="bar-fill" {...shape} />
      {kind === "wait" && <rect class="bar-hatch" {...shape} />}
    </g>
  );
}

interface Zoom {
  readonly span: Span;
  readonly isZoomed: boolean;
  /** Smaller than one shows less time; `at` is the place that stays, from 0 to 1. */
  by(factor: number, at?: number): void;
  /** By a part of what is shown. */
  move(part: number): void;
  reset(): void;
}

/** The part that is shown; `null` is the whole, and grows with it. */
function useZoom(whole: Span): Zoom {
  const [part, setPart] = useState<Span | null>(null);
  const span = part ?? whole;
  const size = span.to - span.from;
  const show = (from: number, length: number) => {
    const kept = Math.min(Math.max(length, 5), whole.to - whole.from);
    if (kept >= whole.to - whole.from) return setPart(null);
    const begin = Math.min(Math.max(from, whole.from), whole.to - kept);
    setPart({ from: begin, to: begin + kept });
  };
  return {
    span,
    isZoomed: part !== null,
    by: (factor, at = 0.5) => show(span.from + size * at * (1 - factor), size * factor),
    move: (by) => show(span.from + size * by, size),
    reset: () => setPart(null),
  };
}

function useWidth(): [number, { current: HTMLDivElement | null }] {
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = frame.current;
    if (element === null) return undefined;
    const measure = () => setWidth(Math.floor(element.clientWidth));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [width, frame];
}

function useDrag(frame: { readonly current: HTMLDivElement | null }, zoom: Zoom, width: number): void {
  const latest = useRef({ zoom, width });
  latest.current = { zoom, width };
  useEffect(() => {
    const element = frame.current;
    if (element === null) return undefined;
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const { left } = element.getBoundingClientRect();
      latest.current.zoom.by(event.deltaY > 0 ? 1.25 : 0.8, (event.clientX - left) / latest.current.width);
    };
    let last: number | null = null;
    const down = (event: PointerEvent) => {
      last = event.pointerType === "mouse" ? event.clientX : null;
    };
    const drag = (event: PointerEvent) => {
      if (last === null || event.buttons === 0) return;
      latest.current.zoom.move((last - event.clientX) / latest.current.width);
      last = event.clientX;
    };
    element.addEventListener("wheel", wheel, { passive: false });
    element.addEventListener("pointerdown", down);
    element.addEventListener("pointermove", drag);
    return () => {
      element.removeEventListener("wheel", wheel);
      element.removeEventListener("pointerdown", down);
      element.removeEventListener("pointermove", drag);
    };
  }, [frame]);
}
