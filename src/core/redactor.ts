// Redaction before the journal
// Takes out of users' values what must not be recorded, and leaves a mark in its place. It works on the text that is about to be kept, and whoever goes on
// with the value goes on with what that text gives back: a body sees live what replay will show it.
//
//   RD1. The same text gives the same result, always; but for secrets, which no body has ever seen and so no replay can ask for.
//   RD2. What was redacted once is not changed by doing it again.
//   RD3. Entries keep their shape: only fields with users' values are looked into (`entry-values.ts`), and what must be text stays text.
import { fromBase64 } from "../base/base64.ts";
import type { Codec, FieldAddress } from "../base/envelope.ts";
import { PawlError } from "../base/errors.ts";
import { REDACTED_TAG, REDACTED_TEXT } from "../base/redacted.ts";
import type { Log } from "./context.ts";
import { TEXT_PLACES, VALUE_FIELDS } from "./entry-values.ts";
import { isPatternName, type PatternName, redactPattern } from "./redaction-patterns.ts";

/** What is taken out of values before they are recorded. */
export interface Redaction {
  /** Properties with these names, at any depth; case, - and _ do not count. */
  readonly fields?: readonly string[];
  /** What looks like this, in any text: "card" numbers, "bearer" tokens, "key"s of well-known services and private keys, or expressions of your own. */
  readonly patterns?: readonly (PatternName | RegExp)[];
  /** Anything else: gets each text, and the name of its property if it has one. Must give the same for the same, also for what it gave. */
  readonly text?: (text: string, field: string | null) => string;
}

/** The secrets that steps of this process have been given. */
export interface KnownSecrets {
  /** The text without any of them, in whichever form they may be found. */
  hide(text: string): string;
}

type Json = Record<string, unknown>;

/** What is shorter is no card number, whatever its digits. */
const LEAST_DIGITS = 12;

export class Redactor {
  readonly #fields: ReadonlySet<string>;
  readonly #rules: readonly Redaction[];
  readonly #secrets: KnownSecrets;

  constructor(rules: readonly Redaction[], secrets: KnownSecrets) {
    this.#rules = rules;
    this.#fields = new Set(rules.flatMap(({ fields = [] }) => fields.map(bareName)));
    this.#secrets = secrets;
  }

  /** The text of a user's value; `name` is what it is kept under. */
  value(text: string, name: string | null = null): string {
    return rewritten(text, (value) => this.#walkNamed(value, name));
  }

  /** The text of an entry's payload. */
  entry(type: string, key: string | null, text: string): string {
    return rewritten(text, (payload) => this.#payload(type, key, payload));
  }

  /** JSON of the engine's own, with texts of users in it. */
  detail(text: string): string {
    return rewritten(text, (value) => this.#walk(value, null, false));
  }

  /** A message to a run: what it is made of is the engine's, what is inside is the user's. */
  message(text: string): string {
    return rewritten(text, (value) => {
      const isRecord = typeof value === "object" && value !== null && !Array.isArray(value);
      return isRecord
        ? mapRecord(value as Json, (part, slot) => this.#walk(part, slot, true))
        : this.#walk(value, null, true);
    });
  }

  /** The last look at whatever is about to be kept, on whichever way it has come. */
  codec(codec: Codec): Codec {
    const clean = (text: string, { field }: FieldAddress) =>
      field.startsWith("inbox:") ? this.message(text) : this.detail(text);
    return {
      id: codec.id,
      seal: (text, at) => codec.seal(clean(text, at), at),
      unseal: (data, at) => codec.unseal(data, at),
      holds: (key) => codec.holds?.(key) === true,
      ...(codec.names !== undefined && { names: codec.names }),
    };
  }

  /** A text for people. */
  text(text: string): string {
    return this.#clean(text, null);
  }

  log(log: Log): Log {
    const write = (level: keyof Log) => (message: string, fields?: Readonly<Record<string, unknown>>) =>
      log[level](this.text(String(message)), fields === undefined ? fields : this.#logged(fields));
    return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
  }

  #logged(fields: Readonly<Record<string, unknown>>): Json {
    return mapRecord(fields, (value, key) => {
      if (typeof value === "string" || typeof value === "number") return this.#walkNamed(value, key);
      if (typeof value !== "object" || value === null) return value;
      try {
        return this.#walkNamed(JSON.parse(JSON.stringify(plainError(value))) as unknown, key);
      } catch {
        return REDACTED_TEXT;
      }
    });
  }

  #payload(type: string, key: string | null, payload: unknown): unknown {
    const fields = VALUE_FIELDS[type];
    if (fields === undefined) return this.#walk(payload, null, true);
    if (typeof payload !== "object" || payload === null) return payload;
    const name = type === "state.patched" ? key : null;
    return mapRecord(payload as Json, (inner, field) => {
      if (!fields.includes(field)) return inner;
      if (TEXT_PLACES.has(`${type} ${field}`)) return typeof inner === "string" ? this.#clean(inner, null) : inner;
      return this.#walkNamed(inner, name);
    });
  }

  #walkNamed(value: unknown, name: string | null): unknown {
    return name !== null && this.#isNamed(name) ? markOf(value) : this.#walk(value, name, true);
  }

  #isNamed(name: string): boolean {
    return this.#fields.size > 0 && this.#fields.has(bareName(name));
  }

  /** Walks tagged JSON. */
  #walk(value: unknown, field: string | null, takesFields: boolean): unknown {
    if (typeof value === "string") return this.#clean(value, field);
    if (typeof value === "number") return this.#number(value, field);
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((item) => this.#walk(item, field, takesFields));
    const [tag, ...others] = Object.keys(value);
    if (tag?.startsWith("$") !== true || others.length > 0) return this.#record(value as Json, takesFields);
    return this.#tagged(tag, (value as Json)[tag], field, takesFields);
  }

  #tagged(tag: string, content: unknown, field: string | null, takesFields: boolean): unknown {
    const inner = (one: unknown) => this.#walk(one, field, takesFields);
    switch (tag) {
      case "$":
        return { $: this.#record(content as Json, takesFields) };
      case "$set":
        return { $set: inner(content) };
      case "$map":
        return { $map: (content as [unknown, unknown][]).map((pair) => this.#pair(pair, takesFields)) };
      case "$error":
        return { $error: this.#error(content as Json, takesFields) };
      case "$bytes":
        return this.#unlessFound(tag, content, field, latin1((content as string[])[1] ?? ""));
      default:
        return this.#unlessFound(tag, content, field, String(content));
    }
  }

  /** A value that has no room for a mark goes as a whole. */
  #unlessFound(tag: string, content: unknown, field: string | null, text: string): Json {
    const isOwn = tag === REDACTED_TAG || tag === "$secret";
    return isOwn || this.#clean(text, field) === text ? { [tag]: content } : { [REDACTED_TAG]: tag.slice(1) };
  }

  #record(record: Json, takesFields: boolean): Json {
    return Object.fromEntries(
      Object.entries(record).map(([key, item]) => [
        this.#clean(key, null),
        takesFields && this.#isNamed(key) ? markOf(item) : this.#walk(item, key, takesFields),
      ]),
    );
  }

  #pair([key, item]: readonly [unknown, unknown], takesFields: boolean): [unknown, unknown] {
    const name = typeof key === "string" ? key : null;
    const isTaken = takesFields && name !== null && this.#isNamed(name);
    return [this.#walk(key, null, takesFields), isTaken ? markOf(item) : this.#walk(item, name, takesFields)];
  }

  #error(error: Json, takesFields: boolean): Json {
    return mapRecord(error, (part, slot) => {
      if (slot === "name" || slot === "message") return this.#clean(String(part), null);
      return slot === "fields" ? this.#record(part as Json, takesFields) : this.#walk(part, null, takesFields);
    });
  }

  #number(value: number, field: string | null): unknown {
    const text = String(value);
    return text.length < LEAST_DIGITS || this.#clean(text, field) === text ? value : markOf(value);
  }

  #clean(text: string, field: string | null): string {
    let clean = this.#secrets.hide(text);
    for (const { patterns = [], text: rewrite } of this.#rules) {
      for (const pattern of patterns) clean = redactPattern(clean, pattern);
      if (rewrite !== undefined) clean = String(rewrite(clean, field));
    }
    return clean;
  }
}

/** Redactors by workflow: what the process says, and what the workflow adds. */
export class Redactors {
  readonly #rules: readonly Redaction[];
  readonly #secrets: KnownSecrets | null;
  readonly #ofWorkflows = new WeakMap<object, Redactor>();
  /** For what belongs to no workflow. `null`: nothing is ever redacted. */
  readonly common: Redactor | null;

  constructor(redact: Redaction | readonly Redaction[] | undefined, secrets: KnownSecrets | null) {
    this.#rules = redactionsOf(redact, "redact");
    this.#secrets = secrets;
    const isOff = this.#rules.length === 0 && secrets === null;
    this.common = isOff ? null : new Redactor(this.#rules, secrets ?? NO_SECRETS);
  }

  for(definition: { readonly redact: readonly Redaction[] | null } | undefined): Redactor | null {
    if (definition === undefined || definition.redact === null) return this.common;
    const known = this.#ofWorkflows.get(definition);
    if (known !== undefined) return known;
    const made = new Redactor([...this.#rules, ...definition.redact], this.#secrets ?? NO_SECRETS);
    this.#ofWorkflows.set(definition, made);
    return made;
  }
}

const NO_SECRETS: KnownSecrets = { hide: (text) => text };

/** Checks what a user wants redacted. */
export function redactionsOf(given: Redaction | readonly Redaction[] | undefined, what: string): readonly Redaction[] {
  if (given === undefined) return [];
  const rules = Array.isArray(given) ? (given as readonly Redaction[]) : [given as Redaction];
  for (const rule of rules) assertRedaction(rule, what);
  return rules;
}

function assertRedaction(rule: Redaction, what: string): void {
  if (typeof rule !== "object" || rule === null)
    throw invalid(what, `is ${typeof rule}`, 'Give { fields: ["password"], patterns: ["card"] }.');
  const { fields = [], patterns = [], text } = rule;
  if (!Array.isArray(fields) || !fields.every((name) => typeof name === "string" && bareName(name) !== ""))
    throw invalid(`${what}.fields`, "is no list of names", 'Give names of properties, such as ["password"].');
  const isPattern = (one: unknown) => isPatternName(one) || one instanceof RegExp;
  if (!Array.isArray(patterns) || !patterns.every(isPattern))
    throw invalid(
      `${what}.patterns`,
      "has something that is no pattern",
      'Give "card", "bearer", "key" or an expression.',
    );
  if (text !== undefined && typeof text !== "function")
    throw invalid(`${what}.text`, `is ${typeof text}`, "Give a function (text, field) => text.");
}

function invalid(field: string, what: string, advice: string): PawlError {
  return new PawlError("invalid_argument", `\`${field}\` ${what}. ${advice}`, { fields: { option: field } });
}

/** Leaves a text in which nothing was found as it is, to the letter. */
function rewritten(text: string, change: (value: unknown) => unknown): string {
  const changed = JSON.stringify(change(JSON.parse(text)));
  return changed === text ? text : changed;
}

function bareName(name: string): string {
  return name.replaceAll(/[-_]/g, "").toLowerCase();
}

function markOf(value: unknown): unknown {
  if (typeof value === "object" && value !== null && REDACTED_TAG in value) return value;
  return { [REDACTED_TAG]: kindOf(value) };
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  const [tag, ...others] = typeof value === "object" ? Object.keys(value) : [];
  return tag?.startsWith("$") && tag.length > 1 && others.length === 0 ? tag.slice(1) : typeof value;
}

function latin1(base64: string): string {
  const bytes = fromBase64(base64);
  if (bytes === null) return "";
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}

/** JSON leaves out what errors say. */
function plainError(value: object): object {
  return value instanceof Error ? { ...value, name: value.name, message: value.message } : value;
}

/** Never assigns: `__proto__` stays a property like any other (Q8). */
function mapRecord(record: Json, change: (item: unknown, key: string) => unknown): Json {
  return Object.fromEntries(Object.entries(record).map(([key, item]) => [key, change(item, key)]));
}
