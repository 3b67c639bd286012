import type { ChunkQuery, StreamChunk } from "../../core/streams.ts";
import { checkChunk } from "../chunk-fault.ts";
import { numbersText, textsText } from "./array-text.ts";
import type { PgValue } from "./driver.ts";
import type { Link } from "./link.ts";
import { dataOf } from "./rows.ts";

export async function emit(link: Link, s: string, chunks: readonly StreamChunk[]): Promise<void> {
  for (const chunk of chunks) checkChunk(chunk);
  const texts = chunks.map(({ data }) => (typeof data === "string" ? data : null));
  const bytes = chunks.map(({ data }) => (typeof data === "string" ? null : data));
  const values: PgValue[] = [
    textsText(chunks.map(({ run }) => run)),
    textsText(chunks.map(({ start }) => start)),
    numbersText(chunks.map(({ n }) => n)),
    textsText(texts),
    bytes.some((one) => one !== null) ? bytes : null,
  ];
  const size = chunks.reduce((sum, { data }) => sum + (data?.length ?? 0), 0);
  await link.query(`select ${s}.emit_1($1, $2, $3, $4, $5)`, values, size);
}

export async function readChunks(
  link: Link,
  s: string,
  run: string,
  { of, limit }: ChunkQuery,
): Promise<StreamChunk[]> {
  const rows = await link.read(
    // With a limit for each stream, or every page would read and sort all that is behind it.
    `select found.start, found.n, found.data, found.bytes
     from unnest($2::text[], $3::bigint[]) with ordinality as asked (start, n, i)
     cross join lateral (
       select chunks.start, chunks.n, chunks.data, chunks.bytes from ${s}.chunks
       where chunks.run = (select n from ${s}.runs where id = $1) and chunks.start = asked.start and chunks.n >= asked.n
       order by chunks.n limit $4
     ) as found
     order by asked.i, found.n limit $4`,
    [run, textsText(of.map(({ start }) => start)), numbersText(of.map(({ n }) => n)), limit],
  );
  return rows.map((row) => ({ run, start: row["start"] as string, n: row["n"] as number, data: dataOf(row) }));
}
