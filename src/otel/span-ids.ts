// Ids of spans
// Made of what the journal says, so that every process that goes on with a run goes on with its trace. The API has no way to give a span its id: a
// generator of ids does, which is asked for one the moment that a span is made.
import { createHash, randomBytes } from "node:crypto";

/** What the SDK asks for ids. */
export interface IdGenerator {
  generateTraceId(): string;
  generateSpanId(): string;
}

/** A trace id as OpenTelemetry has it. */
export function traceIdOf(traceId: string): string {
  const plain = traceId.replaceAll("-", "").toLowerCase();
  return /^[0-9a-f]{32}$/.test(plain) && !/^0+$/.test(plain) ? plain : digest(traceId, 32);
}

export function runSpanId(run: string): string {
  return digest(`run ${run}`, 16);
}

/** `start` is the checksum of the entry that began it. */
export function callSpanId(run: string, start: string): string {
  return digest(`call ${run} ${start}`, 16);
}

function digest(text: string, length: number): string {
  return createHash("sha256").update(text).digest("hex").slice(0, length);
}

let wanted: { readonly traceId: string; readonly spanId: string } | null = null;

/** Makes a span with these ids, where the SDK uses `pawlIds`. */
export function withIds<T>(ids: { readonly traceId: string; readonly spanId: string }, make: () => T): T {
  wanted = ids;
  try {
    return make();
  } finally {
    wanted = null;
  }
}

/**
 * Gives spans of runs the ids that every process gives them, and all others random ones: `new BasicTracerProvider({ idGenerator: pawlIds, … })`.
 * Without it the spans of a run share their trace, and lie beside each other in it.
 */
export const pawlIds: IdGenerator = {
  generateTraceId: () => wanted?.traceId ?? randomBytes(16).toString("hex"),
  generateSpanId: () => wanted?.spanId ?? randomBytes(8).toString("hex"),
};
