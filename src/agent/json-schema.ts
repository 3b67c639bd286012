// JSON schemas
// Models are told of tools and answers by JSON schema. It comes from the user's schema where that can be written so, or is given as it is.
import { PawlError } from "../base/errors.ts";
import { type SchemaResult, type StandardSchema, validate } from "../core/schema.ts";

/** Arguments by a schema, or by plain JSON schema. */
type AnyInput = StandardSchema | { readonly jsonSchema: object };

/** What Standard JSON Schema adds to a Standard Schema. */
interface Convertible {
  readonly jsonSchema?: { input?(options: { readonly target: string }): object };
}

/** What providers understand. */
const TARGET = "draft-07";

/** The JSON schema of an input, for models. */
export function jsonSchemaOf(input: AnyInput, where: string): object {
  if (!isStandard(input)) {
    if (typeof input?.jsonSchema === "object" && input.jsonSchema !== null) return input.jsonSchema;
    throw noSchema(where, "it is none");
  }
  const standard = input["~standard"] as Convertible & { readonly vendor: string };
  if (typeof standard.jsonSchema?.input !== "function")
    throw noSchema(where, `schemas of ${standard.vendor} cannot be written as JSON schema by themselves`);
  try {
    const { $schema: _, ...schema } = standard.jsonSchema.input({ target: TARGET }) as Record<string, unknown>;
    return schema;
  } catch (cause) {
    throw noSchema(where, "it has parts that JSON schema has no word for", cause);
  }
}

/** The same, where a schema that cannot be written so is no reason to fail. */
export function jsonSchemaIfAny(input: AnyInput): object | null {
  try {
    return jsonSchemaOf(input, "");
  } catch {
    return null;
  }
}

function noSchema(where: string, why: string, cause?: unknown): PawlError {
  return new PawlError(
    "invalid_argument",
    `The schema of ${where} cannot be shown to a model: ${why}. Give a zod, arktype or other schema with \`~standard.jsonSchema\`, or { jsonSchema: { type: "object", … } }.`,
    { fields: { where, field: "input" }, cause },
  );
}

function isStandard(input: AnyInput): input is StandardSchema {
  return typeof input === "object" || typeof input === "function" ? input !== null && "~standard" in input : false;
}

/** Arguments as the schema makes them. Throws `schema_mismatch`. */
export async function checkedInput(input: AnyInput, value: unknown, what: string): Promise<unknown> {
  if (isStandard(input)) return validate(input, value, what);
  const problems = problemsOf(input.jsonSchema as JsonSchema, value, "");
  const result: SchemaResult<unknown> = problems.length === 0 ? { value } : { issues: problems };
  return validate(
    { "~standard": { version: 1, vendor: "pawl", validate: () => result } } satisfies StandardSchema,
    value,
    what,
  );
}

// A check in outline, for schemas that come as JSON: types, required and unknown properties, and fixed values. Whoever gave the schema checks the
// rest: an MCP server does.

interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
  readonly items?: JsonSchema;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
}

interface Problem {
  readonly message: string;
  readonly path: readonly string[];
}

function problemsOf(schema: JsonSchema, value: unknown, at: string): Problem[] {
  const problem = (message: string, where = at): Problem => ({ message, path: where === "" ? [] : [where] });
  const types = schema.type === undefined ? [] : [schema.type].flat();
  if (types.length > 0 && !types.some((type) => isOfType(type, value)))
    return [problem(`expected ${types.join(" or ")}, received ${typeName(value)}`)];
  const fixed = schema.enum ?? ("const" in schema ? [schema.const] : null);
  if (fixed !== null && !fixed.some((one) => JSON.stringify(one) === JSON.stringify(value)))
    return [problem(`expected one of ${fixed.map((one) => JSON.stringify(one)).join(", ")}`)];
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined ? [] : value.flatMap((one, index) => problemsOf(items, one, join(at, String(index))));
  }
  if (typeof value !== "object" || value === null) return [];
  const { properties = {}, required = [], additionalProperties } = schema;
  const missing = required.filter((name) => !Object.hasOwn(value, name));
  return [
    ...missing.map((name) => problem("is required", join(at, name))),
    ...Object.entries(value).flatMap(([name, inner]) => {
      if (Object.hasOwn(properties, name)) return problemsOf(properties[name]!, inner, join(at, name));
      return additionalProperties === false ? [problem("is not known", join(at, name))] : [];
    }),
  ];
}

function join(at: string, name: string): string {
  return at === "" ? name : `${at}.${name}`;
}

function isOfType(type: string, value: unknown): boolean {
  if (type === "integer") return Number.isInteger(value);
  if (type === "number") return typeof value === "number";
  return type === typeName(value);
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}
