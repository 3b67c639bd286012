// Importing state documents
// A document of another engine, another store or another machine becomes a run that goes on where the document says: what is done stays done, what
// was in progress runs again, and a file that is not what the document says is never taken for it.
import { readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { PawlError, readProperty } from "../base/errors.ts";
import { isName } from "../base/ids.ts";
import { compareVersions, parseVersion, sameMinor } from "../base/semver.ts";
import { type Outline, stepKey } from "../core/outline.ts";
import { isPlainRecord } from "../core/stable-digest.ts";
import type { DocumentFile, PhaseRecord, StepRecord } from "../core/state-document.ts";
import { type GivenDocument, type ReadDocument, readStateDocument } from "../core/state-document-reader.ts";
import type { Store } from "../core/store.ts";
import { makeFolder, replaceFile, sha256 } from "../files/atomic-file.ts";
import { isFileName } from "../flows/phase-plan.ts";
import type { PhasesWorkflow } from "../flows/phases.ts";
import type { StartOptions } from "./start.ts";

export interface ImportOptions<I = unknown> {
  /** What the document is a document of: made with `phases`. */
  readonly workflow: PhasesWorkflow<I, unknown>;
  /** The folder with the document's output files. Default: the working directory. */
  readonly outputs?: string;
  /** What the run is given. Default: what the document says, or the key of the business under its name. */
  readonly input?: I;
}

/** What a document leads to, before anything is written to the store. */
export interface Importing {
  readonly input: unknown;
  readonly options: StartOptions & { readonly id: string };
  readonly warnings: readonly string[];
}

/** Checks a document, takes its files over, and says how the run is to be started. */
export async function readImport(store: Store, value: unknown, options: ImportOptions): Promise<Importing> {
  const { workflow } = options;
  if (workflow?.plan === undefined)
    throw new PawlError("invalid_argument", "A state document is imported into a workflow made with phases(…).", {
      fields: { field: "workflow" },
    });
  assertVersion(value, workflow);
  const read = readStateDocument(value);
  const { document } = read;
  assertUnfinished(document);
  assertKnown(document.phases, workflow.plan.outline);
  await assertFree(store, document);
  const taking = new Taking(document.workflow_id, options.outputs ?? ".", folderFor(store, workflow, document));
  const phases = await taking.phases(document.phases);
  return {
    input: "input" in options ? options.input : inputOf(read),
    options: {
      id: document.workflow_id,
      ...keyOf(read, workflow),
      adopted: adoptedOf(document, phases),
    },
    warnings: [...read.warnings, ...taking.warnings],
  };
}

function adoptedOf(document: GivenDocument, phases: Readonly<Record<string, PhaseRecord>>) {
  const { started_at, workflow_version, effects, state } = document;
  return {
    started_at,
    workflow_version,
    phases,
    ...(effects !== undefined && { effects }),
    ...(state !== undefined && { state }),
  };
}

function folderFor(store: Store, workflow: PhasesWorkflow, { workflow_id: id }: GivenDocument): string {
  const outputs = store.files?.outputs(id);
  return workflow.outputsOf({ id, ...(outputs !== undefined && { outputs }) });
}

function keyOf({ correlation }: ReadDocument, { plan }: PhasesWorkflow): Pick<StartOptions, "key"> {
  const isOwn = correlation !== null && plan.outline.correlation === correlation.field;
  return isOwn ? { key: correlation.key } : {};
}

function inputOf({ document, correlation }: ReadDocument): unknown {
  if (document.input !== undefined && document.input !== null) return document.input;
  return correlation === null ? null : { [correlation.field]: correlation.key };
}

// What may be imported

const CHOICES = ["old", "fresh", "migrate"] as const;

/** Compared before anything else is looked at: a document without a version is one of another version (S0-47). */
function assertVersion(value: unknown, { name, version: current }: PhasesWorkflow): void {
  const given = readProperty(value, "workflow_version");
  // What is no document at all, or has something else there, is refused by the reader, with the path.
  if (!isPlainRecord(value) || (given != null && typeof given !== "string")) return;
  const saved = given ?? null;
  if (saved !== null && mayGoOn(saved, current)) return;
  throw new PawlError(
    "version_mismatch",
    `The document is of version ${saved ?? "none"} of workflow "${name}", and this code is ${current}. ` +
      `1. Import it with the old definition (${saved ?? "the one it was made with"}). 2. Start afresh with ${current}. 3. Migrate the document by hand: correct its phases, then set workflow_version to ${current}.`,
    { fields: { saved, current, choices: CHOICES } },
  );
}

function mayGoOn(saved: string, current: string): boolean {
  try {
    const [from, to] = [parseVersion(saved), parseVersion(current)];
    return sameMinor(from, to) && compareVersions(from, to) <= 0;
  } catch {
    // Not a version at all: the reader names what is wrong with it.
    return true;
  }
}

function assertUnfinished({ workflow_id: id, status, cancelled }: GivenDocument): void {
  if (status !== "done" && status !== "failed" && cancelled !== true) return;
  throw new PawlError("run_ended", `The run ${id} of the document has ended: there is nothing to go on with.`, {
    fields: { run: id, status },
  });
}

/** Names that the definition does not have are those of another definition, or slips of whoever has edited the document. */
export function assertKnown(phases: GivenDocument["phases"], outline: Outline): void {
  const names = outline.phases.map(({ name }) => name);
  for (const [name, record] of Object.entries(phases)) {
    const phase = outline.phases.find((one) => one.name === name);
    if (phase === undefined) throw unknown(`phases.${name}`, names);
    const steps = (phase.steps ?? []).map((step) => step.name);
    const other = Object.keys(record.steps ?? {}).find((step) => !steps.includes(step));
    if (other !== undefined) throw unknown(`phases.${name}.steps.${other}`, steps);
  }
}

function unknown(path: string, allowed: readonly string[]): PawlError {
  return new PawlError(
    "invalid_state_document",
    `${path} of the state document is not in the workflow. It has: ${allowed.join(", ") || "none"}. Correct the name, or import with the definition that the document was made with.`,
    { fields: { path, allowed } },
  );
}

async function assertFree(store: Store, { workflow_id: id }: GivenDocument): Promise<void> {
  if (!isName(id))
    throw new PawlError(
      "invalid_state_document",
      `workflow_id of the state document is ${JSON.stringify(id).slice(0, 80)}. Give printable text without "#", "/" and "\\".`,
      { fields: { path: "workflow_id" } },
    );
  if ((await store.run(id)) === null) return;
  throw new PawlError(
    "idempotency_conflict",
    `There is a run ${id} in this store. A document never takes the place of a run: give it another workflow_id, or go on with that run.`,
    { fields: { run: id } },
  );
}

/** Whoever has the key of the business already is another run. */
export function assertImported({ id, key }: Importing["options"], started: string): void {
  if (started === id) return;
  throw new PawlError(
    "idempotency_conflict",
    `Run ${started} has key "${key}" already, so run ${id} of the document was not made. Go on with that run, or give the document another key.`,
    { fields: { run: started } },
  );
}

// Files

/** Takes the output files that records name from one folder to another, and notes what is known of them in the records. */
export class Taking {
  readonly warnings: string[] = [];
  readonly #run: string;
  readonly #from: string;
  readonly #to: string;

  constructor(run: string, from: string, to: string) {
    this.#run = run;
    this.#from = from;
    this.#to = to;
  }

  async phases(phases: Readonly<Record<string, PhaseRecord>>): Promise<Record<string, PhaseRecord>> {
    const taken: [string, PhaseRecord][] = [];
    for (const [name, phase] of Object.entries(phases)) {
      const { steps, ...own } = phase;
      const record = await this.#record(own, `phases.${name}`, name);
      taken.push([name, steps === undefined ? record : { ...record, steps: await this.#steps(name, steps) }]);
    }
    return Object.fromEntries(taken);
  }

  async #steps(phase: string, steps: Readonly<Record<string, StepRecord>>): Promise<Record<string, StepRecord>> {
    const taken: [string, StepRecord][] = [];
    for (const [name, step] of Object.entries(steps))
      taken.push([name, await this.#record(step, `phases.${phase}.steps.${name}`, stepKey(phase, name))]);
    return Object.fromEntries(taken);
  }

  async #record<T extends StepRecord>(record: T, path: string, at: string): Promise<T> {
    if (record.status !== "done") return record;
    const { output_file, output_hash, output_size, output_files } = record;
    if (output_files !== undefined) {
      const files: DocumentFile[] = [];
      for (const file of output_files) files.push(await this.#file(file, path, at));
      return { ...record, output_files: files };
    }
    if (output_file === undefined) return record;
    const given = { file: output_file, ...(output_hash !== undefined && { hash: output_hash }) };
    const { hash, size } = await this.#file(given, path, at);
    return { ...record, output_hash: hash, output_size: size ?? output_size };
  }

  async #file(given: DocumentFile, path: string, at: string): Promise<DocumentFile> {
    const { file } = given;
    if (!isFileName(file))
      throw new PawlError(
        "invalid_state_document",
        `${path}.output_file of the state document is ${JSON.stringify(file)}. Give a name inside the folder of the output files.`,
        { fields: { path: `${path}.output_file` } },
      );
    const content = await this.#content(file, at);
    const hash = `sha256:${sha256(content)}`;
    if (given.hash === undefined) this.warnings.push(`${path} has no hash for ${file}. It is recorded now: ${hash}.`);
    else if (given.hash.replace(/^sha256:/, "") !== sha256(content))
      throw lost(at, file, "was changed: it has another hash than the document says");
    await this.#copy(file, content);
    return { ...given, hash, size: content.byteLength };
  }

  async #content(file: string, at: string): Promise<Buffer> {
    try {
      return await readFile(join(this.#from, file));
    } catch (cause) {
      const code = readProperty(cause, "code");
      throw lost(at, file, code === "ENOENT" ? `is not in ${this.#from}` : `cannot be read (${String(code)})`, cause);
    }
  }

  async #copy(file: string, content: Buffer): Promise<void> {
    const path = join(this.#to, file);
    if (resolve(path) === resolve(this.#from, file)) return;
    await makeFolder(dirname(path));
    await replaceFile(path, content, { key: this.#run, attempt: 2, signal: new AbortController().signal });
  }
}

function lost(at: string, file: string, what: string, cause?: unknown): PawlError {
  const phase = at.split(".")[0];
  return new PawlError(
    "output_missing",
    `The output file ${file} of "${at}" ${what}. Put it there, or set the status of "${at}" to pending so that it runs again.`,
    { fields: { phase, at, file }, cause },
  );
}
