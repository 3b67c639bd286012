// A timeline as rows to draw: each call of the run is a row, each attempt, wait or pause before the next attempt a segment of it.
import type { TimelineAttempt, TimelineChild, TimelineStep, TimelineWait } from "../../../src/client/timeline.ts";
import { errorText } from "../format.ts";
import { type Tone, toneOfWord } from "../status.tsx";
import type { WireTimeline } from "../wire.ts";

export interface Segment {
  readonly kind: "work" | "wait" | "pause";
  readonly tone: Tone;
  readonly from: number;
  /** `null`: it goes on. */
  readonly to: number | null;
  /** For whoever points at it. */
  readonly says: string;
}

export type Call = TimelineStep | TimelineWait | TimelineChild;

export interface TimelineRow {
  readonly seq: number;
  readonly kind: "step" | "sleep" | "signal" | "approval" | "callback" | "child";
  readonly label: string;
  readonly status: string;
  readonly segments: readonly Segment[];
  readonly call: Call;
}

export function rowsOf({ steps, waits, children, parked }: WireTimeline): TimelineRow[] {
  const rows = [...steps.map(stepRow), ...waits.map(waitRow), ...children.map(childRow)].sort((a, b) => a.seq - b.seq);
  return parked === null ? rows : rows.map(stopped);
}

/** A parked run does nothing: what it had begun waits for a person. */
function stopped(row: TimelineRow): TimelineRow {
  const segments = row.segments.map((segment): Segment => {
    if (segment.to !== null || segment.kind !== "work") return segment;
    return { ...segment, kind: "wait", tone: "parked", says: "stopped: a person decides" };
  });
  return { ...row, segments, status: row.status === "running" ? "stopped" : row.status };
}

function stepRow(step: TimelineStep): TimelineRow {
  const segments = step.attempts.flatMap((attempt, i) => attemptSegments(attempt, step.attempts[i + 1], step));
  return { seq: step.seq, kind: "step", label: step.key, status: step.status, segments, call: step };
}

const ATTEMPT_TONES: Readonly<Record<TimelineAttempt["outcome"], Tone>> = {
  running: "running",
  completed: "succeeded",
  failed: "failed",
  interrupted: "parked",
  abandoned: "cancelled",
};

function attemptSegments(attempt: TimelineAttempt, next: TimelineAttempt | undefined, step: TimelineStep): Segment[] {
  const { outcome, startedAt, endedAt, error, retryAt } = attempt;
  // Of one that a crash interrupted, only the next beginning is known.
  const to = endedAt ?? (outcome === "running" ? null : (next?.startedAt ?? step.endedAt ?? startedAt));
  const why = error === undefined ? "" : `: ${errorText(error)}`;
  const work: Segment = {
    kind: "work",
    tone: ATTEMPT_TONES[outcome],
    from: startedAt,
    to,
    says: `attempt ${attempt.attempt} ${outcome}${why}`,
  };
  if (retryAt === undefined || endedAt === null) return [work];
  const pause: Segment = {
    kind: "pause",
    tone: "waiting",
    from: endedAt,
    to: next?.startedAt ?? (step.status === "retrying" ? null : retryAt),
    says: `waits for attempt ${attempt.attempt + 1}`,
  };
  return [work, pause];
}

function waitRow(wait: TimelineWait): TimelineRow {
  const { seq, key, kind, status, startedAt, endedAt } = wait;
  const tone = status === "open" ? "waiting" : toneOfWord(status);
  const segment: Segment = { kind: "wait", tone, from: startedAt, to: endedAt, says: `${kind} ${status}` };
  return { seq, kind: kind === "timer" ? "sleep" : kind, label: key, status, segments: [segment], call: wait };
}

function childRow(child: TimelineChild): TimelineRow {
  const { seq, key, status, startedAt, endedAt, detached } = child;
  const segment: Segment = {
    kind: "wait",
    tone: status === "open" ? "running" : toneOfWord(status),
    from: startedAt,
    to: detached ? startedAt : endedAt,
    says: `child run ${status}`,
  };
  return { seq, kind: "child", label: key, status, segments: [segment], call: child };
}

export interface Span {
  readonly from: number;
  readonly to: number;
}

/** All that there is to see: a run that goes on ends now. */
export function spanOf({ startedAt, endedAt }: WireTimeline, rows: readonly TimelineRow[], now: number): Span {
  const from = Math.min(startedAt ?? now, ...rows.map((row) => row.call.startedAt));
  const ends = rows.flatMap((row) => row.segments.map(({ to }) => to ?? now));
  const to = Math.max(endedAt ?? now, ...ends);
  return { from, to: Math.max(to, from + 10) };
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000];
const LONG_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10_080, 43_200].map((min) => min * 60_000);

/** Round times for the axis, counted from the run's beginning. */
export function ticksOf({ from, to }: Span, start: number, most: number): number[] {
  const step = [...STEPS, ...LONG_STEPS].find((one) => (to - from) / one <= most) ?? (to - from) / most;
  const first = Math.ceil((from - start) / step);
  const count = Math.floor((to - start) / step) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, i) => (first + i) * step);
}
