import { fromBase64, toBase64 } from "./base64.ts";

// Elements keep the byte order of the machine, little-endian wherever Pawl is tested. Float16Array is missing
// because Node 20 could not read it back.
const views: ReadonlyMap<string, (buffer: ArrayBuffer) => ArrayBufferView> = new Map([
  ["Int8Array", (buffer: ArrayBuffer): ArrayBufferView => new Int8Array(buffer)],
  ["Uint8Array", (buffer) => new Uint8Array(buffer)],
  ["Uint8ClampedArray", (buffer) => new Uint8ClampedArray(buffer)],
  ["Int16Array", (buffer) => new Int16Array(buffer)],
  ["Uint16Array", (buffer) => new Uint16Array(buffer)],
  ["Int32Array", (buffer) => new Int32Array(buffer)],
  ["Uint32Array", (buffer) => new Uint32Array(buffer)],
  ["Float32Array", (buffer) => new Float32Array(buffer)],
  ["Float64Array", (buffer) => new Float64Array(buffer)],
  ["BigInt64Array", (buffer) => new BigInt64Array(buffer)],
  ["BigUint64Array", (buffer) => new BigUint64Array(buffer)],
  ["DataView", (buffer) => new DataView(buffer)],
]);

// The getter answers with the true kind, whatever a subclass or another realm calls itself.
const kindOfTypedArray = Object.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype),
  Symbol.toStringTag,
)?.get as (this: unknown) => string | undefined;

/** The kind under which `view` is stored, or null for a kind that is not. */
export function viewKind(view: ArrayBufferView): string | null {
  const kind = kindOfTypedArray.call(view) ?? "DataView";
  return views.has(kind) ? kind : null;
}

export function writeBytes(kind: string, value: ArrayBufferView | ArrayBuffer): string {
  const bytes = ArrayBuffer.isView(value)
    ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
    : new Uint8Array(value);
  return `{"$bytes":["${kind}","${toBase64(bytes)}"]}`;
}

/** The bytes under their kind, or null if kind, text and length do not fit together. */
export function readBytes(kind: string, text: string): ArrayBufferView | ArrayBuffer | null {
  const buffer = fromBase64(text)?.buffer;
  if (buffer === undefined) return null;
  if (kind === "ArrayBuffer") return buffer;
  try {
    return views.get(kind)?.(buffer) ?? null;
  } catch {
    // The length is no multiple of the element size.
    return null;
  }
}
