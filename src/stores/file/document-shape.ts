import { RUN_STATES } from "../../core/transition.ts";
import {
  anything,
  count,
  dictionary,
  flag,
  list,
  Misfit,
  nullable,
  number,
  oneOf,
  optional,
  record,
  type Shape,
  text,
} from "./shape.ts";

/** The version of the engine's part of a document, and of a directory. */
export const FORMAT = 1;

const status = oneOf("pending", "in_progress", "done", "failed");

const format: Shape = (value, path) => {
  count(value, path);
  if (value !== FORMAT) throw new Misfit(path, value, `${FORMAT}; a later one needs a later version of Pawl`);
};

const data: Shape = (value, path) => {
  if (value === null) return;
  record({ text: optional(text), base64: optional(base64) })(value, path);
  const tags = Object.keys(value as object);
  if (tags.length !== 1 || !["json", "text", "base64"].includes(tags[0] as string))
    throw new Misfit(path, value, 'null, { "json": … }, { "text": … }, { "base64": … }');
};

const given: Shape = (value, path) => {
  if (value === null) throw new Misfit(path, value, '{ "json": … }, { "text": … }, { "base64": … }');
  data(value, path);
};

const base64: Shape = (value, path) => {
  text(value, path);
  if (Buffer.from(value as string, "base64").toString("base64") !== value) throw new Misfit(path, value, "base64");
};

const parent = record({ run: text, key: text, generation: count, detached: flag });

const row = record({
  id: text,
  workflow: text,
  version: version("1.0.0"),
  state: oneOf(...RUN_STATES),
  traceId: text,
  key: nullable(text),
  tags: list(text),
  priority: number,
  parent: nullable(parent),
  origin: nullable(text),
  createdAt: number,
  endedAt: nullable(number),
  deadline: nullable(number),
  head: count,
  headHash: text,
  owner: nullable(text),
  readyAt: nullable(number),
  wakeAt: nullable(number),
  wake: count,
  cancel: nullable(text),
  claims: count,
  stopReason: nullable(text),
  progress: nullable(text),
  cost: nullable(text),
  codec: text,
  slot: nullable(text),
  rate: nullable(text),
});

function version(example: string): Shape {
  return (value, path) => {
    if (typeof value !== "string" || !/^\d+\.\d+\.\d+$/.test(value))
      throw new Misfit(path, value, `a version such as ${example}`);
  };
}

const entry = record({ seq: count, at: number, type: text, key: nullable(text), data, hash: text });

const journal: Shape = (value, path) => {
  list(entry)(value, path);
  for (const [index, { seq }] of (value as { seq: number }[]).entries())
    if (seq !== index) throw new Misfit(`${path}[${index}].seq`, seq, String(index));
};

const newRun = record({
  workflow: text,
  version: version("1.0.0"),
  traceId: text,
  key: nullable(text),
  tags: list(text),
  priority: number,
  parent: nullable(parent),
  origin: nullable(text),
  deadline: nullable(number),
  claimed: flag,
  readyAt: number,
  codec: text,
  needs: optional(nullable(record({ slot: text, rate: nullable(text) }))),
});

export const MAIL_KINDS = ["signal", "child", "decision", "approval", "callback", "cancel"] as const;

/** A message, as it stands in an outbox or in a letter of the mail folder. */
export const messageShape: Shape = record({ to: text, id: text, kind: oneOf(...MAIL_KINDS), name: text, data });

const outboxItem: Shape = (value, path) => {
  record({
    at: number,
    child: optional(record({ run: text, create: newRun, entry })),
    message: optional(messageShape),
  })(value, path);
  const { child, message } = value as { readonly child?: unknown; readonly message?: unknown };
  if ((child === undefined) === (message === undefined))
    throw new Misfit(path, value, "an object with either child or message");
};

const start = record({ rate: text, at: number, until: number });

/** What the engine needs. */
export const engineShape: Shape = record({
  format,
  number: count,
  row,
  claimed_head: count,
  journal,
  inbox: list(
    record({
      n: count,
      id: text,
      kind: oneOf(...MAIL_KINDS.filter((kind) => kind !== "cancel")),
      name: text,
      data,
      at: number,
      consumed: flag,
    }),
  ),
  waits: list(record({ key: text, kind: text, name: text, due: nullable(number), detail: nullable(text) })),
  state: list(record({ key: text, data: given })),
  keys: list(record({ space: text, key: text, digest: text, number: count })),
  counters: dictionary(number),
  holds: dictionary(number),
  begun: list(start),
  outbox: list(outboxItem),
  accepted: list(record({ at: number, by: text, reason: text })),
});

const step = record({ status });

const phase = record({ status, steps: optional(dictionary(step)) });

/** A whole document: what people read, what the engine needs, and the checksum of both. */
export const documentShape: Shape = record({
  workflow_id: text,
  workflow: text,
  workflow_version: text,
  started_at: text,
  updated_at: text,
  status,
  phase: nullable(text),
  phases: dictionary(phase),
  state: optional(anything),
  engine: engineShape,
  checksum: text,
});

/** What belongs to no run. */
export const leftoversShape: Shape = record({
  format,
  counters: dictionary(number),
  starts: list(start),
  absorbed: list(text),
  checksum: text,
});
