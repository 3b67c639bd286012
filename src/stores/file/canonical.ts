// One text for one JSON value, whatever the order of its keys: what checksums are taken of.
import { hash } from "node:crypto";

/** A value whose canonical text is known already. */
export class Canonical {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** JSON without spaces, with the keys of every object sorted by their UTF-16 units. */
export function canonicalText(value: unknown): string {
  if (value instanceof Canonical) return value.text;
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields: string[] = [];
  for (const key of Object.keys(value).sort()) {
    const inner = (value as Record<string, unknown>)[key];
    if (inner !== undefined) fields.push(`${JSON.stringify(key)}:${canonicalText(inner)}`);
  }
  return `{${fields.join(",")}}`;
}

/** The checksum of a document: of everything in it but its own checksum. */
export function checksumOf({ checksum: _, ...rest }: Readonly<Record<string, unknown>>): string {
  return `sha256:${hash("sha256", canonicalText(rest), "hex")}`;
}
