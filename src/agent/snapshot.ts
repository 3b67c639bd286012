// Snapshots
// The state of a session as a value, and as text. The same state always gives the same bytes: slices, tags and links are sorted, and so are the
// properties of every value. There are no events in it, no reducers and no observers: whoever restores it brings those along.

import { encode } from "../base/codec.ts";
import { readTagged } from "../base/codec-reader.ts";
import { messageOf, PawlError } from "../base/errors.ts";
import { isPlainRecord } from "../core/stable-digest.ts";
import { frozen } from "./sealed.ts";
import type { SlicePolicy } from "./slice.ts";

/** The version of the envelope that this release writes. */
const ENVELOPE = 1;

export interface SliceSnapshot {
  readonly slice: string;
  /** The version of the items' shape. */
  readonly version: number;
  readonly items: readonly unknown[];
}

export interface Snapshot {
  readonly id: string;
  /** When the session was created, in milliseconds since 1970. */
  readonly createdAt: number;
  readonly tags: readonly string[];
  readonly parentId: string | null;
  readonly childrenIds: readonly string[];
  readonly slices: readonly SliceSnapshot[];
  /** The policy of every slice of the session, those that are not in the snapshot included. */
  readonly policies: Readonly<Record<string, SlicePolicy>>;
}

/** Why a snapshot cannot be restored, in `fields.reason`. */
export type RestoreReason = "bad_envelope" | "bad_value" | "slice_version" | "unknown_type";

/** The error for it. */
export function cannotRestore(
  reason: RestoreReason,
  message: string,
  fields: Readonly<Record<string, unknown>> = {},
  cause?: unknown,
): PawlError {
  return new PawlError("snapshot_restore", message, { fields: { reason, ...fields }, cause });
}

/** The text of a snapshot: JSON, the same bytes for the same state. */
export function snapshotText(snapshot: Snapshot): string {
  const { id, createdAt, tags, parentId, childrenIds, slices, policies } = snapshot;
  // In alphabetical order, as everything inside.
  const parts = [
    `"children_ids":${JSON.stringify(childrenIds)}`,
    `"created_at":${JSON.stringify(new Date(createdAt).toISOString())}`,
    `"id":${JSON.stringify(id)}`,
    `"parent_id":${JSON.stringify(parentId)}`,
    `"policies":${JSON.stringify(sorted(policies))}`,
    `"slices":[${slices.map(sliceText).join(",")}]`,
    `"tags":${JSON.stringify(tags)}`,
    `"version":${ENVELOPE}`,
  ];
  return `{${parts.join(",")}}`;
}

function sliceText({ slice, version, items }: SliceSnapshot): string {
  const texts = items.map((item) => itemText(item, slice));
  return `{"item_type":${JSON.stringify(`${slice}@${version}`)},"items":[${texts.join(",")}],"slice_type":${JSON.stringify(slice)}}`;
}

function itemText(item: unknown, slice: string): string {
  try {
    return JSON.stringify(sorted(JSON.parse(encode(item, { path: "item", willBeWrapped: true }))));
  } catch (cause) {
    throw new PawlError(
      "snapshot_serialization",
      `A value of slice "${slice}" cannot be saved: ${messageOf(cause)} Keep plain data in slices.`,
      { fields: { slice }, cause },
    );
  }
}

/** Plain JSON with all properties in order. */
function sorted(json: unknown): unknown {
  if (Array.isArray(json)) return json.map(sorted);
  if (typeof json !== "object" || json === null) return json;
  const entries = Object.entries(json).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}

/** Reads what `snapshotText` wrote. Throws `snapshot_restore` for any other text, with the reason. */
export function parseSnapshot(text: string): Snapshot {
  const envelope = parsed(text);
  const { version, created_at: createdAt, slices, policies } = envelope;
  if (version !== ENVELOPE)
    throw cannotRestore(
      "bad_envelope",
      `The snapshot has version ${JSON.stringify(version) ?? "none"}, and this release reads ${ENVELOPE}. Use the release that wrote it, or a newer one.`,
      { field: "version" },
    );
  const at = typeof createdAt === "string" ? Date.parse(createdAt) : Number.NaN;
  const parentId = envelope["parent_id"];
  if (Number.isNaN(at)) throw malformed("created_at", "a time");
  if (typeof parentId !== "string" && parentId !== null) throw malformed("parent_id", "a session's id or null");
  if (!Array.isArray(slices)) throw malformed("slices", "a list");
  const saved = slices.map(sliceOf);
  if (new Set(saved.map(({ slice }) => slice)).size < saved.length)
    throw malformed("slices", "a list of different ones");
  if (!isPlainRecord(policies) || !Object.values(policies).every(isPolicy))
    throw malformed("policies", 'the words "state" and "log" by slice');
  return Object.freeze({
    id: textOf(envelope, "id"),
    createdAt: at,
    tags: texts(envelope, "tags"),
    parentId,
    childrenIds: texts(envelope, "children_ids"),
    slices: Object.freeze(saved),
    policies: Object.freeze(policies as Record<string, SlicePolicy>),
  });
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw cannotRestore(
      "bad_envelope",
      `The snapshot is not JSON: it was damaged or cut off. Restore it from a copy, or start fresh.`,
      {},
      cause instanceof SyntaxError ? undefined : cause,
    );
  }
  if (!isPlainRecord(json)) throw malformed("the snapshot", "an object");
  return json;
}

function sliceOf(given: unknown, index: number): SliceSnapshot {
  const at = `slices[${index}]`;
  if (!isPlainRecord(given)) throw malformed(at, "an object");
  const slice = textOf(given, "slice_type", at);
  const itemType = textOf(given, "item_type", at);
  const version = Number(itemType.slice(itemType.lastIndexOf("@") + 1));
  if (!itemType.includes("@") || !Number.isSafeInteger(version) || version < 1)
    throw malformed(`${at}.item_type`, "a name with a version, such as plan@1");
  if (!Array.isArray(given["items"])) throw malformed(`${at}.items`, "a list");
  return Object.freeze({ slice, version, items: Object.freeze(given["items"].map((item) => itemOf(item, slice))) });
}

function itemOf(raw: unknown, slice: string): unknown {
  if (typeof raw !== "object" || raw === null) return raw;
  try {
    return frozen(readTagged(raw));
  } catch (cause) {
    throw cannotRestore(
      "bad_value",
      `A value of slice "${slice}" in the snapshot cannot be read: ${messageOf(cause)}`,
      { slices: [slice] },
      cause,
    );
  }
}

function textOf(from: Readonly<Record<string, unknown>>, key: string, at = ""): string {
  const value = from[key];
  if (typeof value !== "string") throw malformed(at === "" ? key : `${at}.${key}`, "text");
  return value;
}

function texts(from: Readonly<Record<string, unknown>>, key: string): readonly string[] {
  const value = from[key];
  if (!Array.isArray(value) || !value.every((one) => typeof one === "string")) throw malformed(key, "a list of texts");
  return Object.freeze(value);
}

function isPolicy(value: unknown): value is SlicePolicy {
  return value === "state" || value === "log";
}

function malformed(field: string, expected: string): PawlError {
  return cannotRestore(
    "bad_envelope",
    `In the snapshot, ${field} is not ${expected}. It was damaged or edited: restore it from a copy, or start fresh.`,
    { field },
  );
}
