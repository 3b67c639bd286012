// Chunks of streams. They are written without a sync: what an outcome that follows them makes durable, it makes durable with them.
import type { ChunkQuery, StreamChunk } from "../../core/streams.ts";
import { checkChunk } from "../chunk-fault.ts";
import type { Connection } from "./connection.ts";
import { dataOf } from "./rows.ts";

const FIND = "select n from runs where id = ?";
const INSERT = "insert or ignore into chunks (run, start, n, data) values (?, ?, ?, ?)";
const READ = `select n, data from chunks where run = (select n from runs where id = ?) and start = ? and n >= ?
  order by n limit ?`;

export async function emit(db: Connection, chunks: readonly StreamChunk[]): Promise<void> {
  for (const chunk of chunks) checkChunk(chunk);
  await db.writeUnsynced(() => {
    const numbers = new Map<string, number | null>();
    for (const { run, start, n, data } of chunks) {
      if (!numbers.has(run)) numbers.set(run, (db.get(FIND, run)?.n as number | undefined) ?? null);
      const number = numbers.get(run) ?? null;
      if (number !== null) db.run(INSERT, number, start, n, data);
    }
  });
}

/** Must run inside one snapshot. */
export function readChunks(db: Connection, run: string, { of, limit }: ChunkQuery): StreamChunk[] {
  const found: StreamChunk[] = [];
  for (const { start, n } of of) {
    if (found.length >= limit) break;
    for (const row of db.all(READ, run, start, n, limit - found.length))
      found.push({ run, start, n: row.n as number, data: dataOf(row.data) });
  }
  return found;
}
