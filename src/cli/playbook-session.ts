// Working on a playbook's run
// Every call opens the store, brings the run as far as it goes by itself, says or asks one thing, and leaves. Nothing is remembered between two
// calls: what is true is in the store, and a run carries the playbook that it began with (S0-16).
import { setTimeout as pause } from "node:timers/promises";
import { PawlError, readProperty } from "../base/errors.ts";
import { compareVersions, parseVersion, sameMinor } from "../base/semver.ts";
import type { StepReport } from "../client/manual.ts";
import { Pawl } from "../client/pawl.ts";
import type { RunSummary } from "../client/run.ts";
import type { StateDocument } from "../core/state-document.ts";
import { isTerminal } from "../core/transition.ts";
import { PLAYBOOK_TAG, type Playbook, type PlaybookInput, playbookWorkflow, readPlaybook } from "../flows/playbook.ts";
import { environmentOptions } from "./environment.ts";
import { answerOf, type Phrases, type PlaybookAnswer } from "./playbook-answer.ts";
import { findPlaybook, type PlaybookFile } from "./playbook-file.ts";
import { findRun } from "./run-id.ts";
import { assertStoreExists, storeExists } from "./store-url.ts";

/** Which run is meant: by its id, or by the key that it was started with; neither: the only one that is not finished. */
export interface Which {
  readonly run?: string | undefined;
  readonly key?: string | undefined;
}

export interface PlaybookStart extends Required<Pick<Which, "key">> {
  readonly key: string;
  readonly by: string;
  readonly input: unknown;
}

export class PlaybookSession {
  readonly #url: string;
  readonly #say: (which: Which) => Phrases;

  constructor(url: string, say: (which: Which) => Phrases) {
    this.#url = url;
    this.#say = say;
  }

  /** Starts a run, or finds the one that has this key already. */
  async start({ playbook, path }: PlaybookFile, { key, by, input }: PlaybookStart): Promise<PlaybookAnswer> {
    const known = await this.#patiently(() => this.#known(playbook, key));
    if (known !== null) return this.look({ run: known });
    const workflow = playbookWorkflow(playbook);
    const given: PlaybookInput = { playbook, file: path, startedBy: by, input: input ?? null };
    const run = await this.#patiently(() =>
      this.#open([workflow], async (pawl) => (await pawl.start(workflow, given, { key, tags: [PLAYBOOK_TAG] })).id),
    );
    return this.look({ run });
  }

  /** Where a run stands and what comes next. */
  look(which: Which): Promise<PlaybookAnswer> {
    return this.#patiently(() => this.#work(which, null));
  }

  /** Says that a step was begun, is done or has failed. */
  report(which: Which, step: string, report: StepReport): Promise<PlaybookAnswer> {
    return this.#patiently(() => this.#work(which, { step, report }));
  }

  /** The runs of playbooks, newest first. */
  async runs(): Promise<readonly RunSummary[]> {
    if (!storeExists(this.#url)) return [];
    return this.#patiently(() => this.#open([], allRuns));
  }

  // One call

  async #work(
    which: Which,
    said: { readonly step: string; readonly report: StepReport } | null,
  ): Promise<PlaybookAnswer> {
    assertStoreExists(this.#url);
    const found = await this.#open([], async (pawl) => {
      const id = await idOf(pawl, which);
      const row = await pawl.store.run(id);
      return {
        id,
        key: row?.key ?? null,
        isEnded: row !== null && isTerminal(row.state),
        document: await pawl.get(id).document(),
      };
    });
    const { id, key, document, isEnded } = found;
    const { playbook, warnings } = isEnded ? { playbook: carried(document), warnings: [] } : await currentOf(document);
    const workflow = playbookWorkflow(playbook);
    const say = this.#say({ ...which, ...(key !== null && which.run === undefined && { key }) });
    return this.#open(isEnded ? [] : [workflow], async (pawl) => {
      const outputs = pawl.store.files?.outputs(id);
      const folder = workflow.outputsOf({ id, ...(outputs !== undefined && { outputs }) });
      const answer = async () => answerOf(await pawl.get(id).document(), { key, folder, warnings }, say);
      if (!isEnded) await pawl.idle();
      if (said === null) return answer();
      await pawl.report(id, said.step, said.report).catch(async (error) => {
        throw withNext(error, await answer());
      });
      await pawl.idle();
      return answer();
    });
  }

  async #known(playbook: Playbook, key: string): Promise<string | null> {
    return this.#open([], async (pawl) => {
      const run = await pawl.find(playbook.name, key);
      if (run === null) await assertSameAsOthers(pawl, playbook);
      return run?.id ?? null;
    });
  }

  async #open<T>(
    workflows: readonly ReturnType<typeof playbookWorkflow>[],
    body: (pawl: Pawl) => Promise<T>,
  ): Promise<T> {
    const pawl = await Pawl.open(this.#url, {
      ...environmentOptions(),
      workflows,
      logger: SILENT,
      handleSignals: false,
    });
    try {
      return await body(pawl);
    } finally {
      await pawl.close();
    }
  }

  /** A directory has one writer at a time: another command is soon over. */
  async #patiently<T>(call: () => Promise<T>): Promise<T> {
    for (let left = TRIES; ; left--) {
      try {
        return await call();
      } catch (error) {
        if (left === 0 || readProperty(readProperty(error, "fields"), "owner") === undefined) throw error;
        await pause(BETWEEN_MS);
      }
    }
  }
}

const TRIES = 40;
const BETWEEN_MS = 100;
const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

function withNext(error: unknown, { text, action, step }: PlaybookAnswer): unknown {
  if (!(error instanceof PawlError)) return error;
  return new PawlError(error.code, `${error.message}\n${text}`, {
    fields: { ...error.fields, next: { action, step } },
    cause: error,
  });
}

// Which playbook

/** The one that a run was started with. */
function carried({ input, workflow_id: run, workflow_version: version }: StateDocument): Playbook {
  const playbook = readProperty(input, "playbook");
  if (playbook === undefined)
    throw new PawlError(
      "invalid_argument",
      `Run ${run} is no run of a playbook. \`pawl show ${run}\` tells what it is.`,
      {
        fields: { run },
      },
    );
  // A patch of the file may have brought it further since.
  return { ...readPlaybook(playbook, `of run ${run}`), version };
}

/** What the run carries has the words of this version. */
function begunWith({ input }: StateDocument): unknown {
  return readProperty(readProperty(input, "playbook"), "version");
}

/**
 * What a run goes on with. A patch changes words: it is taken over. Any other version is for new runs, and this one goes on with what it carries.
 * What has changed without saying so is refused (S0-48).
 */
async function currentOf(
  document: StateDocument,
): Promise<{ readonly playbook: Playbook; readonly warnings: readonly string[] }> {
  const own = carried(document);
  const path = String(readProperty(document.input, "file") ?? "");
  const found = await findPlaybook(path);
  if (found === null || found.playbook.name !== own.name)
    return {
      playbook: own,
      warnings: [`${path} is not there any more: the run goes on with the playbook that it carries.`],
    };
  const [saved, current] = [parseVersion(own.version), parseVersion(found.playbook.version)];
  const isSame = structureOf(found.playbook) === structureOf(own);
  const isPatch = sameMinor(saved, current) && compareVersions(current, saved) >= 0;
  if (isPatch && !isSame) throw changed(document, own, found);
  if (isPatch) return { playbook: found.playbook.version === begunWith(document) ? own : found.playbook, warnings: [] };
  return {
    playbook: own,
    warnings: [
      `${path} is version ${found.playbook.version} by now: this run goes on as ${own.version}, with the playbook that it carries.`,
    ],
  };
}

function structureOf(playbook: Playbook): string | null {
  return playbookWorkflow(playbook).definition.structure;
}

function changed({ workflow_id: run }: StateDocument, own: Playbook, { playbook, path }: PlaybookFile): PawlError {
  const isPatch = playbook.version !== own.version;
  const what = isPatch
    ? `version ${playbook.version} changes more than words, which no patch may`
    : "definition changed, version did not";
  return new PawlError(
    "definition_changed",
    [
      `Run ${run} of playbook "${own.name}" ${own.version} cannot go on with ${path}: ${what}. Choose one:`,
      `1. Put the file back as it was when the run began: it goes on.`,
      `2. Give the changed file a new version, at least a new minor one: new runs take it, and this run goes on with the playbook that it carries.`,
      `3. Cancel this run (pawl cancel ${run}) and start afresh under another key.`,
    ].join("\n"),
    { fields: { run, path, version: own.version, choices: ["restore", "version", "cancel"] } },
  );
}

/** Two definitions under one version would take each other's runs for changed. */
async function assertSameAsOthers(pawl: Pawl, playbook: Playbook): Promise<void> {
  const structure = structureOf(playbook);
  const others = (await openRuns(pawl)).filter(
    ({ workflow, version }) => workflow === playbook.name && version === playbook.version,
  );
  const [newest] = others;
  if (newest === undefined) return;
  const document = await pawl.get(newest.id).document();
  if (structureOf(carried(document)) === structure) return;
  throw new PawlError(
    "definition_changed",
    `Playbook "${playbook.name}" ${playbook.version} is not the one that run ${newest.id} goes by: definition changed, version did not. Give it a new version, or put it back.`,
    { fields: { run: newest.id, version: playbook.version } },
  );
}

// Which run

async function idOf(pawl: Pawl, { run, key }: Which): Promise<string> {
  if (run !== undefined) return findRun(pawl, run);
  const fitting = key === undefined ? await openRuns(pawl) : (await allRuns(pawl)).filter((one) => one.key === key);
  const [only, ...others] = fitting;
  if (only === undefined) throw noRun(key);
  if (others.length === 0) return only.id;
  const named = fitting.map((one) => `${one.workflow} --run ${one.id}`).slice(0, 5);
  throw new PawlError(
    "invalid_argument",
    `${key === undefined ? `${fitting.length} runs are open` : `Key "${key}" has ${fitting.length} runs`}. Say which: ${named.join(", ")}.`,
    { fields: { runs: fitting.map(({ id }) => id) } },
  );
}

function noRun(key: string | undefined): PawlError {
  const what =
    key === undefined ? "There is no open run of a playbook" : `There is no run of a playbook with key "${key}"`;
  return new PawlError("run_not_found", `${what} in this store. Start one, or name the store that it is in.`, {
    fields: { ...(key !== undefined && { key }) },
  });
}

async function openRuns(pawl: Pawl): Promise<readonly RunSummary[]> {
  return (await allRuns(pawl)).filter(({ state }) => !isTerminal(state));
}

async function allRuns(pawl: Pawl): Promise<readonly RunSummary[]> {
  const found: RunSummary[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page: Awaited<ReturnType<Pawl["list"]>> = await pawl.list({
      tag: PLAYBOOK_TAG,
      ...(cursor !== undefined && { cursor }),
    });
    found.push(...page.runs);
    cursor = page.cursor;
  }
  return found;
}
