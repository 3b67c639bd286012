// What happens to a text on its way to the store and back: nothing, compression, encryption.
// Each wrapper works on what the one inside it gives: what `keyring.codec(compressing(jsonCodec))` seals was compressed first.

import { PawlError } from "./errors.ts";
import { utf8Length } from "./utf8.ts";

/**
 * The place of a stored value. Encryption binds a value to it as associated data, so that nobody with access to the
 * tables can move one value to another place unseen (Q14).
 */
export interface FieldAddress {
  readonly run: string;
  readonly seq: number;
  readonly field: string;
}

/** Turns the text of a value into what the store keeps, and back. Its id is stored with every row. */
export interface Codec {
  readonly id: string;
  seal(text: string, at: FieldAddress): string | Uint8Array;
  unseal(data: string | Uint8Array, at: FieldAddress): string;
  /** Whether it has this key, for a codec with keys. */
  holds?(key: string): boolean;
  /** For the keys of entries, where names are not to be read either. */
  readonly names?: NameSealer;
}

/** Names are compared where they are kept: the same name always gives the same text. */
export interface NameSealer {
  seal(name: string): string;
  /** What is not sealed is given back as it is. */
  open(text: string): string;
}

/** The default: the text itself, readable in SQL. Also reads it from a store that hands out bytes. */
export const jsonCodec: Codec = {
  id: "json",
  seal: (text) => text,
  unseal: (data, at) => (typeof data === "string" ? data : fromUtf8(data, at)),
};

export interface Compression {
  compress(bytes: Uint8Array): Uint8Array;
  /** Must bound its output: a few bytes can ask for gigabytes. */
  decompress(bytes: Uint8Array): Uint8Array;
  /** Smaller values stay as they are, and readable. */
  readonly thresholdBytes: number;
}

// The first byte of bytes. No JSON text begins with any of them, so what was stored before compression was
// switched on stays readable, also from a store that gives text back as bytes.
const PLAIN_BYTES = 0;
const PACKED_TEXT = 1;
const PACKED_BYTES = 2;

/** Compresses what `codec` gives if it is large and becomes smaller by it. */
export function compressing(codec: Codec, { compress, decompress, thresholdBytes }: Compression): Codec {
  const pack = (bytes: Uint8Array, tag: number): Uint8Array | null => {
    const packed = compress(bytes);
    return packed.length < bytes.length ? tagged(tag, packed) : null;
  };
  const unpack = (data: Uint8Array, at: FieldAddress): Uint8Array => {
    try {
      return decompress(data.subarray(1));
    } catch (cause) {
      throw unreadable(at, "it cannot be decompressed", cause);
    }
  };
  return {
    id: codec.id,
    seal(text, at) {
      const sealed = codec.seal(text, at);
      if (typeof sealed === "string") {
        const isLarge = sealed.length * 3 >= thresholdBytes && utf8Length(sealed) >= thresholdBytes;
        return (isLarge ? pack(new TextEncoder().encode(sealed), PACKED_TEXT) : null) ?? sealed;
      }
      const isLarge = sealed.length >= thresholdBytes;
      return (isLarge ? pack(sealed, PACKED_BYTES) : null) ?? tagged(PLAIN_BYTES, sealed);
    },
    unseal(data, at) {
      if (typeof data === "string") return codec.unseal(data, at);
      switch (data[0]) {
        case PLAIN_BYTES:
          return codec.unseal(data.subarray(1), at);
        case PACKED_TEXT:
          return codec.unseal(fromUtf8(unpack(data, at), at), at);
        case PACKED_BYTES:
          return codec.unseal(unpack(data, at), at);
        default:
          return codec.unseal(data, at);
      }
    },
  };
}

function tagged(tag: number, bytes: Uint8Array): Uint8Array {
  const data = new Uint8Array(bytes.length + 1);
  data[0] = tag;
  data.set(bytes, 1);
  return data;
}

function fromUtf8(bytes: Uint8Array, at: FieldAddress): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw unreadable(at, "it is not valid UTF-8", cause);
  }
}

function unreadable(at: FieldAddress, reason: string, cause: unknown): PawlError {
  return new PawlError(
    "corrupt_value",
    `The ${at.field} of entry ${at.seq} of run ${at.run} cannot be read: ${reason}. Restore the row from a backup.`,
    { fields: { ...at }, cause },
  );
}
