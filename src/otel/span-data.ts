/** What OpenTelemetry takes as attributes, as far as it is used here. */
export type Attributes = Readonly<Record<string, string | number | boolean | string[]>>;

/** Something that happened while a span was open. Times are store time. */
export interface SpanEvent {
  readonly name: string;
  readonly at: number;
  readonly attributes?: Attributes;
}

/** A span of a run that is over. */
export interface SpanData {
  readonly kind: "run" | "step" | "effect" | "approval" | "wait";
  readonly name: string;
  readonly spanId: string;
  /** `null`: the run began the trace. */
  readonly parentId: string | null;
  readonly startAt: number;
  readonly endAt: number;
  readonly attributes: Attributes;
  readonly events: readonly SpanEvent[];
  /** Why it did not succeed. */
  readonly error: string | null;
}
