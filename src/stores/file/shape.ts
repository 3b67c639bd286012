// What a value of a document must look like. A value that does not fit is named by its path, with what is allowed there (E-3).

/** Throws a `Misfit` unless the value fits. */
export type Shape = (value: unknown, path: string) => void;

/** A value that does not fit. */
export class Misfit extends Error {
  readonly path: string;
  readonly found: string;
  readonly allowed: string;

  constructor(path: string, found: unknown, allowed: string) {
    const shown = found === undefined ? "missing" : excerpt(found);
    super(`${path === "" ? "The document" : path} is ${shown}. Allowed: ${allowed}.`);
    this.path = path;
    this.found = shown;
    this.allowed = allowed;
  }
}

function excerpt(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

export const text: Shape = (value, path) => {
  if (typeof value !== "string") throw new Misfit(path, value, "text");
};

export const number: Shape = (value, path) => {
  if (typeof value !== "number" || !Number.isFinite(value)) throw new Misfit(path, value, "a number");
};

export const count: Shape = (value, path) => {
  if (!Number.isSafeInteger(value) || (value as number) < 0)
    throw new Misfit(path, value, "a whole number, 0 or greater");
};

export const flag: Shape = (value, path) => {
  if (typeof value !== "boolean") throw new Misfit(path, value, "true, false");
};

export const anything: Shape = () => {};

export function oneOf(...values: readonly string[]): Shape {
  return (value, path) => {
    if (!values.includes(value as string)) throw new Misfit(path, value, values.join(", "));
  };
}

export function nullable(shape: Shape): Shape {
  return (value, path) => {
    if (value !== null) shape(value, path);
  };
}

/** May be absent. */
export function optional(shape: Shape): Shape {
  return (value, path) => {
    if (value !== undefined) shape(value, path);
  };
}

export function list(shape: Shape): Shape {
  return (value, path) => {
    if (!Array.isArray(value)) throw new Misfit(path, value, "a list");
    for (const [index, item] of value.entries()) shape(item, `${path}[${index}]`);
  };
}

/** An object with any keys. */
export function dictionary(shape: Shape): Shape {
  return (value, path) => {
    for (const [key, inner] of Object.entries(asRecord(value, path))) shape(inner, `${path}.${key}`);
  };
}

/** An object with these fields; others may be there as well. */
export function record(fields: Readonly<Record<string, Shape>>): Shape {
  return (value, path) => {
    const found = asRecord(value, path);
    for (const [key, shape] of Object.entries(fields)) shape(found[key], path === "" ? key : `${path}.${key}`);
  };
}

function asRecord(value: unknown, path: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Misfit(path, value, "an object");
  return value as Record<string, unknown>;
}
