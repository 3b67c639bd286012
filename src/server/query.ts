import { PawlError } from "../base/errors.ts";
import { type Fields, type JsonSchema, misfitOf } from "./shape.ts";

/** The parameters of an address as values. One that the route does not know is refused: it would be ignored in silence. */
export function readQuery(fields: Fields, given: URLSearchParams): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const name of new Set(given.keys())) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (field === undefined)
      throw refused(name, `is not known here. Known are: ${Object.keys(fields).join(", ") || "none"}`);
    const [text = "", second] = given.getAll(name);
    if (second !== undefined) throw refused(name, "is there twice. Give it once");
    const value = parsed(field.schema, text);
    const misfit = misfitOf(field.schema, value);
    if (misfit !== null) throw refused(name, `${misfit.why}. Correct it`);
    values[name] = value;
  }
  const missing = Object.entries(fields).find(([name, field]) => !field.isOptional && !(name in values));
  if (missing !== undefined) throw refused(missing[0], "is missing. Give it");
  return values;
}

function parsed({ type }: JsonSchema, text: string): unknown {
  if (type === "integer" || type === "number") return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
  if (type === "boolean") return text === "true" ? true : text === "false" ? false : text;
  return text;
}

function refused(name: string, why: string): PawlError {
  return new PawlError("invalid_argument", `The parameter \`${name.slice(0, 60)}\` ${why}.`, {
    fields: { field: name.slice(0, 60) },
  });
}
