import { PawlError } from "../base/errors.ts";
import type { StreamChunk } from "../core/streams.ts";
import { assertStorable } from "./storable-text.ts";

/** Refuses a chunk that no store could give back as it was. */
export function checkChunk({ run, start, n, data }: StreamChunk): void {
  assertStorable(run, start, ...(typeof data === "string" ? [data] : []));
  if (Number.isSafeInteger(n) && n >= 0) return;
  throw new PawlError("invalid_argument", `A chunk of run ${run} has the number ${n}. Chunks are counted from 0.`, {
    fields: { run, n },
  });
}
