// The document of the API, made from the table of routes: what is not in it is not there, and what is there is in it.
import type { ErrorCode } from "../base/errors.ts";
import type { Route } from "./route.ts";
import { type Fields, type JsonSchema, object, type Shape, text } from "./shape.ts";

export interface ApiDocument {
  readonly openapi: "3.1.0";
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: object;
}

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly "x-role": string;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Content }>>;
}

type Content = Readonly<Record<string, { readonly schema: JsonSchema | { readonly $ref: string } }>>;

interface Parameter {
  readonly name: string;
  readonly in: "path" | "query";
  readonly required: boolean;
  readonly description: string;
  readonly schema: JsonSchema;
}

const ERROR: Shape = object("What went wrong.", {
  error: object(
    "An error.",
    { code: text("A stable code."), message: text("What happened, and what to do.", { max: 100_000 }) },
    { open: true },
  ),
});

/** What most routes may answer besides. */
const FAILURES: readonly (readonly [status: string, code: ErrorCode])[] = [
  ["400", "invalid_argument"],
  ["401", "unauthenticated"],
  ["403", "forbidden"],
  ["404", "not_found"],
  ["409", "run_ended"],
  ["410", "cursor_expired"],
  ["413", "too_large"],
  ["415", "unsupported_media_type"],
  ["422", "schema_mismatch"],
  ["429", "rate_limited"],
  ["503", "storage_unavailable"],
];

const FAILURE_REF = { $ref: "#/components/schemas/Error" };

export function apiDocument(routes: readonly Route[], version: string): ApiDocument {
  const paths: Record<string, Record<string, Operation>> = {};
  for (const { spec } of routes) {
    const path = spec.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [spec.method.toLowerCase()]: operationOf(spec) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Pawl",
      version,
      description: "Runs, approvals, schedules and workers of a Pawl store. Roles: viewer, operator, approver, admin.",
    },
    paths,
    components: {
      schemas: { Error: ERROR.schema },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer" },
        session: { type: "apiKey", in: "cookie", name: "pawl_session" },
      },
    },
  };
}

function operationOf(spec: Route["spec"]): Operation {
  const isOpen = spec.role === "public" || spec.role === "own";
  const { status = 200, answer, answers = "application/json" } = spec;
  const body = spec.body === undefined ? null : object("", spec.body).schema;
  const content: Content = { [answers]: { schema: answer?.schema ?? { type: "string" } } };
  return {
    operationId: `${spec.method.toLowerCase()}${spec.path.replace(/[^A-Za-z]+([A-Za-z])/g, (_, letter) => letter.toUpperCase())}`,
    summary: spec.summary,
    tags: [spec.path.split("/")[2] ?? "pages"],
    "x-role": spec.role,
    security: isOpen ? [] : [{ bearer: [] }, { session: [] }],
    parameters: [...pathParameters(spec.path), ...queryParameters(spec.query ?? {})],
    ...(body !== null && {
      requestBody: { required: (body.required ?? []).length > 0, content: { [typeOf(spec)]: { schema: body } } },
    }),
    responses: {
      [String(status)]: { description: answer?.schema.description ?? "As its content type says.", content },
      ...Object.fromEntries(
        FAILURES.map(([code, example]) => [
          code,
          { description: `Such as \`${example}\`.`, content: { "application/json": { schema: FAILURE_REF } } },
        ]),
      ),
    },
  };
}

function typeOf({ reads = "json" }: Route["spec"]): string {
  return { json: "application/json", form: "application/x-www-form-urlencoded", bytes: "application/octet-stream" }[
    reads
  ];
}

function pathParameters(path: string): Parameter[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    description: "As lists have it.",
    schema: { type: "string" },
  }));
}

function queryParameters(fields: Fields): Parameter[] {
  return Object.entries(fields).map(
    ([
      name,
      {
        schema: { description = "", ...schema },
        isOptional,
      },
    ]) => ({
      name,
      in: "query",
      required: !isOptional,
      description,
      schema,
    }),
  );
}
