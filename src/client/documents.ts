// Documents that are held
// In a `file:` store a person may change a document with an editor, and a disk may damage one. Its run is held then, and nothing of it happens
// before somebody has decided: that the document counts, that its journal does, or that the run begins afresh.
//
//   HD1. What is taken over is a new generation, written with the document's new signature: there is no moment at which the run goes on without it.
//   HD2. Only what a run can go on from is taken over. What is said about the past is refused where it stands, by its path.
//   HD3. Whoever decides is in the document, and what stood there before is kept.
//   HD4. A run that begins afresh is there before the old one leaves, under an id that follows from the document: whoever is killed in between and
//        does it again finds it.
import { PawlError, readProperty } from "../base/errors.ts";
import { isName } from "../base/ids.ts";
import { isVersion } from "../base/semver.ts";
import { type Generation, generationOf } from "../core/generation.ts";
import { isOutline, isOwnKey, OUTLINE } from "../core/outline.ts";
import { rewriteCommit } from "../core/rewrite.ts";
import { validate } from "../core/schema.ts";
import { readStateDocument } from "../core/state-document-reader.ts";
import type { RunRow, Store } from "../core/store.ts";
import { openEntry } from "../core/values.ts";
import { sha256 } from "../files/atomic-file.ts";
import { defaultFolder, type PhasesWorkflow } from "../flows/phases.ts";
import { defaultCodec } from "../stores/default-codec.ts";
import type { FileStore } from "../stores/file/file-store.ts";
import type { Decider, HeldDocument } from "../stores/file/held-documents.ts";
import { assertKnown, Taking } from "./import.ts";
import { checkedRewriting, type RewriteOptions } from "./rewrite.ts";
import { opened } from "./run-state.ts";
import { type StartPorts, startRun } from "./start.ts";

export interface AcceptOptions extends Decider {
  /** The run's workflow: says where its output files are, and checks an edited input. Default: the one that this process works on. */
  readonly workflow?: PhasesWorkflow<never, unknown>;
}

export interface FreshOptions extends Decider {
  /** Although the run has done things outside, or somebody waits for it. Default false. */
  readonly force?: boolean;
}

/** What became of an edited document. */
export interface Accepted {
  /** The fields that the run goes on from now, by their paths; none if only the engine's part was changed. */
  readonly edits: readonly string[];
  readonly warnings: readonly string[];
}

interface DocumentPorts extends StartPorts {
  assertOpen(): void;
}

export class Documents {
  readonly #ports: DocumentPorts;

  constructor(ports: DocumentPorts) {
    this.#ports = ports;
  }

  /** Those that do not match their checksums, or cannot be read; none in a store that has no documents. */
  async held(): Promise<HeldDocument[]> {
    this.#ports.assertOpen();
    return isFileStore(this.#ports.store) ? this.#ports.store.heldDocuments() : [];
  }

  /** Takes a document over as somebody has edited it: its statuses decide how the run goes on. */
  async accept(run: string, options: AcceptOptions): Promise<Accepted> {
    const { store, held } = await this.#find(run);
    const { by, reason } = options;
    if (held === undefined || held.edits === null || held.row === null || held.fault !== null) {
      // Whatever is the matter, the store has the words for it.
      await store.accept(run, { by, reason });
      return { edits: [], warnings: [] };
    }
    const edits = held.edits.filter((path) => !FOLLOWS.test(path));
    const ignored = held.edits.filter((path) => FOLLOWS.test(path)).map((path) => `${path} follows from the rest.`);
    for (const path of edits) assertTakeable(held, path);
    if (edits.length === 0) {
      await store.accept(run, { by, reason });
      return { edits, warnings: ignored };
    }
    const warnings = await this.#takeOver(store, held, held.row, edits, options);
    this.#ports.worker.hint();
    return { edits, warnings: [...ignored, ...warnings] };
  }

  /** Writes a document again from its journal: what was edited or damaged above the engine's part does not count. */
  async rebuild(run: string, { by, reason }: Decider): Promise<void> {
    const { store } = await this.#find(run);
    await store.rebuild(run, { by, reason });
    this.#ports.worker.hint();
  }

  /** Gives a run up whose document is held, archives it as it is, and starts a new one with its input; gives the new run's id. */
  async fresh(run: string, { by, reason, force = false }: FreshOptions): Promise<string> {
    const { store, held } = await this.#find(run);
    if (held === undefined) {
      // Whatever is the matter, the store has the words for it.
      await store.rebuild(run, { by, reason });
      throw new Error("a document that is not held cannot be rebuilt");
    }
    if (!force) assertReplaceable(held);
    const { workflow, input, ...options } = beginningOf(held);
    const schema = this.#ports.registry.newest(workflow)?.definition.input;
    await validate(schema, input, `The input of workflow "${workflow}"`);
    await store.yieldKeys(run, { by, reason });
    const begun = await startRun(this.#ports, workflow, input, { ...options, id: freshId(held) });
    await store.setAside(run, { by, reason: `${reason} (goes on as run ${begun})` });
    return begun;
  }

  async #find(run: string): Promise<{ readonly store: FileStore; readonly held: HeldDocument | undefined }> {
    const { store, assertOpen } = this.#ports;
    assertOpen();
    if (!isFileStore(store))
      throw new PawlError(
        "invalid_argument",
        `Only runs of a file: store have documents that can be edited, and this is ${store.kind}. Edit the state of run ${run} with pawl state edit.`,
        { fields: { run, store: store.kind } },
      );
    return { store, held: (await store.heldDocuments()).find((one) => one.run === run) };
  }

  /** Gives what is odd about the document. */
  async #takeOver(
    store: FileStore,
    held: HeldDocument,
    row: RunRow,
    edits: readonly string[],
    { by, reason, workflow: given }: AcceptOptions,
  ): Promise<readonly string[]> {
    const { registry, worker } = this.#ports;
    const workflow = given ?? registry.forRun(row.workflow, row.version) ?? null;
    const before = await this.#standing(held, row, edits);
    const { document, warnings } = readStateDocument(held.document);
    assertKnown(document.phases, before.outline);
    const folder = outputsOf(store, workflow, row.id);
    const taking = new Taking(row.id, folder, folder);
    const phases = await taking.phases(document.phases);
    const options: RewriteOptions = {
      cause: "accept",
      by,
      reason,
      adopted: { ...(before.adopted as object), phases },
      ...(edits.some((path) => isIn(path, "state")) && { state: stateOf(before, document.state ?? {}) }),
      ...(edits.some((path) => isIn(path, "input")) && { input: opened(document.input, "input") }),
    };
    const rewriting = await checkedRewriting(options, workflow as never);
    await store.accept(row.id, { by, reason }, (claimed) =>
      rewriteCommit(claimed, rewriting, workflow as never, worker.ports),
    );
    return [...warnings, ...taking.warnings];
  }

  /** Where the run's own journal has come to; only one that is made of phases can be told otherwise. */
  async #standing(held: HeldDocument, row: RunRow, edits: readonly string[]) {
    const { store, codec } = this.#ports;
    const entries = (await store.journal(row.id)).map((entry) => openEntry(codec, row.id, entry));
    const before = generationOf(row.id, entries);
    const outline = before.state[OUTLINE];
    if (isOutline(outline) && row.codec === defaultCodec.id) return { ...before, outline };
    const why = isOutline(outline)
      ? "the values of the run are sealed, and its document has none of them"
      : "the run is not made with phases(…), so its journal alone says what is done";
    throw refused(held, edits[0] ?? "phases", `${why}. Use pawl state edit, or fork the run`);
  }
}

function isFileStore(store: Store): store is FileStore {
  return "heldDocuments" in store;
}

function outputsOf(store: Store, workflow: object | null, id: string): string {
  const outputs = store.files?.outputs(id);
  const run = { id, ...(outputs !== undefined && { outputs }) };
  return workflow !== null && "outputsOf" in workflow
    ? (workflow as PhasesWorkflow).outputsOf(run)
    : defaultFolder(run);
}

/** The run's own keys are not in the document, and stay. */
function stateOf({ state }: Generation, edited: object): Record<string, unknown> {
  const own = Object.entries(state).filter(([key]) => isOwnKey(key));
  return { ...Object.fromEntries(own), ...(opened(edited, "state") as object) };
}

// What may be edited

/** Fields that are computed from others: whatever stands there, the statuses decide. */
const FOLLOWS = /^(phase|step_number|phase_order|sequence|updated_at|waiting_for|phases\.[^.]+\.(step|step_order))$/;
const TAKEABLE = ["phases", "state", "input"];

function isIn(path: string, field: string): boolean {
  return path === field || path.startsWith(`${field}.`);
}

function assertTakeable(held: HeldDocument, path: string): void {
  if (TAKEABLE.some((field) => isIn(path, field))) return;
  const what =
    path === "status"
      ? "the status of a run follows from its phases: edit those, or end it with pawl cancel"
      : "it is what has happened, or what the run was started with";
  throw refused(held, path, what);
}

function refused({ run, file }: HeldDocument, path: string, why: string): PawlError {
  return new PawlError(
    "invalid_state_document",
    `${path} of ${file} cannot be taken over: ${why}. Statuses, outputs, errors and skips of phases and steps, "state" and "input" can. Put back what stood there, or write the document again from its journal: pawl state rebuild ${run}.`,
    { fields: { run, file, path, allowed: TAKEABLE } },
  );
}

// Starting afresh

/** What was done outside would be done again by a run that knows nothing of it (C-1). */
function assertReplaceable({ run, document, row }: HeldDocument): void {
  const done = effectsIn(document);
  if (done.length > 0)
    throw new PawlError(
      "unsafe_retry",
      `Run ${run} is not started afresh: it has acted outside (${done.map((effect) => `"${effect}"`).join(", ")}), and a new run would do that again. Mend its document, or undo that by hand and force it.`,
      { fields: { run, effects: done } },
    );
  if (row === null || row.parent === null || row.parent.detached) return;
  throw new PawlError(
    "unsafe_retry",
    `Run ${run} is not started afresh: its parent ${row.parent.run} waits for it, and would never hear of it again. Mend its document, or force it.`,
    { fields: { run, parent: row.parent.run } },
  );
}

const WITHOUT_EFFECT: readonly unknown[] = ["compensated", "failed"];

/** Both parts of the document are asked: what only one of them knows of has happened. */
function effectsIn(document: HeldDocument["document"]): string[] {
  const listed = listIn(document, "effects").map((record) => ({
    effect: String(readProperty(record, "effect")),
    isHarmless: readProperty(record, "class") === "read" || WITHOUT_EFFECT.includes(readProperty(record, "status")),
  }));
  const planned = listIn(document["engine"], "journal").filter(
    (entry) => readProperty(entry, "type") === "effect.planned",
  );
  const unlisted = planned
    .map((entry) => String(readProperty(entry, "key")))
    .filter((key) => !listed.some(({ effect }) => effect === key));
  return [...new Set([...listed.filter(({ isHarmless }) => !isHarmless).map(({ effect }) => effect), ...unlisted])];
}

function listIn(value: unknown, field: string): readonly unknown[] {
  const list = readProperty(value, field);
  return Array.isArray(list) ? list : [];
}

/** The same for the same document (HD4). */
function freshId({ run, document }: HeldDocument): string {
  const digest = sha256(JSON.stringify(document));
  const readable = `${run}-fresh-${digest.slice(0, 12)}`;
  return isName(readable) ? readable : `fresh-${digest}`;
}

function beginningOf({ run, file, document, row }: HeldDocument) {
  const workflow = row?.workflow ?? document["workflow"];
  if (typeof workflow !== "string" || document["input"] === undefined)
    throw new PawlError(
      "invalid_state_document",
      `${file} does not say what run ${run} was started with. Start a new run yourself, with the input that you know.`,
      { fields: { run, file, path: typeof workflow === "string" ? "input" : "workflow" } },
    );
  const version = row?.version ?? document["workflow_version"];
  return {
    workflow,
    input: opened(document["input"], "input"),
    tags: row?.tags ?? [],
    ...(typeof row?.key === "string" && { key: row.key }),
    ...(isVersion(version) && { version: version as string }),
  };
}
