// Reading state documents
// Documents come from other engines, other versions and editors. What is read here is checked field by field; the first thing that is wrong is
// named by its path, with what is allowed there. What is only odd gives a warning: the statuses decide.
import { PawlError } from "../base/errors.ts";
import { isVersion } from "../base/semver.ts";
import { DOCUMENT_VERSION, type PhaseRecord, type StateDocument, type StepRecord } from "./state-document.ts";
import { DOCUMENT_STATUSES } from "./status-words.ts";

/** A document that somebody else may have written: what it must have, and what it may. */
export type GivenDocument = Pick<StateDocument, "workflow_id" | "workflow_version" | "started_at" | "phases"> &
  Partial<StateDocument>;

export interface ReadDocument {
  readonly document: GivenDocument;
  /** The field with the key of the business, if there is one and it can be told. */
  readonly correlation: { readonly field: string; readonly key: string } | null;
  /** What is odd about it and does no harm, as sentences. */
  readonly warnings: readonly string[];
}

type Check = (value: unknown, path: string) => void;
type Fields = Readonly<Record<string, Check>>;

const OFFSET_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)$/;
const HASH = /^(sha256:)?[0-9a-f]{64}$/;

const text: Check = (value, path) => {
  if (typeof value !== "string" || value === "") throw invalid(path, value, "text that is not empty");
};
const textOrNull: Check = (value, path) => {
  if (value !== null) text(value, path);
};
const count: Check = (value, path) => {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw invalid(path, value, "a whole number");
};
const truth: Check = (value, path) => {
  if (value !== true) throw invalid(path, value, "true, or no such field");
};
const list: Check = (value, path) => {
  if (!Array.isArray(value)) throw invalid(path, value, "a list");
};
const names: Check = (value, path) => {
  list(value, path);
  for (const [index, name] of (value as unknown[]).entries()) text(name, `${path}[${index}]`);
};
const object: Check = (value, path) => {
  if (!isRecord(value)) throw invalid(path, value, "an object");
};
const time: Check = (value, path) => {
  if (typeof value !== "string" || !OFFSET_TIME.test(value) || Number.isNaN(Date.parse(value)))
    throw invalid(path, value, 'a time with its offset, such as "2026-06-01T10:00:00+08:00"');
};
const status: Check = (value, path) => {
  if (!(DOCUMENT_STATUSES as readonly unknown[]).includes(value))
    throw invalid(path, value, `one of ${DOCUMENT_STATUSES.join(", ")}`, DOCUMENT_STATUSES);
};
const hash: Check = (value, path) => {
  if (typeof value !== "string" || !HASH.test(value)) throw invalid(path, value, '"sha256:" and 64 hex digits');
};
const bytes: Check = (value, path) => {
  if (value !== "bytes") throw invalid(path, value, '"bytes", or no such field', ["bytes"]);
};
const files: Check = (value, path) => {
  list(value, path);
  for (const [index, file] of (value as unknown[]).entries()) {
    object(file, `${path}[${index}]`);
    text((file as Record<string, unknown>)["file"], `${path}[${index}].file`);
    checkOptional(file as Record<string, unknown>, { hash, size: count, form: bytes }, `${path}[${index}].`);
  }
};
const version: Check = (value, path) => {
  if (!isVersion(value)) throw invalid(path, value, 'a version such as "1.3.0"');
};
const format: Check = (value, path) => {
  if (value !== DOCUMENT_VERSION) throw invalid(path, value, String(DOCUMENT_VERSION), [DOCUMENT_VERSION]);
};

const REQUIRED: Fields = { workflow_id: text, workflow_version: version, started_at: time, phases: object };

const OPTIONAL: Fields = {
  workflow: text,
  schema_version: format,
  correlation_field: text,
  updated_at: time,
  sequence: count,
  status,
  waiting_for: list,
  compensating: truth,
  cancelled: truth,
  phase: textOrNull,
  step_number: count,
  phase_order: names,
  effects: list,
  approvals: list,
  state: object,
  cost: object,
  error: text,
  stop_reason: text,
  trace_id: text,
  caller: text,
  deadline: time,
};

/** Fields that may hold anything. */
const FREE: readonly string[] = ["input", "result", "engine", "checksum"];

const STEP: Fields = {
  status,
  started_at: time,
  completed_at: time,
  attempts: count,
  output_file: text,
  output_hash: hash,
  output_size: count,
  output_form: bytes,
  output_files: files,
  error: text,
  done_by: text,
  skipped: text,
};

const PHASE: Fields = { ...STEP, step: textOrNull, step_order: names, steps: object };

/** Checks that a value is a state document; throws `invalid_state_document` with the path of what is wrong and what is allowed there. */
export function readStateDocument(value: unknown): ReadDocument {
  if (!isRecord(value)) throw invalid("", value, "an object: the document");
  for (const [field, check] of Object.entries(REQUIRED)) {
    if (value[field] === undefined) throw missing(field);
    check(value[field], field);
  }
  checkOptional(value, OPTIONAL, "");
  for (const [name, phase] of Object.entries(value["phases"] as object)) checkPhase(phase, `phases.${name}`);
  const document = value as unknown as GivenDocument;
  return { document, correlation: correlationIn(value), warnings: warningsOf(document) };
}

function checkPhase(phase: unknown, path: string): void {
  checkRecord(phase, PHASE, path);
  for (const [name, step] of Object.entries((phase as PhaseRecord).steps ?? {}))
    checkRecord(step, STEP, `${path}.steps.${name}`);
}

function checkRecord(record: unknown, fields: Fields, path: string): void {
  object(record, path);
  if ((record as Record<string, unknown>)["status"] === undefined) throw missing(`${path}.status`);
  checkOptional(record as Record<string, unknown>, fields, `${path}.`);
}

function checkOptional(record: Readonly<Record<string, unknown>>, fields: Fields, path: string): void {
  for (const [field, check] of Object.entries(fields))
    if (record[field] !== undefined) check(record[field], `${path}${field}`);
}

/** The author chooses its name: a document that does not say which field it is has it as the only one that nobody else knows. */
function correlationIn(value: Readonly<Record<string, unknown>>): ReadDocument["correlation"] {
  const named = value["correlation_field"];
  const known = new Set([...Object.keys(REQUIRED), ...Object.keys(OPTIONAL), ...FREE]);
  const others = Object.keys(value).filter((field) => !known.has(field) && typeof value[field] === "string");
  const field = typeof named === "string" ? named : others.length === 1 ? others[0] : undefined;
  const key = field === undefined ? undefined : value[field];
  return field === undefined || typeof key !== "string" ? null : { field, key };
}

// Pointers

function warningsOf({ phase, phases }: GivenDocument): string[] {
  return [
    ...pointerWarnings("phase", phase, phases, "phases"),
    ...Object.entries(phases).flatMap(([name, record]) => [
      ...pointerWarnings(`phases.${name}.step`, record.step, record.steps ?? {}, `phases.${name}.steps`),
      ...phaseWarnings(name, record),
    ]),
  ];
}

function pointerWarnings(
  path: string,
  pointer: string | null | undefined,
  records: Readonly<Record<string, StepRecord>>,
  place: string,
): string[] {
  if (pointer === null || pointer === undefined) return [];
  const found = records[pointer];
  if (found === undefined) return [`${path} names "${pointer}", which is not in ${place}. The statuses decide.`];
  const first = Object.entries(records).find(([, { status }]) => status !== "done" && status !== "pending");
  if (found.status !== "done" || first === undefined) return [];
  return [`${path} names "${pointer}", which is done, while "${first[0]}" is ${first[1].status}. The statuses decide.`];
}

function phaseWarnings(name: string, { status, steps }: PhaseRecord): string[] {
  if (status === "failed" && steps !== undefined && Object.values(steps).every((step) => step.status !== "failed"))
    return [`phases.${name} is failed, though none of its steps is. The phase's status decides: it blocks.`];
  if (status !== "done" || steps === undefined) return [];
  return Object.entries(steps).flatMap(([step, record]) =>
    record.status === "done"
      ? []
      : [`phases.${name} is done, though its step "${step}" is ${record.status}. The phase's status decides.`],
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function missing(path: string): PawlError {
  const isStatus = path.endsWith("status");
  const allowed = isStatus ? ` It is one of ${DOCUMENT_STATUSES.join(", ")}.` : "";
  return new PawlError(
    "invalid_state_document",
    `The state document has no ${path}.${allowed} Add it, or export the run again with \`pawl export RUN --document\`.`,
    { fields: { path, ...(isStatus && { allowed: DOCUMENT_STATUSES }) } },
  );
}

function invalid(path: string, value: unknown, wanted: string, allowed?: readonly (string | number)[]): PawlError {
  const where = path === "" ? "The state document" : `${path} of the state document`;
  return new PawlError(
    "invalid_state_document",
    `${where} is ${shown(value)}. Give ${wanted}. docs/reference/state-document.schema.json has the whole format.`,
    { fields: { path, ...(allowed !== undefined && { allowed }) } },
  );
}

function shown(value: unknown): string {
  const json = JSON.stringify(value) ?? "undefined";
  return json.length > 60 ? `${json.slice(0, 60)}…` : json;
}
