// Sealed values inside a document. What is JSON already stands there as JSON, so that a person can read it, but only if reading it gives the very
// same text back: the journal's checksums are taken of the text.
export type SealedData = string | Uint8Array | null;

export type WrittenData = null | { readonly json: unknown } | { readonly text: string } | { readonly base64: string };

export function writeData(data: SealedData): WrittenData {
  if (data === null) return null;
  if (typeof data !== "string") return { base64: Buffer.from(data).toString("base64") };
  const json = parsed(data);
  return json !== undefined && JSON.stringify(json) === data ? { json } : { text: data };
}

export function readData<T extends SealedData>(written: WrittenData): T {
  if (written === null) return null as T;
  if ("json" in written) return JSON.stringify(written.json) as T;
  return ("text" in written ? written.text : Uint8Array.from(Buffer.from(written.base64, "base64"))) as T;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
