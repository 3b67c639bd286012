// The documents of an execution
// What stands in `request.json` and `checkpoint.json`: JSON for people, with a checksum for the machine. A document without one was edited by
// somebody who knew what they did, and is believed.
//
//   CD1. A checkpoint names its execution. One that belongs to another request than the one beside it is left over, and counts for nothing.
//   CD2. A delta has every slice that differs from the full checkpoint before it, so restoring takes those two and no chain.
import { gunzipSync, gzipSync } from "node:zlib";
import { decode, encode } from "../base/codec.ts";
import { messageOf, PawlError } from "../base/errors.ts";
import { isPlainRecord } from "../core/stable-digest.ts";
import { canonicalText, checksumOf } from "../stores/file/canonical.ts";

const FORMAT = 1;
/** What a compressed document may unfold to: a few bytes can ask for gigabytes. */
const MAX_UNPACKED_BYTES = 512 * 1024 * 1024;

/** A request as it is kept: with it an execution begins. */
export interface SavedRequest<T = unknown> {
  /** The id of the execution. Ids of later ones are greater. */
  readonly execution: string;
  readonly request: T;
  /** The instant, in milliseconds since 1970, after which no start works on it; `null`: none. */
  readonly deadline: number | null;
  readonly startedAt: number;
  /** Why it ended without a checkpoint to go on from. It is not taken up again by itself. */
  readonly failure?: string;
}

/** A session as it was at one moment of an execution. */
export interface Checkpoint {
  readonly execution: string;
  /** The how many-th start of the execution wrote it. */
  readonly attempt: number;
  /** Rises with every checkpoint of the execution, over all attempts. */
  readonly sequence: number;
  readonly savedAt: number;
  readonly deadline: number | null;
  /** The text of the session's snapshot. */
  readonly snapshot: string;
  /** The final answer. It is there before the marker is. */
  readonly result?: { readonly value: unknown };
}

type Json = Readonly<Record<string, unknown>>;

export function requestBytes(saved: SavedRequest): Uint8Array {
  const { execution, request, deadline, startedAt, failure } = saved;
  return sealed({
    format: FORMAT,
    execution,
    request: JSON.parse(encode(request, { path: "request" })),
    deadline: timeText(deadline),
    started_at: timeText(startedAt),
    ...(failure !== undefined && { failure }),
  });
}

export function readRequest(bytes: Uint8Array, file: string): SavedRequest {
  const { execution, request, deadline, started_at, failure } = opened(bytes, file);
  return {
    execution: textIn(execution, "execution", file),
    request: decode(JSON.stringify(request ?? null)),
    deadline: deadline === null ? null : timeIn(deadline, "deadline", file),
    startedAt: timeIn(started_at, "started_at", file),
    ...(typeof failure === "string" && { failure }),
  };
}

export function checkpointBytes(checkpoint: Checkpoint, compress: boolean): Uint8Array {
  return packed(sealed({ ...headOf(checkpoint), snapshot: JSON.parse(checkpoint.snapshot) as unknown }), compress);
}

export function readCheckpoint(bytes: Uint8Array, file: string): Checkpoint {
  const json = opened(bytes, file);
  if (!isPlainRecord(json["snapshot"])) throw unreadable(file, "it has no snapshot");
  return { ...readHead(json, file), snapshot: JSON.stringify(json["snapshot"]) };
}

/** What differs from `base`; `null` where the snapshots are not made of slices by name. */
export function deltaBytes(base: Checkpoint, checkpoint: Checkpoint, compress: boolean): Uint8Array | null {
  const before = slicesOf(JSON.parse(base.snapshot));
  const snapshot: unknown = JSON.parse(checkpoint.snapshot);
  const after = slicesOf(snapshot);
  if (before === null || after === null) return null;
  const texts = new Map(before.map((slice) => [slice.slice_type, canonicalText(slice)]));
  const changed = after.filter((slice) => texts.get(slice.slice_type) !== canonicalText(slice));
  const order = after.map(({ slice_type }) => slice_type);
  const isSameOrder = canonicalText(order) === canonicalText(before.map(({ slice_type }) => slice_type));
  const delta = {
    ...headOf(checkpoint),
    base: base.sequence,
    ...(!isSameOrder && { order }),
    snapshot: { ...(snapshot as object), slices: changed },
  };
  return packed(sealed(delta), compress);
}

/** The checkpoint that a delta leads to; `null`: it belongs to another base. */
export function applyDelta(base: Checkpoint, bytes: Uint8Array, file: string): Checkpoint | null {
  const json = opened(bytes, file);
  const head = readHead(json, file);
  if (head.execution !== base.execution || json["base"] !== base.sequence) return null;
  const before = slicesOf(JSON.parse(base.snapshot));
  const changed = slicesOf(json["snapshot"]);
  if (before === null || changed === null) throw unreadable(file, "it has no slices");
  const slices = new Map([...before, ...changed].map((slice) => [slice.slice_type, slice]));
  const order = Array.isArray(json["order"]) ? (json["order"] as unknown[]) : [...slices.keys()];
  const all = order.map((name) => slices.get(String(name)));
  return { ...head, snapshot: JSON.stringify({ ...(json["snapshot"] as object), slices: all }) };
}

/** The error for a document that cannot be used. */
export function unreadable(file: string, reason: string, cause?: unknown): PawlError {
  return new PawlError(
    "corrupt_value",
    `${file} cannot be used: ${reason}. Restore it from a copy, or abandon the execution. If you edited it, take its "checksum" out.`,
    { fields: { file, reason }, cause },
  );
}

function headOf({ execution, attempt, sequence, savedAt, deadline, result }: Checkpoint): Json {
  return {
    format: FORMAT,
    execution,
    attempt,
    sequence,
    saved_at: timeText(savedAt),
    deadline: timeText(deadline),
    ...(result !== undefined && { result: { value: JSON.parse(encode(result.value, { path: "result" })) as unknown } }),
  };
}

function readHead(json: Json, file: string): Omit<Checkpoint, "snapshot"> {
  const { execution, attempt, sequence, saved_at, deadline, result } = json;
  return {
    execution: textIn(execution, "execution", file),
    attempt: countIn(attempt, "attempt", file),
    sequence: countIn(sequence, "sequence", file),
    savedAt: timeIn(saved_at, "saved_at", file),
    deadline: deadline === null ? null : timeIn(deadline, "deadline", file),
    ...(isPlainRecord(result) && { result: { value: decode(JSON.stringify(result["value"] ?? null)) } }),
  };
}

function sealed(document: Json): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify({ ...document, checksum: checksumOf(document) }, null, 2)}\n`);
}

function opened(bytes: Uint8Array, file: string): Json {
  const json = parsed(bytes, file);
  if (!isPlainRecord(json)) throw unreadable(file, "it is not a JSON object");
  if (json["format"] !== FORMAT)
    throw unreadable(
      file,
      `its format is ${JSON.stringify(json["format"]) ?? "missing"}, and this release reads ${FORMAT}`,
    );
  if ("checksum" in json && json["checksum"] !== checksumOf(json))
    throw unreadable(file, "it is not what was written: its checksum differs");
  return json;
}

function parsed(bytes: Uint8Array, file: string): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(unpacked(bytes)));
  } catch (error) {
    // The parser's own message would quote the document, and with it whatever secret it holds.
    const reason = error instanceof SyntaxError ? "it is not JSON" : messageOf(error);
    throw unreadable(file, `${reason} (${bytes.length} bytes)`);
  }
}

function packed(bytes: Uint8Array, compress: boolean): Uint8Array {
  return compress ? new Uint8Array(gzipSync(bytes)) : bytes;
}

function unpacked(bytes: Uint8Array): Uint8Array {
  const isPacked = bytes[0] === 0x1f && bytes[1] === 0x8b;
  return isPacked ? gunzipSync(bytes, { maxOutputLength: MAX_UNPACKED_BYTES }) : bytes;
}

interface NamedSlice {
  readonly slice_type: string;
}

function slicesOf(snapshot: unknown): readonly NamedSlice[] | null {
  const slices = isPlainRecord(snapshot) ? snapshot["slices"] : undefined;
  if (!Array.isArray(slices)) return null;
  return slices.every((slice) => isPlainRecord(slice) && typeof slice["slice_type"] === "string")
    ? (slices as NamedSlice[])
    : null;
}

function timeText(time: number | null): string | null {
  return time === null ? null : new Date(time).toISOString();
}

function timeIn(value: unknown, field: string, file: string): number {
  const time = typeof value === "string" ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(time)) throw unreadable(file, `${field} is not a time`);
  return time;
}

function textIn(value: unknown, field: string, file: string): string {
  if (typeof value !== "string" || value === "") throw unreadable(file, `${field} is not text`);
  return value;
}

function countIn(value: unknown, field: string, file: string): number {
  if (!Number.isSafeInteger(value)) throw unreadable(file, `${field} is not a whole number`);
  return value as number;
}
