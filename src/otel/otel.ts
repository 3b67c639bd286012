// Telemetry
// Makes OpenTelemetry spans of what runs do. What a process has not seen of a run, it reads from the journal first, and tells only what follows.
import {
  type Context,
  context,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type {
  Committed,
  ObservedAttempt,
  ObservedEngine,
  ObservedEntry,
  ObservedRun,
  Observer,
} from "../core/observer.ts";
import { isOwnWorkflow } from "../core/own-workflows.ts";
import { RunTrace } from "./run-trace.ts";
import type { SpanData } from "./span-data.ts";
import { callSpanId, traceIdOf, withIds } from "./span-ids.ts";

export interface OtelOptions {
  /** Default: that of the global provider, named "pawl". */
  readonly tracer?: Tracer;
  /** Whether what models and tools have said is in their spans. Default false. */
  readonly content?: boolean;
}

/** Runs whose traces are kept in memory; those that are needed again are read again. */
const MOST_RUNS = 10_000;

/**
 * Watches an engine and makes a trace of each run, the same one over restarts: `Pawl.open({ observers: [otel()] })`. Give your tracer provider `pawlIds` as
 * its generator of ids.
 */
export function otel(options: OtelOptions = {}): Observer {
  const { content = false, tracer = trace.getTracer("pawl") } = options;
  const runs = new Map<string, WatchedRun>();
  let engine: ObservedEngine | null = null;
  const tell = (run: ObservedRun, spans: readonly SpanData[]) => {
    for (const span of spans) make(tracer, traceIdOf(run.traceId), span);
  };
  return {
    watch(given) {
      engine = given;
    },
    committed({ run, entries, open }: Committed) {
      if (isOwnWorkflow(run.workflow)) return;
      const watched = runs.get(run.id) ?? new WatchedRun(run, content, (spans) => tell(run, spans));
      // The one that was needed last goes last.
      runs.delete(run.id);
      runs.set(run.id, watched);
      watched.take(
        entries.map((entry) => ({ ...open(entry), hash: entry.hash })),
        engine,
      );
      if (watched.hasEnded) runs.delete(run.id);
      for (const [id, one] of runs) {
        if (runs.size <= MOST_RUNS) break;
        if (!one.isReading) runs.delete(id);
      }
    },
    around: (attempt, call) => context.with(contextOf(attempt), call),
    async flush() {
      await Promise.all([...runs.values()].map((watched) => watched.settled()));
    },
  };
}

class WatchedRun {
  readonly #trace: RunTrace;
  readonly #run: string;
  readonly #tell: (spans: readonly SpanData[]) => void;
  /** The position after the last entry that was taken. */
  #next = 0;
  #waiting: ObservedEntry[] = [];
  #reading: Promise<void> | null = null;
  hasEnded = false;

  constructor(run: ObservedRun, hasContent: boolean, tell: (spans: readonly SpanData[]) => void) {
    this.#run = run.id;
    this.#trace = new RunTrace(run, hasContent);
    this.#tell = tell;
  }

  get isReading(): boolean {
    return this.#reading !== null;
  }

  async settled(): Promise<void> {
    await this.#reading;
  }

  take(entries: readonly ObservedEntry[], engine: ObservedEngine | null): void {
    this.#waiting.push(...entries);
    const first = this.#waiting[0]?.seq ?? 0;
    if (this.#reading !== null) return;
    if (first > this.#next && engine !== null) {
      this.#reading = this.#read(engine, first).finally(() => {
        this.#reading = null;
        this.#drain();
      });
    } else this.#drain();
  }

  /** What others have told of it before, or nobody could: it is read, and not told. */
  async #read(engine: ObservedEngine, until: number): Promise<void> {
    const before = await engine.journal(this.#run).catch(() => []);
    for (const entry of before) {
      if (entry.seq < this.#next || entry.seq >= until) continue;
      this.#trace.take(entry);
      this.#next = entry.seq + 1;
    }
  }

  #drain(): void {
    for (const entry of this.#waiting.splice(0)) {
      if (entry.seq < this.#next) continue;
      this.#next = entry.seq + 1;
      const spans = this.#trace.take(entry);
      this.hasEnded ||= spans.some(({ kind }) => kind === "run");
      this.#tell(spans);
    }
  }
}

/** What runs inside a step belongs to its attempt, whose span is made when that is over. */
function contextOf({ run, start }: ObservedAttempt): Context {
  return contextUnder(context.active(), traceIdOf(run.traceId), callSpanId(run.id, start));
}

function contextUnder(around: Context, traceId: string, spanId: string): Context {
  return trace.setSpanContext(around, { traceId, spanId, traceFlags: TraceFlags.SAMPLED, isRemote: true });
}

const KINDS: Readonly<Record<SpanData["kind"], SpanKind>> = {
  run: SpanKind.INTERNAL,
  step: SpanKind.INTERNAL,
  effect: SpanKind.CLIENT,
  approval: SpanKind.INTERNAL,
  wait: SpanKind.INTERNAL,
};

function make(tracer: Tracer, traceId: string, data: SpanData): void {
  const { name, spanId, parentId, startAt, endAt, attributes, events, error, kind } = data;
  const parent = parentId === null ? ROOT_CONTEXT : contextUnder(ROOT_CONTEXT, traceId, parentId);
  const about = {
    kind: KINDS[kind],
    startTime: timeOf(startAt),
    attributes: { ...attributes, "pawl.span.kind": kind },
  };
  const span = withIds({ traceId, spanId }, () => tracer.startSpan(name, about, parent));
  for (const event of events) span.addEvent(event.name, event.attributes ?? {}, timeOf(event.at));
  if (error !== null) span.setStatus({ code: SpanStatusCode.ERROR, message: error });
  span.end(timeOf(endAt));
}

/** Seconds and nanoseconds: a plain number from before this process began would be taken for something else. */
function timeOf(ms: number): [number, number] {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
}
