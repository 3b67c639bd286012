// The durable loop
// Works on one request at a time for one worker, and is taken up again by the next process where its last checkpoint is.
//
//   DL1. The request, the deadline and the id of an execution are what was saved when it began, whatever a later caller says (T-7, T-13).
//   DL2. The deadline is looked at before anything else, in every start.
//   DL3. An answer is saved before the marker, and the marker before the caller has it: after that nothing is evaluated again (T-12).
//   DL4. What cannot be read is moved to quarantine. A fresh start follows only if nothing was done outside yet, unless it is forced (C-1).
//   DL5. An observer belongs to one start, and is removed with it (T-10).
import { type Duration, toMs } from "../base/duration.ts";
import { hasCode, messageOf, PawlError } from "../base/errors.ts";
import type { StandardSchema } from "../core/schema.ts";
import type { PromptResponse } from "./adapter.ts";
import { observeCheckpoints } from "./checkpoint-observer.ts";
import type { Checkpoint, CheckpointStore, SavedRequest } from "./checkpoint-store.ts";
import { type CheckpointOptions, CheckpointWriter } from "./checkpoint-writer.ts";
import { type Completion, missingOf } from "./completion.ts";
import { applyPending, EffectCalls, effectsSlice } from "./effect-record.ts";
import { AgentLoop, type ExecuteOptions, type LoopOptions, type Stay } from "./loop.ts";
import type { BoundPrompt } from "./prompt.ts";
import { RecoveryCompleted, RecoveryFailed, RecoveryStarted } from "./recovery-events.ts";
import { SavedWork } from "./saved-work.ts";
import type { Session } from "./session.ts";
import { parseSnapshot } from "./snapshot.ts";
import { spentSlice } from "./spent.ts";
import { checkpointTrigger, type Trigger } from "./trigger.ts";
import { directoryStore, type WorkerDirectory } from "./worker-directory.ts";

/** Where the work is kept: in a worker's directory, or in a store of your own. */
export type LoopPlace = { readonly directory: WorkerDirectory } | { readonly store: CheckpointStore };

export interface DurableLoopRules<I, O> {
  /** When the session is saved. Default: when a step of the plan is done. */
  readonly trigger?: Trigger;
  /** What a saved request must be. Default: it is not checked. */
  readonly request?: StandardSchema<unknown, I>;
  /** When the work is done. Default: when all steps of the plan are, if the prompt has planning tools; otherwise when the model has answered. */
  readonly completion?: Completion<O>;
  /** How checkpoints are written. */
  readonly checkpoint?: CheckpointOptions;
  /** What happens if a resumed execution has another request than the caller: `"warn"` uses the saved one (default), `"refuse"` throws. */
  readonly onRequestDiffers?: "warn" | "refuse";
  /** What happens if the checkpoint has slices that the session does not have. Default `"error"`. */
  readonly onUnknownSlice?: "error" | "drop" | "fresh";
  /** What happens if the checkpoint cannot be read: a copy, else a fresh start if nothing was done outside (default); an error; a fresh start. */
  readonly onCorruptCheckpoint?: "fallback" | "error" | "fresh";
  /** What happens to a request that equals the last one, which is done: its answer is given back, or it is begun anew. Default `"begin"`. */
  readonly onRepeatedRequest?: "begin" | "answer";
  /** What happens to an `execute` while another one is under way. Default `"refuse"`. */
  readonly whileRunning?: "refuse" | "queue";
  /** An error is followed by another start in the same call, until the deadline. Default false: whoever supervises the process does that. */
  readonly resumeInProcess?: boolean | { readonly after: Duration };
  /** A request whose process ended before the first checkpoint is worked on again. Default true. */
  readonly restartStarted?: boolean;
  /** An older checkpoint than this is not resumed. Default: any age is fine. */
  readonly maxAge?: Duration;
  /** What becomes of an execution when the next one begins. Default `"archive"`. */
  readonly onClear?: "archive" | "delete";
}

export type DurableLoopOptions<I, O> = LoopOptions<I, O> & LoopPlace & DurableLoopRules<I, O>;

/** What a loop has counted since it was made. */
export interface LoopCounts {
  readonly executions: number;
  readonly checkpoints: number;
  readonly failedCheckpoints: number;
  /** Executions that ended without a milestone: a crash would have cost all of their work. */
  readonly executionsWithoutCheckpoint: number;
}

const RESUME_AFTER = "1s";
const LONGEST_PAUSE_MS = 60_000;

/** Evaluates a prompt for a request, through any number of processes. */
export class DurableLoop<I, O> extends AgentLoop<I, O> {
  readonly #rules: DurableLoopRules<I, O>;
  readonly #store: CheckpointStore;
  readonly #work: SavedWork<I>;
  #running: Promise<unknown> | null = null;
  #counts = { executions: 0, checkpoints: 0, failedCheckpoints: 0, executionsWithoutCheckpoint: 0 };

  constructor(options: DurableLoopOptions<I, O>) {
    super(options);
    this.#rules = options;
    this.#store =
      "store" in options
        ? options.store
        : directoryStore({ ...options.directory, clock: this.clock, onClear: options.onClear ?? "archive" });
    this.#work = new SavedWork(this.#store, options, this.log);
  }

  get counts(): LoopCounts {
    return { ...this.#counts };
  }

  /** Takes up what this worker has left undone; otherwise begins the request. Without one: what was left, or the last answer. */
  override async execute(request?: I, options: ExecuteOptions = {}): Promise<PromptResponse<O>> {
    const before = this.#running;
    if (before !== null && this.#rules.whileRunning !== "queue") throw this.#busy();
    const result = (before ?? Promise.resolve()).catch(() => {}).then(() => this.#owning(request, options));
    const running = result.finally(() => {
      if (this.#running === running) this.#running = null;
    });
    running.catch(() => {});
    this.#running = running;
    return running;
  }

  /** Takes up what this worker has left undone; `null`: there is nothing. */
  async recover(options: ExecuteOptions = {}): Promise<PromptResponse<O> | null> {
    const state = await this.#store.state();
    return state === "incomplete" || state === "started" ? this.execute(undefined, options) : null;
  }

  async #owning(request: I | undefined, options: ExecuteOptions): Promise<PromptResponse<O>> {
    await this.#store.open();
    try {
      return await this.#untilDone(request, options);
    } finally {
      await this.#letGo();
    }
  }

  /** What was done is done, whatever becomes of the lock: whoever was told otherwise would do it again. */
  async #letGo(): Promise<void> {
    try {
      await this.#store.close();
    } catch (error) {
      this.log.warn(`${this.#store.place} could not be let go of: ${messageOf(error)}`);
    }
  }

  async #untilDone(request: I | undefined, options: ExecuteOptions): Promise<PromptResponse<O>> {
    for (let pauseMs = this.#firstPauseMs(); ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      try {
        return await this.#start(request, options);
      } catch (error) {
        if (!(await this.#isResumed(error, options))) throw error;
        this.log.warn(`The work is resumed in the same process, after: ${messageOf(error)}`);
        await this.#pause(pauseMs, options);
      }
    }
  }

  async #isResumed(error: unknown, { signal }: ExecuteOptions): Promise<boolean> {
    const { resumeInProcess = false } = this.#rules;
    if (resumeInProcess === false || !isForAnotherStart(error)) return false;
    signal?.throwIfAborted();
    return this.#store.hasIncomplete();
  }

  /** Ends early where the work is stopped: the next start finds that out. */
  #pause(ms: number, { signal }: ExecuteOptions): Promise<void> {
    return new Promise((resolve) => {
      const forget = this.clock.after(ms, end);
      function end(): void {
        forget();
        signal?.removeEventListener("abort", end);
        resolve();
      }
      signal?.addEventListener("abort", end);
    });
  }

  async #start(request: I | undefined, options: ExecuteOptions): Promise<PromptResponse<O>> {
    const found = await this.#work.find(request);
    if (found.kind === "fresh") return this.#fresh(found.request, options);
    return this.#resume(found.saved, found.checkpoint, options);
  }

  async #fresh(request: I, { signal }: ExecuteOptions): Promise<PromptResponse<O>> {
    const execution = this.ids.next();
    const now = this.clock.now();
    const deadline = this.deadlineFrom(now);
    this.assertInTime(execution, deadline);
    const session = this.#sessionOf({ id: execution, createdAt: now, request });
    const prompt = this.createPrompt(request, session);
    const saved: SavedRequest<I> = { execution, request, deadline, startedAt: now };
    const stay = { prefix: `${execution}.1.0`, deadline, signal };
    return this.#live(new Start(saved, 1, 0, stay), session, prompt, () => this.#store.saveRequest(saved));
  }

  async #resume(
    saved: SavedRequest<I>,
    checkpoint: Checkpoint | null,
    { signal }: ExecuteOptions,
  ): Promise<PromptResponse<O>> {
    const { execution, deadline, request } = saved;
    const answer = checkpoint?.result?.value as PromptResponse<O> | undefined;
    // To give back what is there needs no time.
    if (answer !== undefined) return this.#complete(answer);
    this.assertInTime(execution, deadline);
    this.#assertYoung(checkpoint);
    const { session, restored } = await this.#restored(saved, checkpoint);
    const attempt = (await this.#work.lastAttempt(execution, checkpoint)) + 1;
    const sequence = restored?.sequence ?? 0;
    const stay = { prefix: `${execution}.${attempt}.${sequence}`, deadline, signal };
    const start = new Start(saved, attempt, sequence, stay);
    const prompt = this.createPrompt(request, session);
    await this.bus.publish(RecoveryStarted(start.facts));
    try {
      const begin = saved.failure === undefined ? async () => {} : () => this.#store.failRequest(null);
      const response = await this.#live(start, session, prompt, begin);
      await this.bus.publish(RecoveryCompleted(start.facts));
      return response;
    } catch (error) {
      await this.bus.publish(RecoveryFailed({ ...start.facts, message: messageOf(error) }));
      throw error;
    }
  }

  /** The session as the checkpoint has it, or a new one where there is none or its slices are too strange. */
  async #restored(
    saved: SavedRequest<I>,
    checkpoint: Checkpoint | null,
  ): Promise<{ session: Session; restored: Checkpoint | null }> {
    const { execution, request, startedAt } = saved;
    const session = this.#sessionOf({ id: execution, createdAt: startedAt, request });
    if (checkpoint === null) return { session, restored: null };
    const { onUnknownSlice = "error" } = this.#rules;
    const { restored, unknown } = session.restore(parseSnapshot(checkpoint.snapshot), { onUnknownSlice });
    if (unknown.length > 0)
      this.log.warn(
        `The checkpoint of ${this.#store.place} has unknown slices: ${unknown.join(", ")}. They were ${restored ? "dropped" : "not restored, and the work begins anew"}.`,
      );
    if (!restored) {
      await this.#work.setAside(saved, "checkpoint", `it has slices of unknown type: ${unknown.join(", ")}`);
      return { session, restored: null };
    }
    applyPending(session);
    return { session, restored: checkpoint };
  }

  /** One start, from the observer to the marker. */
  async #live(
    start: Start<I>,
    session: Session,
    prompt: BoundPrompt<O>,
    begin: () => Promise<void>,
  ): Promise<PromptResponse<O>> {
    const { trigger = checkpointTrigger(), checkpoint = {} } = this.#rules;
    const { saved, attempt, sequence, stay } = start;
    const { bus, clock, log } = this;
    const { execution, deadline } = saved;
    const writer = new CheckpointWriter({
      store: this.#store,
      execution,
      attempt,
      sequence,
      deadline,
      clock,
      log,
      bus,
      checkpoint,
    });
    const save = (changed: Session) => writer.save(changed);
    const remove = observeCheckpoints({ bus, session, trigger, since: clock.now(), save });
    let hasBegun = false;
    try {
      await begin();
      hasBegun = true;
      const response = await this.#evaluated(start, session, prompt, writer, trigger);
      if (response.ending.kind !== "finished") return await this.#unfinished(response, writer);
      await writer.finish(session, response);
      return await this.#complete(response);
    } catch (error) {
      await writer.flush();
      const isFinal = hasBegun && stay.signal?.aborted !== true && !hasCode(error, "storage_unavailable");
      if (isFinal && writer.sequence === 0) await this.#failed(error);
      throw error;
    } finally {
      remove();
      await writer.flush();
      this.#count(writer, start);
    }
  }

  async #evaluated(
    start: Start<I>,
    session: Session,
    prompt: BoundPrompt<O>,
    writer: CheckpointWriter,
    trigger: Trigger,
  ): Promise<PromptResponse<O>> {
    const { stay, saved } = start;
    const effects = new EffectCalls({
      calls: this.callsOf(stay),
      session,
      prefix: stay.prefix,
      trigger,
      floor: (changed) => writer.floor(changed),
      begin: () => this.#store.noteEffect(saved.execution),
    });
    const { calls } = effects;
    const watched = {
      ...calls,
      checkpoint: (changed: Session) => writer.save(changed),
      publish: async (event: Parameters<typeof calls.publish>[0]) => {
        await calls.publish(event);
        writer.throwIfStopped();
      },
    };
    const response = await this.evaluate(prompt, session, stay, watched);
    const doubt = effects.doubt();
    if (doubt !== null) return { ...response, output: null, ending: doubt };
    if (response.ending.kind !== "finished") return response;
    const missing = missingOf(this.#rules.completion, prompt, session, response);
    return missing === null ? response : { ...response, output: null, ending: { kind: "incomplete", reason: missing } };
  }

  /** It has ended, and not with a result: nothing is marked, and whoever asked decides. */
  async #unfinished(response: PromptResponse<O>, writer: CheckpointWriter): Promise<PromptResponse<O>> {
    const { ending } = response;
    if (ending.kind === "finished") return response;
    if (writer.sequence === 0) await this.#store.failRequest(`${ending.kind}: ${ending.reason}`);
    this.log.warn(`The work in ${this.#store.place} has ended without a result (${ending.kind}): ${ending.reason}.`);
    return response;
  }

  async #complete(response: PromptResponse<O>): Promise<PromptResponse<O>> {
    await this.#store.markCompleted();
    return response;
  }

  /** Without a checkpoint there is nothing to go on from: the next request may take its place (S1-60). */
  async #failed(error: unknown): Promise<void> {
    try {
      await this.#store.failRequest(messageOf(error));
    } catch (why) {
      this.log.warn(`That the request in ${this.#store.place} has failed could not be noted: ${messageOf(why)}`);
    }
  }

  #sessionOf(facts: { readonly id: string; readonly createdAt: number; readonly request: I }): Session {
    const session = this.createSession(facts);
    session.register(spentSlice);
    session.register(effectsSlice);
    return session;
  }

  #count({ milestones, failures }: CheckpointWriter, { sequence, saved }: Start<I>): void {
    this.#counts.executions += 1;
    this.#counts.checkpoints += milestones;
    this.#counts.failedCheckpoints += failures;
    if (milestones > 0 || sequence > 0) return;
    this.#counts.executionsWithoutCheckpoint += 1;
    this.log.warn(
      `Execution ${saved.execution} has saved no milestone: a crash would have cost all of its work. Let the model plan, or choose another trigger.`,
    );
  }

  #assertYoung(checkpoint: Checkpoint | null): void {
    const { maxAge } = this.#rules;
    if (checkpoint === null || maxAge === undefined) return;
    const ageMs = this.clock.now() - checkpoint.savedAt;
    if (ageMs <= toMs(maxAge, "maxAge")) return;
    throw new PawlError(
      "deadline_exceeded",
      `The checkpoint of ${this.#store.place} is from ${new Date(checkpoint.savedAt).toISOString()}, older than the \`maxAge\` of ${maxAge}. Abandon the execution, or raise it.`,
      { fields: { place: this.#store.place, savedAt: checkpoint.savedAt, maxAge } },
    );
  }

  #firstPauseMs(): number {
    const { resumeInProcess } = this.#rules;
    return toMs(typeof resumeInProcess === "object" ? resumeInProcess.after : RESUME_AFTER, "resumeInProcess.after");
  }

  #busy(): PawlError {
    return new PawlError(
      "run_busy",
      `${this.#store.place} is working on a request already, and does one at a time. Wait for it, give \`whileRunning: "queue"\`, or use another worker.`,
      { fields: { place: this.#store.place } },
    );
  }
}

/** What one start of an execution is. */
class Start<I> {
  readonly saved: SavedRequest<I>;
  readonly attempt: number;
  /** Of the checkpoint that it goes on from. */
  readonly sequence: number;
  readonly stay: Stay;

  constructor(saved: SavedRequest<I>, attempt: number, sequence: number, stay: Stay) {
    this.saved = saved;
    this.attempt = attempt;
    this.sequence = sequence;
    this.stay = stay;
  }

  get facts(): { readonly execution: string; readonly attempt: number; readonly sequence: number } {
    return { execution: this.saved.execution, attempt: this.attempt, sequence: this.sequence };
  }
}

/** Not of what another start would find in the same way. */
function isForAnotherStart(error: unknown): boolean {
  const final = [
    "deadline_exceeded",
    "snapshot_restore",
    "corrupt_value",
    "budget_exceeded",
    "idempotency_conflict",
    "not_serializable",
    "schema_mismatch",
    "too_large",
    "worker_directory_busy",
  ] as const;
  return !final.some((code) => hasCode(error, code));
}
