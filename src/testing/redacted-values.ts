// Redacted values in replay
// What an export has lost is handed to the code as an object that can be passed on and recorded, but not read. The first one that the code reads is
// remembered by name: without it nobody can tell which way the code would have gone.
import { randomUUID } from "node:crypto";
import { decode } from "../base/codec.ts";
import { REDACTED_TAG } from "../base/redacted.ts";

type Json = Record<string, unknown>;

export class RedactedValues {
  readonly #token = `redacted ${randomUUID()} `;
  readonly #marks: object[] = [];
  readonly #copied = new Set<string>();
  /** The first one that the code has read. */
  needed: string | null = null;

  /** Those that the code has copied or recorded as a whole, by name. */
  get copied(): string[] {
    return [...this.#copied];
  }

  /** The value of tagged JSON; what was taken out of it is called `name`. */
  open(value: unknown, name: string): unknown {
    const text = JSON.stringify(value);
    if (!text.includes(`"${REDACTED_TAG}"`)) return decode(text);
    return this.#putMarks(decode(JSON.stringify(this.#withTokens(value, name))));
  }

  /** Texts that no user can have written take the place of the marks on their way through the codec. */
  #withTokens(value: unknown, name: string): unknown {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((item) => this.#withTokens(item, name));
    const [tag, ...others] = Object.keys(value);
    if (tag === REDACTED_TAG && others.length === 0) {
      const kind = String((value as Json)[tag]);
      return this.#token + String(this.#marks.push(this.#mark(kind, name)) - 1);
    }
    const record = tag === "$" && others.length === 0 ? ((value as Json)[tag] as Json) : (value as Json);
    const inner = Object.fromEntries(Object.entries(record).map(([key, item]) => [key, this.#withTokens(item, name)]));
    return record === value ? inner : { $: inner };
  }

  /** Puts the marks where their texts stand; changes `value`, which is fresh from the codec. */
  #putMarks(value: unknown): unknown {
    if (typeof value === "string" && value.startsWith(this.#token))
      return this.#marks[Number(value.slice(this.#token.length))];
    if (typeof value !== "object" || value === null) return value;
    if (value instanceof Map) {
      const pairs = [...value].map(([key, item]) => [this.#putMarks(key), this.#putMarks(item)] as const);
      value.clear();
      for (const [key, item] of pairs) value.set(key, item);
    } else if (value instanceof Set) {
      const items = [...value].map((item) => this.#putMarks(item));
      value.clear();
      for (const item of items) value.add(item);
    } else if (!ArrayBuffer.isView(value)) this.#putMarksInside(value);
    return value;
  }

  #putMarksInside(value: object): void {
    for (const key of Object.getOwnPropertyNames(value)) {
      const property = Object.getOwnPropertyDescriptor(value, key);
      if (property === undefined || !("value" in property) || property.writable !== true) continue;
      const inner = this.#putMarks(property.value);
      if (inner !== property.value) Object.defineProperty(value, key, { ...property, value: inner });
    }
  }

  #mark(kind: string, name: string): object {
    const refuse = (): never => {
      this.needed ??= name;
      throw new Error(`${name} was redacted in this export.`);
    };
    const copy = () => void this.#copied.add(name);
    return new Proxy(
      { [REDACTED_TAG]: kind },
      {
        get(target, property) {
          // Promises and the codec ask these of any value.
          if (property === "then" || property === Symbol.toStringTag) return undefined;
          return property === REDACTED_TAG ? target[REDACTED_TAG] : refuse();
        },
        ownKeys(target) {
          copy();
          return Reflect.ownKeys(target);
        },
        has: refuse,
        set: refuse,
        deleteProperty: refuse,
        defineProperty: refuse,
        setPrototypeOf: refuse,
        preventExtensions: refuse,
      },
    );
  }
}

/** Whether two values of tagged JSON are the same as far as neither was redacted. */
export function isSameValue(one: unknown, other: unknown): boolean {
  if (isMark(one) || isMark(other)) return true;
  if (typeof one !== "object" || one === null || typeof other !== "object" || other === null)
    return Object.is(one, other);
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && isSameValue((one as Json)[key], (other as Json)[key]))
  );
}

/** A mark as it stands in an export, or as the codec has written one that the code has passed on. */
function isMark(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const [tag, ...others] = Object.keys(value);
  if (others.length > 0) return false;
  return tag === REDACTED_TAG || (tag === "$" && isMark((value as Json)[tag]));
}
