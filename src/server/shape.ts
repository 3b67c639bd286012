// Shapes
// What a request must look like and what an answer looks like, said once: as JSON Schema. The server checks requests with it, the OpenAPI document
// shows it, and tests hold answers against it. Only the few words of JSON Schema that are made here are understood.

/** The words of JSON Schema that shapes are made of. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly (string | null)[];
  readonly format?: "date-time";
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: JsonSchema;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
}

/** A shape of values of type `T`. */
export interface Shape<T = unknown> {
  readonly schema: JsonSchema;
  readonly isOptional: boolean;
  /** For the type alone. */
  readonly of?: T;
}

/** A shape whose property may be left out. */
export interface Optional<T> extends Shape<T> {
  readonly isOptional: true;
}

export type Fields = Readonly<Record<string, Shape>>;

type Known<S> = S extends Shape<infer T> ? T : never;
type OptionalKeys<F extends Fields> = { [K in keyof F]: F[K] extends { isOptional: true } ? K : never }[keyof F];

/** The values that fit all fields. */
export type ValuesOf<F extends Fields> = {
  readonly [K in Exclude<keyof F, OptionalKeys<F>>]: Known<F[K]>;
} & { readonly [K in OptionalKeys<F>]?: Known<F[K]> };

function shape<T>(schema: JsonSchema): Shape<T> {
  return { schema, isOptional: false };
}

/** Texts in requests are short unless a route says something else. */
const TEXT_LENGTH = 1024;

export function text(description: string, { max = TEXT_LENGTH }: { readonly max?: number } = {}): Shape<string> {
  return shape({ type: "string", description, minLength: 1, maxLength: max });
}

export function whole(description: string, minimum: number, maximum: number = Number.MAX_SAFE_INTEGER): Shape<number> {
  return shape({ type: "integer", description, minimum, maximum });
}

export function amount(description: string): Shape<number> {
  return shape({ type: "number", description });
}

export function flag(description: string): Shape<boolean> {
  return shape({ type: "boolean", description });
}

export function oneOf<const W extends string>(description: string, words: readonly W[]): Shape<W> {
  return shape({ type: "string", description, enum: words });
}

/** A moment, as ISO 8601 text. */
export function moment(description: string): Shape<string> {
  return shape({ type: "string", format: "date-time", description });
}

export function anything(description: string): Shape<unknown> {
  return shape({ description });
}

export function listOf<T>(
  description: string,
  items: Shape<T>,
  { max }: { readonly max?: number } = {},
): Shape<readonly T[]> {
  return shape({ type: "array", description, items: items.schema, ...(max !== undefined && { maxItems: max }) });
}

/** An object with these properties, and no others unless it is `open`. */
export function object<F extends Fields>(
  description: string,
  fields: F,
  { open = false }: { readonly open?: boolean } = {},
): Shape<ValuesOf<F>> {
  const entries = Object.entries(fields);
  return shape({
    type: "object",
    description,
    properties: Object.fromEntries(entries.map(([name, field]) => [name, field.schema])),
    required: entries.filter(([, field]) => !field.isOptional).map(([name]) => name),
    ...(!open && { additionalProperties: false }),
  });
}

/** An object with any keys, whose values all have this shape. */
export function mapOf<T>(description: string, values: Shape<T>): Shape<Readonly<Record<string, T>>> {
  return shape({ type: "object", description, additionalProperties: values.schema });
}

export function optional<T>({ schema }: Shape<T>): Optional<T> {
  return { schema, isOptional: true };
}

export function nullable<T>({ schema }: Shape<T>): Shape<T | null> {
  const { description, ...rest } = schema;
  return shape({ anyOf: [rest, { type: "null" }], ...(description !== undefined && { description }) });
}

/** Where a value does not fit, and why; `null` if it does. */
export interface Misfit {
  readonly path: string;
  readonly why: string;
}

export function misfitOf(schema: JsonSchema, value: unknown, path = ""): Misfit | null {
  if (schema.anyOf !== undefined) {
    const found = schema.anyOf.map((one) => misfitOf(one, value, path));
    return found.includes(null) ? null : (found[0] ?? null);
  }
  const misfit = (why: string): Misfit => ({ path, why });
  if (schema.type !== undefined && ![schema.type].flat().includes(kindOf(value, schema)))
    return misfit(`is ${nameOf(value)}, not ${[schema.type].flat().join(" or ")}`);
  if (schema.enum !== undefined && !schema.enum.includes(value as string | null))
    return misfit(`is none of: ${schema.enum.join(", ")}`);
  if (typeof value === "string") return textMisfit(schema, value, misfit);
  if (typeof value === "number") {
    if (value < (schema.minimum ?? -Infinity)) return misfit(`is less than ${schema.minimum}`);
    return value > (schema.maximum ?? Infinity) ? misfit(`is more than ${schema.maximum}`) : null;
  }
  if (Array.isArray(value)) return listMisfit(schema, value, path);
  return typeof value === "object" && value !== null ? objectMisfit(schema, value, path) : null;
}

function kindOf(value: unknown, { type }: JsonSchema): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number" && Number.isInteger(value) && [type].flat().includes("integer")) return "integer";
  return typeof value;
}

function nameOf(value: unknown): string {
  return value === undefined ? "missing" : kindOf(value, {});
}

function textMisfit(schema: JsonSchema, value: string, misfit: (why: string) => Misfit): Misfit | null {
  if (value.length < (schema.minLength ?? 0)) return misfit("is empty");
  if (value.length > (schema.maxLength ?? Infinity)) return misfit(`has more than ${schema.maxLength} characters`);
  if (schema.format === "date-time" && (!/^\d{4}-\d\d-\d\d/.test(value) || Number.isNaN(Date.parse(value))))
    return misfit("is no date such as 2026-11-15T08:00:00Z");
  return null;
}

function listMisfit({ items, maxItems = Infinity }: JsonSchema, value: unknown[], path: string): Misfit | null {
  if (value.length > maxItems) return { path, why: `has more than ${maxItems} items` };
  if (items === undefined) return null;
  for (const [index, item] of value.entries()) {
    const found = misfitOf(items, item, `${path}[${index}]`);
    if (found !== null) return found;
  }
  return null;
}

function objectMisfit(schema: JsonSchema, value: object, path: string): Misfit | null {
  const { properties = {}, required = [], additionalProperties = true } = schema;
  const inside = (key: string) => (path === "" ? key : `${path}.${key}`);
  const missing = required.find((key) => !Object.hasOwn(value, key) || (value as never)[key] === undefined);
  if (missing !== undefined) return { path: inside(missing), why: "is missing" };
  for (const [key, item] of Object.entries(value)) {
    const known = Object.hasOwn(properties, key) ? properties[key] : additionalProperties;
    if (known === false) return { path: inside(key), why: "is not known here" };
    const found =
      known === true || known === undefined || item === undefined ? null : misfitOf(known, item, inside(key));
    if (found !== null) return found;
  }
  return null;
}
