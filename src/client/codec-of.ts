import type { Codec } from "../base/envelope.ts";
import type { Redactor } from "../core/redactor.ts";
import { defaultCodec } from "../stores/default-codec.ts";
import type { Keyring } from "./keyring.ts";

/** How a process keeps values: redacted, then put into words, then sealed. */
export function codecOf(
  { codec = defaultCodec }: { readonly codec?: Codec },
  keyring: Keyring | null,
  redactor: Redactor | null,
): Codec {
  const sealing = keyring === null ? codec : keyring.codec(codec);
  return redactor === null ? sealing : redactor.codec(sealing);
}
