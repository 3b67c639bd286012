import { PawlError } from "../base/errors.ts";

/** The part of Standard Schema that Pawl uses: zod, valibot, arktype and others satisfy it. */
export interface StandardSchema<I = unknown, O = I> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<O> | Promise<SchemaResult<O>>;
    readonly types?: { readonly input: I; readonly output: O } | undefined;
  };
}

export type SchemaResult<O> =
  | { readonly value: O; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

export type SchemaInput<S> = S extends StandardSchema<infer I, unknown> ? I : never;
export type SchemaOutput<S> = S extends StandardSchema<unknown, infer O> ? O : never;

/** Checks a value that is about to be recorded. Replay never does (P7). */
export async function validate(schema: StandardSchema | undefined, value: unknown, what: string): Promise<unknown> {
  return schema === undefined ? value : accept(await schema["~standard"].validate(value), what);
}

/** Like `validate`, where the body cannot wait: a schema that answers with a promise is refused. */
export function validateNow(schema: StandardSchema | undefined, value: unknown, what: string): unknown {
  if (schema === undefined) return value;
  const result = schema["~standard"].validate(value);
  if (result instanceof Promise) {
    result.catch(() => {});
    throw new PawlError(
      "invalid_argument",
      `The schema of ${what} answers with a promise. Use a schema without asynchronous checks here.`,
      {
        fields: { what },
      },
    );
  }
  return accept(result, what);
}

function accept(result: SchemaResult<unknown>, what: string): unknown {
  if (result.issues === undefined) return result.value;
  const issues = result.issues.map((issue) => `${pathOf(issue)}${issue.message}`);
  throw new PawlError(
    "schema_mismatch",
    `${what} does not fit its schema: ${issues.join("; ")}. Nothing was recorded; correct the value and call again.`,
    {
      fields: { what, issues },
    },
  );
}

function pathOf(issue: SchemaIssue): string {
  const keys = (issue.path ?? []).map((part) => String(typeof part === "object" ? part.key : part));
  return keys.length === 0 ? "" : `${keys.join(".")}: `;
}
