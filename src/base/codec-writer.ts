import { viewKind, writeBytes } from "./codec-bytes.ts";
import { builtinErrors } from "./codec-errors.ts";
import { messageOf, PawlError } from "./errors.ts";
import { REDACTED_CLASS, REDACTED_TAG, type Redacted } from "./redacted.ts";
import { SECRET_CLASS, SECRET_TAG, type Secret } from "./secret.ts";
import { MAX_NODES } from "./value-limits.ts";

/** How many levels and values one value may have. */
export interface Room {
  readonly depth: number;
  readonly nodes: number;
}

interface Writing {
  /** Keys and indexes from the root to the value at hand. Left as it is on a throw: then it points at the culprit. */
  readonly path: (string | number)[];
  /** The containers around the value at hand, outermost first. */
  readonly around: object[];
  nodes: number;
  chars: number;
  readonly maxChars: number;
  readonly room: Room;
  /** Values visited inside fields that were then left out. */
  wasted: number;
}

/** Why a value cannot be stored. Made into a PawlError at the root, where the path is known. */
class Refusal {
  readonly what: string;
  readonly advice: string;

  constructor(what: string, advice: string) {
    this.what = what;
    this.advice = advice;
  }
}

class Oversize {}

/** Writes a value that plain JSON cannot say, reading every property once. */
export function writeTagged(value: unknown, root: string, maxChars: number, room: Room): string {
  const w: Writing = { path: [], around: [], nodes: 1, chars: 0, maxChars, room, wasted: 0 };
  try {
    return write(value, w);
  } catch (thrown) {
    if (isA(Oversize, thrown) || isOutOfText(thrown)) throw tooLarge(root, maxChars);
    throw notSerializable(formatPath(root, w.path), thrown);
  }
}

export function tooLarge(path: string, maxBytes: number): PawlError {
  return new PawlError(
    "too_large",
    `${path} takes more than ${maxBytes} bytes when stored. Keep the data elsewhere (a file, a bucket, a table) and pass a reference to it.`,
    { fields: { path, maxBytes } },
  );
}

function notSerializable(path: string, thrown: unknown): PawlError {
  if (isA(Refusal, thrown)) {
    return new PawlError("not_serializable", `${path} ${thrown.what}. ${thrown.advice}`, { fields: { path } });
  }
  const reason = messageOf(thrown);
  return new PawlError(
    "not_serializable",
    `${path} cannot be stored, because reading it threw: ${reason}. Pass a plain copy of the data.`,
    { fields: { path }, cause: thrown },
  );
}

/** True for V8's way to say that a text would be longer than any text can be. */
export function isOutOfText(thrown: unknown): boolean {
  return isA(RangeError, thrown) && thrown.message === "Invalid string length";
}

/** Like `instanceof`, but a getter may throw anything at all, and a revoked proxy cannot even be asked what it is. */
function isA<T>(maker: new (...args: never[]) => T, thrown: unknown): thrown is T {
  return readOr(() => thrown instanceof maker, false);
}

function write(value: unknown, w: Writing): string {
  switch (typeof value) {
    case "string":
      return writeString(value, w);
    case "number":
      return writeNumber(value);
    case "boolean":
      return value ? "true" : "false";
    case "undefined":
      return '{"$undefined":true}';
    case "bigint":
      return `{"$bigint":"${value.toString()}"}`;
    case "object":
      return value === null ? "null" : writeContained(value, w);
    case "function":
      throw new Refusal(
        "is a function, which cannot be stored",
        "Pass data, and let the code that reads it choose the function.",
      );
    case "symbol":
      throw new Refusal("is a symbol, which cannot be stored", "Use a string.");
  }
}

function writeString(text: string, w: Writing): string {
  count(w, 0, text.length);
  return JSON.stringify(text);
}

function writeNumber(value: number): string {
  if (Object.is(value, -0)) return '{"$number":"-0"}';
  return Number.isFinite(value) ? String(value) : `{"$number":"${value}"}`;
}

function writeContained(value: object, w: Writing): string {
  if (w.around.includes(value)) {
    throw new Refusal(
      "refers back to an object that contains it, and a cycle cannot be stored",
      "Store an id in place of the reference.",
    );
  }
  if (w.around.length >= w.room.depth) {
    throw new Refusal(
      `is nested more than ${w.room.depth} levels deep`,
      "Flatten the data, or keep it elsewhere and pass a reference to it.",
    );
  }
  w.around.push(value);
  const text = writeObject(value, w);
  w.around.pop();
  return text;
}

/** Decides by what an object is made of, not by `instanceof`: other realms (Jest, vm) have classes of their own. */
function writeObject(value: object, w: Writing): string {
  const prototype: object | null = Object.getPrototypeOf(value);
  const className = prototype === null ? "" : classNameOf(prototype);
  if (Array.isArray(value)) {
    if (className === "Array") return writeArray(value, w);
  } else if (prototype === null || (className === "Object" && Object.getPrototypeOf(prototype) === null)) {
    return writeRecord(value as Record<string, unknown>, w);
  } else if (isError(value)) {
    return writeError(value, w);
  } else if (ArrayBuffer.isView(value)) {
    const kind = viewKind(value);
    if (kind !== null && (className === kind || className === "Buffer")) return writeView(kind, value, w);
  } else if (Object.prototype.toString.call(value) === `[object ${className}]`) {
    const text = writeBuiltin(className, value, w);
    if (text !== null) return text;
  }
  const mark = writeMark(value, w);
  if (mark !== null) return mark;
  throw refusedClass(className);
}

function refusedClass(className: string): Refusal {
  if (className === "Promise") return new Refusal("is a promise, which cannot be stored", "Await it first.");
  const what = className === "" ? "an instance of a class without a name" : `an instance of class ${className}`;
  return new Refusal(`is ${what}, which cannot be stored`, "Pass a plain object with its data, for example { ...it }.");
}

function classNameOf(prototype: object): string {
  const maker: unknown = prototype.constructor;
  return typeof maker === "function" && typeof maker.name === "string" ? maker.name : "";
}

function isError(value: object): value is Error {
  return value instanceof Error || Object.prototype.toString.call(value) === "[object Error]";
}

/** Marks of the engine's own. Known by their tag, not by their class: another copy of this package has classes of its own. */
function writeMark(value: object, w: Writing): string | null {
  switch (Object.prototype.toString.call(value)) {
    case REDACTED_CLASS:
      return `{"${REDACTED_TAG}":${writeString(String((value as Redacted).kind), w)}}`;
    case SECRET_CLASS:
      return `{"${SECRET_TAG}":${writeString(String((value as Secret).name), w)}}`;
    default:
      return null;
  }
}

function writeBuiltin(className: string, value: object, w: Writing): string | null {
  switch (className) {
    case "Date":
      return writeDate(value as Date);
    case "Map":
      return writeMap(value as Map<unknown, unknown>, w);
    case "Set":
      return writeSet(value as Set<unknown>, w);
    case "RegExp":
      return writeRegExp(value as RegExp, w);
    case "URL":
      return `{"$url":${writeString((value as URL).href, w)}}`;
    case "ArrayBuffer":
      count(w, 0, (value as ArrayBuffer).byteLength);
      return writeBytes("ArrayBuffer", value as ArrayBuffer);
    default:
      return null;
  }
}

function writeView(kind: string, value: ArrayBufferView, w: Writing): string {
  count(w, 0, value.byteLength);
  return writeBytes(kind, value);
}

function writeDate(date: Date): string {
  return Number.isNaN(Date.prototype.getTime.call(date))
    ? '{"$date":null}'
    : `{"$date":"${Date.prototype.toISOString.call(date)}"}`;
}

function writeRegExp(regexp: RegExp, w: Writing): string {
  const { source, flags, lastIndex } = regexp;
  const position = Number.isInteger(lastIndex) && lastIndex !== 0 ? `,${lastIndex}` : "";
  return `{"$regexp":[${writeString(source, w)},${writeString(flags, w)}${position}]}`;
}

function writeMap(map: Map<unknown, unknown>, w: Writing): string {
  count(w, 2 * map.size, 0);
  const entries: string[] = [];
  // The prototype's own iterator throws on anything but a true Map, and no instance can have overridden it.
  for (const [key, value] of Map.prototype.entries.call(map)) {
    w.path.push(entries.length);
    entries.push(`[${writeAt("key", key, w)},${writeAt("value", value, w)}]`);
    w.path.pop();
  }
  return `{"$map":[${entries.join(",")}]}`;
}

function writeSet(set: Set<unknown>, w: Writing): string {
  count(w, set.size, 0);
  const values: string[] = [];
  for (const value of Set.prototype.values.call(set)) values.push(writeAt(values.length, value, w));
  return `{"$set":[${values.join(",")}]}`;
}

function writeArray(array: readonly unknown[], w: Writing): string {
  count(w, array.length, 0);
  refuseExtraKey(array);
  let text = "[";
  for (let i = 0; i < array.length; i++) {
    if (i > 0) text += ",";
    w.path.push(i);
    const value = array[i];
    text += value === undefined && !Object.hasOwn(array, i) ? '{"$hole":true}' : write(value, w);
    w.path.pop();
  }
  return `${text}]`;
}

function refuseExtraKey(array: readonly unknown[]): void {
  // Indexes come first in the order of keys, so the last key shows whether there is any other.
  const last = Object.keys(array).at(-1);
  if (last === undefined || (String(Number(last)) === last && Number(last) < array.length)) return;
  throw new Refusal(
    `is an array with a property of its own, ${quote(last)}, which cannot be stored`,
    "Pass a plain array, for example [...it], or an object.",
  );
}

function writeRecord(record: Readonly<Record<string, unknown>>, w: Writing): string {
  for (const symbol of Object.getOwnPropertySymbols(record)) {
    if (!Object.prototype.propertyIsEnumerable.call(record, symbol)) continue;
    throw new Refusal(`has a symbol as a key, ${String(symbol)}, which cannot be stored`, "Use a string as the key.");
  }
  const keys = Object.keys(record);
  count(w, keys.length, 0);
  let text = "{";
  for (const key of keys) {
    if (text.length > 1) text += ",";
    w.path.push(key);
    text += `${writeString(key, w)}:${write(record[key], w)}`;
    w.path.pop();
  }
  text += "}";
  return keys.length === 1 && keys[0]!.startsWith("$") ? `{"$":${text}}` : text;
}

const ERROR_SLOTS = new Set(["name", "message", "stack", "cause"]);

/**
 * Errors must be recordable whatever libraries hang on them (sockets, requests, cycles), or the record would show
 * the failure to record and hide the failure: a field that cannot be stored is left out.
 */
function writeError(error: Error, w: Writing): string {
  const message = readText(() => error.message, "");
  let text = `{"$error":{"name":${writeString(errorName(error), w)},"message":${writeString(message, w)}`;
  if (Object.hasOwn(error, "cause")) {
    const cause = writeField("cause", error, w);
    if (cause !== null) text += `,"cause":${cause}`;
  }
  // As AggregateError has them; enumerable ones are a field like any other.
  if (Object.hasOwn(error, "errors") && !Object.prototype.propertyIsEnumerable.call(error, "errors")) {
    const errors = writeField("errors", error, w);
    if (errors !== null) text += `,"errors":${errors}`;
  }
  const fields: string[] = [];
  for (const key of fieldsOf(error)) {
    const field = writeField(key, error, w);
    if (field !== null) fields.push(`${JSON.stringify(key)}:${field}`);
  }
  if (fields.length > 0) text += `,"fields":{${fields.join(",")}}`;
  return `${text}}}`;
}

function fieldsOf(error: Error): string[] {
  const keys = Object.keys(error).filter((key) => !ERROR_SLOTS.has(key));
  // DOMException and many classes have the code as a getter of the prototype; programs branch on it all the same.
  const code = readOr(() => (error as { code?: unknown }).code, null);
  const isInherited = !Object.hasOwn(error, "code") && (typeof code === "string" || typeof code === "number");
  return isInherited ? ["code", ...keys] : keys;
}

function writeField(key: string, error: Error, w: Writing): string | null {
  const path = w.path.length;
  const around = w.around.length;
  const { nodes, chars } = w;
  try {
    count(w, 1, 0);
    return writeAt(key, (error as unknown as Record<string, unknown>)[key], w);
  } catch (thrown) {
    // Fields that fail inside fields that fail would otherwise be tried again and again, twice as often a level.
    w.wasted += w.nodes - nodes;
    if (w.wasted > MAX_NODES) throw thrown;
    w.path.length = path;
    w.around.length = around;
    w.nodes = nodes;
    w.chars = chars;
    return null;
  }
}

/** A subclass that never set its name answers with its parent's: its own says more. */
function errorName(error: Error): string {
  const name = readText(() => error.name, "Error");
  if (Object.hasOwn(error, "name") || !builtinErrors.has(name)) return name;
  return readOr(() => classNameOf(Object.getPrototypeOf(error)), "") || name;
}

function writeAt(key: string | number, value: unknown, w: Writing): string {
  w.path.push(key);
  const text = write(value, w);
  w.path.pop();
  return text;
}

function count(w: Writing, nodes: number, chars: number): void {
  if (w.nodes + nodes > w.room.nodes) {
    throw new Refusal(
      `brings the number of values to more than ${w.room.nodes}`,
      "Split the data, or keep it elsewhere and pass a reference to it.",
    );
  }
  if (w.chars + chars > w.maxChars) throw new Oversize();
  w.nodes += nodes;
  w.chars += chars;
}

function readOr<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

function readText(read: () => unknown, otherwise: string): string {
  return readOr(() => String(read()), otherwise);
}

const LONGEST_KEY = 60;

function quote(key: string): string {
  return JSON.stringify(key.length > LONGEST_KEY ? `${key.slice(0, LONGEST_KEY)}…` : key);
}

function formatPath(root: string, path: readonly (string | number)[]): string {
  let text = root;
  for (const key of path) {
    if (typeof key === "number") text += `[${key}]`;
    else if (key.length <= LONGEST_KEY && /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(key)) text += `.${key}`;
    else text += `[${quote(key)}]`;
  }
  return text;
}
