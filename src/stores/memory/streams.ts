import type { ChunkQuery, StreamChunk } from "../../core/streams.ts";
import { checkChunk } from "../chunk-fault.ts";
import { copyData, type Streams, type Tables } from "./tables.ts";

type RunStreams = Streams extends Map<string, infer R> ? R : never;

export function addChunks({ runs, streams }: Tables, chunks: readonly StreamChunk[]): void {
  for (const chunk of chunks) checkChunk(chunk);
  for (const chunk of chunks) {
    if (!runs.has(chunk.run)) continue;
    const own: RunStreams = streams.get(chunk.run) ?? new Map();
    streams.set(chunk.run, own);
    addChunk(own, chunk);
  }
}

/** What is there stays as it is. */
export function addChunk(streams: RunStreams, chunk: StreamChunk): void {
  const stream = streams.get(chunk.start) ?? new Map<number, StreamChunk>();
  streams.set(chunk.start, stream);
  if (!stream.has(chunk.n)) stream.set(chunk.n, Object.freeze({ ...chunk, data: copyData(chunk.data) }));
}

export function readChunks(streams: RunStreams | undefined, { of, limit }: ChunkQuery): StreamChunk[] {
  const found: StreamChunk[] = [];
  for (const { start, n } of of) {
    const stream = streams?.get(start);
    if (stream !== undefined && found.length < limit) found.push(...chunksFrom(stream, n, limit - found.length));
  }
  return found.map((chunk) => ({ ...chunk, data: copyData(chunk.data) }));
}

function chunksFrom(stream: ReadonlyMap<number, StreamChunk>, n: number, limit: number): StreamChunk[] {
  // Whoever reads a long stream asks for page after page: to look at all of it each time would take minutes.
  const page: StreamChunk[] = [];
  for (let next = stream.get(n); next !== undefined && page.length < limit; next = stream.get(next.n + 1))
    page.push(next);
  if (page.length === limit) return page;
  const behind = [...stream.values()].filter((chunk) => chunk.n >= n);
  return behind.sort((a, b) => a.n - b.n).slice(0, limit);
}
