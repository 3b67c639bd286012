// The keyring
// Keys of a process, and what is sealed and opened with them: AES-256-GCM, each value bound to its place as associated data (Q14).
//
//   KR1. Values are sealed with the first key and opened with the one that they name. So a key is added behind the first everywhere, then put in front, and
//        taken away once nothing names it any more.
//   KR2. No value is encrypted with a key of the ring itself: a key of its run is derived from it (HKDF-SHA-256). Nonces are random, and 2^32 of them under one
//        key are safe; a run is far from that many values, and so no key of the ring has to be counted.
//   KR3. Names are compared where they are kept, so the same name is always the same text: its nonce is an HMAC of it. They stay with one key.
//   KR4. What was moved to another place, cut short or changed is refused, never repaired.
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from "node:crypto";
import type { Codec, FieldAddress, NameSealer } from "../base/envelope.ts";
import { PawlError } from "../base/errors.ts";
import { isKeyId, keyMissing, readSealed, type SealedText } from "../base/sealed-text.ts";

export interface EncryptionKey {
  /** Stands in every value that is sealed with the key: letters, digits, `-` and `_`, at most 32. */
  readonly id: string;
  /** 32 bytes, or their base64: what `openssl rand -base64 32` prints. */
  readonly key: string | Uint8Array;
}

export interface EncryptionOptions {
  /** The first one seals; the others open what was sealed with them before. The same in all processes of a store. */
  readonly keys: readonly EncryptionKey[];
  /** Whose store this is. Values are bound to it: those of one tenant cannot be put into the store of another, also under the same key. Default: nobody's. */
  readonly tenant?: string;
  /** The id of the key that names are sealed with as well: keys of steps, start keys, tags, names of signals and of run state. Never changes. Default: names stay readable. */
  readonly names?: string;
  /** Values that are not sealed: "read" (default) them, since they may be older than the encryption, or "refuse" them. */
  readonly plain?: "read" | "refuse";
}

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const CIPHER = "aes-256-gcm";
/** Runs whose keys are kept in mind; deriving one again costs some microseconds. */
const KEPT_KEYS = 4096;

/** In front of what is encrypted: whether it was text or bytes. */
const TEXT = 0;
const BYTES = 1;

export class Keyring {
  readonly #keys: ReadonlyMap<string, Uint8Array>;
  readonly #current: string;
  readonly #tenant: string;
  readonly #derived = new Map<string, Uint8Array>();
  readonly #refusesPlain: boolean;
  readonly #random: (count: number) => Uint8Array;
  readonly names: NameSealer | null;

  /** `random` gives nonces: it must never give the same twice. */
  constructor(options: EncryptionOptions, random: (count: number) => Uint8Array = randomBytes) {
    this.#random = random;
    this.#keys = keysOf(options);
    this.#current = options.keys[0]?.id ?? "";
    this.#tenant = tenantOf(options);
    this.#refusesPlain = refusesPlain(options);
    this.names = options.names === undefined ? null : this.#nameSealer(options.names);
  }

  get current(): string {
    return this.#current;
  }

  /** Whether what is not sealed is taken for a value as well. */
  get readsPlain(): boolean {
    return !this.#refusesPlain;
  }

  /** Their ids, the one that seals first. */
  get ids(): string[] {
    return [...this.#keys.keys()];
  }

  seal(data: string | Uint8Array, at: FieldAddress): string {
    const isText = typeof data === "string";
    const content = isText ? Buffer.from(data, "utf8") : data;
    const plain = Buffer.concat([Uint8Array.of(isText ? TEXT : BYTES), content]);
    const key = this.#keyFor(this.#current, at.run);
    return this.#encrypt(this.#current, key, this.#random(NONCE_BYTES), plain, this.#placeOf(this.#current, at));
  }

  /** What `seal` was given; what is not sealed is given back, unless the options say that there is no such thing. */
  open(data: string | Uint8Array, at: FieldAddress): string | Uint8Array {
    const sealed = typeof data === "string" ? readSealed(data) : null;
    if (sealed === null) {
      if (this.#refusesPlain) throw refused(at, "it is not sealed, and `encryption.plain` says that all values are");
      return data;
    }
    if (!this.#keys.has(sealed.key)) throw keyMissing(sealed.key, at);
    const plain = decrypt(sealed, this.#keyFor(sealed.key, at.run), this.#placeOf(sealed.key, at));
    if (plain === null)
      throw refused(at, `it does not fit its place: it was changed, cut short, or moved here (key "${sealed.key}")`);
    return plain[0] === TEXT ? plain.subarray(1).toString("utf8") : new Uint8Array(plain.subarray(1));
  }

  /** Seals what `codec` gives. */
  codec(codec: Codec): Codec {
    return {
      id: `${codec.id}+${CIPHER}`,
      seal: (text, at) => this.seal(codec.seal(text, at), at),
      unseal: (data, at) => codec.unseal(this.open(data, at), at),
      holds: (key) => this.#keys.has(key),
      ...(this.names !== null && { names: this.names }),
    };
  }

  /** A place as bytes: no two places have the same. */
  #placeOf(key: string, { run, seq, field }: FieldAddress): Buffer {
    return Buffer.from(JSON.stringify(["v1", key, this.#tenant, run, seq, field]), "utf8");
  }

  #keyFor(id: string, run: string): Uint8Array {
    const name = `${id} ${run}`;
    const known = this.#derived.get(name);
    if (known !== undefined) return known;
    const derived = this.#derive(id, "run", run);
    const [oldest] = this.#derived.size < KEPT_KEYS ? [] : this.#derived.keys();
    if (oldest !== undefined) this.#derived.delete(oldest);
    this.#derived.set(name, derived);
    return derived;
  }

  #derive(id: string, purpose: string, of: string): Uint8Array {
    const secret = this.#keys.get(id) as Uint8Array;
    const info = createHash("sha256")
      .update(JSON.stringify(["pawl v1", purpose, this.#tenant, of]))
      .digest();
    return new Uint8Array(hkdfSync("sha256", secret, new Uint8Array(0), info, KEY_BYTES));
  }

  #encrypt(id: string, key: Uint8Array, nonce: Uint8Array, plain: Uint8Array, place: Uint8Array): string {
    const cipher = createCipheriv(CIPHER, key, nonce).setAAD(place);
    const ciphertext = Buffer.concat([cipher.update(plain), cipher.final()]);
    return `v1.${id}.${[nonce, ciphertext, cipher.getAuthTag()].map(base64url).join(".")}`;
  }

  #nameSealer(id: string): NameSealer {
    if (!this.#keys.has(id)) throw invalid("names", `names a key "${id}" that is not among \`keys\``, "Give its id.");
    const key = this.#derive(id, "names", "cipher");
    const macKey = this.#derive(id, "names", "nonce");
    const place = this.#placeOf(id, { run: "", seq: -1, field: "name" });
    return {
      seal: (name) => {
        const nonce = createHmac("sha256", macKey).update(name).digest().subarray(0, NONCE_BYTES);
        return this.#encrypt(id, key, nonce, Buffer.from(name, "utf8"), place);
      },
      // A name that cannot be opened is shown as it is kept: nothing is done because of it but by whoever has the key.
      open: (text) => {
        const sealed = readSealed(text);
        const plain = sealed === null || sealed.key !== id ? null : decrypt(sealed, key, place);
        return plain === null ? text : plain.toString("utf8");
      },
    };
  }
}

function decrypt({ nonce, ciphertext, tag }: SealedText, key: Uint8Array, place: Uint8Array): Buffer | null {
  const decipher = createDecipheriv(CIPHER, key, Buffer.from(nonce, "base64url"), { authTagLength: 16 });
  decipher.setAAD(place).setAuthTag(Buffer.from(tag, "base64url"));
  try {
    return Buffer.concat([decipher.update(Buffer.from(ciphertext, "base64url")), decipher.final()]);
  } catch {
    return null;
  }
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64url");
}

function keysOf({ keys }: EncryptionOptions): ReadonlyMap<string, Uint8Array> {
  if (!Array.isArray(keys) || keys.length === 0)
    throw invalid("keys", "is no list of keys", 'Give [{ id: "k1", key: … }], the one that seals first.');
  const found = new Map<string, Uint8Array>();
  for (const [index, one] of (keys as readonly (EncryptionKey | null | undefined)[]).entries()) {
    const place = `keys[${index}]`;
    if (!isKeyId(one?.id))
      throw invalid(place, "has no usable `id`", "Give 1 to 32 letters, digits, - and _, such as 2026-11.");
    if (found.has(one.id)) throw invalid(place, `has the id "${one.id}" once more`, "Give each key an id of its own.");
    found.set(one.id, bytesOf(one.key, place));
  }
  return found;
}

/** What it is stays unsaid: errors are written to logs. */
function bytesOf(key: unknown, place: string): Uint8Array {
  const bytes = typeof key === "string" ? new Uint8Array(Buffer.from(key.trim(), "base64")) : key;
  if (bytes instanceof Uint8Array && bytes.length === KEY_BYTES) return Uint8Array.from(bytes);
  throw invalid(
    place,
    `has a \`key\` that is not ${KEY_BYTES} bytes`,
    "Give the bytes, or their base64 as `openssl rand -base64 32` prints it.",
  );
}

function tenantOf({ tenant = "" }: EncryptionOptions): string {
  if (typeof tenant === "string") return tenant;
  throw invalid("tenant", `is ${typeof tenant}`, "Give a text that stays the same.");
}

function refusesPlain({ plain = "read" }: EncryptionOptions): boolean {
  if (plain === "read" || plain === "refuse") return plain === "refuse";
  throw invalid("plain", `is ${JSON.stringify(plain)}`, 'Give "read" or "refuse".');
}

function invalid(field: string, what: string, advice: string): PawlError {
  return new PawlError("invalid_argument", `encryption.${field} ${what}. ${advice}`, {
    fields: { option: `encryption.${field}` },
  });
}

function refused({ run, seq, field }: FieldAddress, why: string): PawlError {
  const what = seq === -1 ? field : `entry ${seq}`;
  return new PawlError(
    "corrupt_value",
    `In run ${run}, ${what} was refused: ${why}. Restore the row from a backup; somebody may have edited the store.`,
    { fields: { run, seq, field } },
  );
}
