import type { EncryptionKey, EncryptionOptions } from "../../src/client/keyring.ts";

/** A key that is the same in every run of the tests. */
export const keyOf = (id: string): EncryptionKey => ({
  id,
  key: Uint8Array.from({ length: 32 }, (_, i) => (i * 7 + id.charCodeAt(id.length - 1)) % 256),
});

export const ENCRYPTION: EncryptionOptions = { keys: [keyOf("k1")] };
