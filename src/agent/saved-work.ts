// What a worker finds when it starts: nothing, a request, or a request with a checkpoint; and what it does about those that cannot be read.
import { encode } from "../base/codec.ts";
import { hasCode, PawlError, readProperty } from "../base/errors.ts";
import type { Log } from "../core/context.ts";
import type { StandardSchema } from "../core/schema.ts";
import { canonicalText } from "../stores/file/canonical.ts";
import type {
  Checkpoint,
  CheckpointReference,
  CheckpointStore,
  DocumentName,
  SavedRequest,
} from "./checkpoint-store.ts";
import { parseSnapshot } from "./snapshot.ts";

export interface SavedWorkRules<I> {
  readonly request?: StandardSchema<unknown, I>;
  readonly onRequestDiffers?: "warn" | "refuse";
  readonly onCorruptCheckpoint?: "fallback" | "error" | "fresh";
  readonly restartStarted?: boolean;
  readonly onRepeatedRequest?: "begin" | "answer";
}

/** What there is to do. */
export type FoundWork<I> =
  | { readonly kind: "fresh"; readonly request: I }
  | { readonly kind: "saved"; readonly saved: SavedRequest<I>; readonly checkpoint: Checkpoint | null };

export class SavedWork<I> {
  readonly #store: CheckpointStore;
  readonly #rules: SavedWorkRules<I>;
  readonly #log: Log;

  constructor(store: CheckpointStore, rules: SavedWorkRules<I>, log: Log) {
    this.#store = store;
    this.#rules = rules;
    this.#log = log;
  }

  /** What the saved documents and the caller's request lead to. */
  async find(request: I | undefined): Promise<FoundWork<I>> {
    const state = await this.#store.state();
    if (state === "incomplete") return this.#incomplete(request);
    if (state === "started" && this.#rules.restartStarted !== false) {
      const started = await this.#started(request);
      if (started !== null) return started;
    }
    const answered = state === "completed" ? await this.#answered(request) : null;
    if (answered !== null) return answered;
    if (request === undefined) throw this.#nothingToDo(state);
    return { kind: "fresh", request };
  }

  /** Who asks for nothing else may have been killed before it had the answer. */
  async #answered(request: I | undefined): Promise<FoundWork<I> | null> {
    if (request !== undefined && this.#rules.onRepeatedRequest !== "answer") return null;
    const saved = await this.#requestOr();
    const checkpoint = await this.#checkpointOr();
    if (saved === null || saved instanceof PawlError || checkpoint instanceof PawlError) return null;
    if (checkpoint?.result === undefined || (request !== undefined && !isSame(request, saved.request))) return null;
    return { kind: "saved", saved, checkpoint };
  }

  /** The number of the last start that is known of. */
  async lastAttempt(execution: string, checkpoint: Checkpoint | null): Promise<number> {
    const kept = (await this.#store.history()).filter((one) => one.execution === execution);
    return Math.max(1, checkpoint?.attempt ?? 0, ...kept.map(({ attempt }) => attempt));
  }

  /** Moves a document away that cannot be used, for a fresh start; throws if that could do something twice. */
  async setAside(saved: SavedRequest<I>, document: DocumentName, reason: string): Promise<void> {
    if (await this.#mustKnowEffects(saved.execution)) throw this.#wouldRepeat(saved, reason);
    // Numbers begin again with a fresh start: what has changed since one of them must not be taken for a change of the new one.
    if (document === "checkpoint") await this.#store.quarantine("delta", reason);
    const copy = await this.#store.quarantine(document, reason);
    this.#log.warn(
      `${this.#store.place} starts fresh from its request, since ${document} cannot be used: ${reason}. It was moved to ${copy}.`,
    );
  }

  async #incomplete(request: I | undefined): Promise<FoundWork<I>> {
    const checkpoint = await this.#checkpointOr();
    const saved = await this.#requestFor(request, checkpoint);
    if (!(checkpoint instanceof PawlError)) return { kind: "saved", saved, checkpoint };
    return { kind: "saved", saved, checkpoint: await this.#fallback(saved, checkpoint) };
  }

  async #started(request: I | undefined): Promise<FoundWork<I> | null> {
    const saved = await this.#requestOr();
    // What has failed for good is taken up only by somebody who asks for nothing else.
    if (saved instanceof PawlError || saved === null) {
      if (request === undefined) throw saved ?? this.#nothingToDo("empty");
      if (saved !== null) this.#log.warn(`${saved.message} The caller's request is begun instead.`);
      return null;
    }
    if (saved.failure !== undefined && request !== undefined) return null;
    this.#compare(request, saved);
    const { execution } = saved;
    if (await this.#mustKnowEffects(execution)) {
      // Its checkpoint is gone: moved away by a process that ended before it could put the copy in its place, or by somebody.
      const copy = await this.#copyOf(execution);
      if (copy === null) throw this.#wouldRepeat(saved, "it is missing");
      return { kind: "saved", saved, checkpoint: await this.#putBack(saved, copy) };
    }
    this.#log.warn(`${this.#store.place} has a request without a checkpoint: it is begun again.`);
    return { kind: "saved", saved, checkpoint: null };
  }

  /** The saved request. If it cannot be read, the caller's with what the checkpoint knows of the execution. */
  async #requestFor(request: I | undefined, checkpoint: Checkpoint | null | PawlError): Promise<SavedRequest<I>> {
    const saved = await this.#requestOr();
    if (saved !== null && !(saved instanceof PawlError)) {
      this.#compare(request, saved);
      return saved;
    }
    const why = saved?.message ?? `${this.#store.place}/request.json is missing.`;
    if (checkpoint instanceof PawlError) throw this.#bothLost(why, checkpoint);
    if (request === undefined || checkpoint === null) throw saved ?? this.#bothLost(why, null);
    this.#log.warn(`${why} The execution is resumed with the caller's request.`);
    const { execution, deadline, savedAt } = checkpoint;
    return { execution, deadline, startedAt: savedAt, request };
  }

  async #requestOr(): Promise<SavedRequest<I> | null | PawlError> {
    return unlessCorrupt(() => this.#store.loadRequest<I>(this.#rules.request));
  }

  /** Damaged includes what is whole as a document and no snapshot. */
  async #checkpointOr(reference?: CheckpointReference): Promise<Checkpoint | null | PawlError> {
    return unlessCorrupt(async () => {
      const checkpoint = await this.#store.loadCheckpoint(reference);
      if (checkpoint !== null) parseSnapshot(checkpoint.snapshot);
      return checkpoint;
    });
  }

  /** What is left of a checkpoint that cannot be read. `null`: nothing, and a fresh start is allowed. */
  async #fallback(saved: SavedRequest<I>, error: PawlError): Promise<Checkpoint | null> {
    if (this.#rules.onCorruptCheckpoint === "error") throw error;
    const document = (readProperty(error.fields, "document") as DocumentName | undefined) ?? "checkpoint";
    const copy = document === "delta" ? null : await this.#copyOf(saved.execution);
    if (copy === null) {
      await this.setAside(saved, document, error.message);
      // Without its delta, the full checkpoint is what is left.
      return document === "delta" ? this.#store.loadCheckpoint() : null;
    }
    const moved = await this.#store.quarantine(document, error.message);
    this.#log.warn(`${error.message} It was moved to ${moved}; the copy in the history is used.`);
    return this.#putBack(saved, copy);
  }

  /** The copy takes the checkpoint's place, with what has changed since, if that is there. */
  async #putBack(saved: SavedRequest<I>, copy: Checkpoint): Promise<Checkpoint> {
    await this.#store.saveCheckpoint(copy);
    const newest = await this.#checkpointOr();
    if (!(newest instanceof PawlError)) return newest ?? copy;
    await this.setAside(saved, "delta", newest.message);
    return copy;
  }

  /** The newest copy that can be read. After an effect only the newest of all: an older one may not know of it. */
  async #copyOf(execution: string): Promise<Checkpoint | null> {
    const all = (await this.#store.history()).filter((one) => one.execution === execution);
    const kept = (await this.#mustKnowEffects(execution)) ? all.slice(-1) : all;
    for (const reference of kept.reverse()) {
      const copy = await this.#checkpointOr(reference);
      if (copy !== null && !(copy instanceof PawlError)) return copy;
    }
    return null;
  }

  /** Something was done outside that must not be forgotten. */
  async #mustKnowEffects(execution: string): Promise<boolean> {
    return this.#rules.onCorruptCheckpoint !== "fresh" && (await this.#store.hasEffect(execution));
  }

  #compare(request: I | undefined, { request: saved, execution }: SavedRequest<I>): void {
    if (request === undefined || isSame(request, saved)) return;
    const what = `${this.#store.place} goes on with the request that execution ${execution} began with; another one was given`;
    if (this.#rules.onRequestDiffers !== "refuse") {
      this.#log.warn(`${what}, and is not used. Execute it when this one is done.`);
      return;
    }
    throw new PawlError("idempotency_conflict", `${what}. Resume without a request, or abandon the execution first.`, {
      fields: { place: this.#store.place, execution },
    });
  }

  #nothingToDo(state: string): PawlError {
    return new PawlError(
      "invalid_argument",
      `${this.#store.place} has nothing to resume (${state}), and no usable request. Call execute(request).`,
      { fields: { place: this.#store.place, state } },
    );
  }

  #bothLost(request: string, checkpoint: PawlError | null): PawlError {
    return new PawlError(
      "corrupt_value",
      `Neither request nor checkpoint can be used. ${request} ${checkpoint?.message ?? `${this.#store.place}/checkpoint.json is missing.`}`,
      { fields: { place: this.#store.place, files: ["request.json", "checkpoint.json"] } },
    );
  }

  #wouldRepeat({ execution }: SavedRequest<I>, reason: string): PawlError {
    return new PawlError(
      "corrupt_value",
      `The checkpoint in ${this.#store.place} cannot be used (${reason}), and execution ${execution} has done something outside that a fresh start could do twice. ` +
        'Restore the file from a copy, abandon the execution, or give `onCorruptCheckpoint: "fresh"`.',
      { fields: { place: this.#store.place, execution, reason } },
    );
  }
}

async function unlessCorrupt<T>(load: () => Promise<T>): Promise<T | PawlError> {
  try {
    return await load();
  } catch (error) {
    const isBroken =
      hasCode(error, "corrupt_value") || readProperty(readProperty(error, "fields"), "reason") === "bad_envelope";
    if (isBroken && error instanceof PawlError) return error;
    throw error;
  }
}

/** Whether two requests say the same. */
function isSame(a: unknown, b: unknown): boolean {
  const textOf = (value: unknown) => canonicalText(JSON.parse(encode(value, { path: "request" })));
  return textOf(a) === textOf(b);
}
