// Streams in files
// `streams.jsonl` in a run's folder has a chunk a line, in the order in which they came. It is only ever added to.
//
//   SF1. A line that was cut off is ignored by readers, and removed before anything is added behind it.
//   SF2. Of two lines for one chunk the first counts.
//   SF3. It is synced where a stream closes, before the outcome that follows is written: another file, which would survive a power cut without it.
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import type { ChunkQuery, StreamChunk } from "../../core/streams.ts";
import { checkChunk } from "../chunk-fault.ts";
import { addChunk, readChunks } from "../memory/streams.ts";
import type { Directory } from "./directory.ts";
import { unavailable } from "./disk.ts";
import { readData, type WrittenData, writeData } from "./sealed-data.ts";

const STREAMS = "streams.jsonl";
/** Runs whose chunks are kept in memory, those that were read last: whoever reads along asks again and again. */
const MOST_KEPT = 8;
const NEWLINE = 10;

interface Line {
  readonly start: string;
  readonly n: number;
  readonly data: WrittenData;
}

/** What was read of a file so far. */
interface Kept {
  readonly file: number;
  readonly streams: Map<string, Map<number, StreamChunk>>;
  offset: number;
}

export class StreamFiles {
  readonly #directory: Directory;
  readonly #kept = new Map<string, Kept>();

  constructor(directory: Directory) {
    this.#directory = directory;
  }

  add(chunks: readonly StreamChunk[]): void {
    for (const chunk of chunks) checkChunk(chunk);
    const { tables } = this.#directory.own("What a step emits");
    for (const run of new Set(chunks.map((chunk) => chunk.run))) {
      if (!tables.runs.has(run)) continue;
      const own = chunks.filter((chunk) => chunk.run === run);
      const isClosing = own.some(({ data }) => data === null);
      this.#directory.disk.append(this.#file(run), own.map(lineOf).join(""), isClosing);
    }
  }

  read(run: string, query: ChunkQuery): StreamChunk[] {
    return readChunks(this.#streamsOf(run), query);
  }

  close(): void {
    this.#kept.clear();
  }

  #file(run: string): string {
    return join(this.#directory.folderOf(run), STREAMS);
  }

  /** Reads on from where the last reader was. */
  #streamsOf(run: string): Kept["streams"] | undefined {
    const found = statSync(this.#file(run), { throwIfNoEntry: false });
    const before = this.#kept.get(run);
    this.#kept.delete(run);
    if (found === undefined) return undefined;
    const isSame = before?.file === found.ino && before.offset <= found.size;
    const kept: Kept = isSame ? before : { file: found.ino, streams: new Map(), offset: 0 };
    this.#kept.set(run, kept);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MOST_KEPT && oldest !== undefined) this.#kept.delete(oldest);
    if (found.size > kept.offset) this.#readOn(run, kept, found.size);
    return kept.streams;
  }

  #readOn(run: string, kept: Kept, size: number): void {
    const bytes = bytesOf(this.#file(run), kept.offset, size);
    const end = bytes.lastIndexOf(NEWLINE) + 1;
    for (const text of bytes.subarray(0, end).toString("utf8").split("\n")) {
      const line = parsed(text);
      if (line !== null) addChunk(kept.streams, { run, start: line.start, n: line.n, data: readData(line.data) });
    }
    kept.offset += end;
  }
}

function lineOf({ start, n, data }: StreamChunk): string {
  return `${JSON.stringify({ start, n, data: writeData(data) } satisfies Line)}\n`;
}

/** `null` for what is no chunk, such as the rest of a line that was cut off. */
function parsed(text: string): Line | null {
  try {
    const line = JSON.parse(text) as Line;
    return typeof line.start === "string" && Number.isSafeInteger(line.n) ? line : null;
  } catch {
    return null;
  }
}

function bytesOf(path: string, from: number, to: number): Buffer {
  const bytes = Buffer.alloc(to - from);
  let file: number | null = null;
  try {
    file = openSync(path, "r");
    return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, from));
  } catch (error) {
    throw unavailable(error);
  } finally {
    if (file !== null) closeSync(file);
  }
}
