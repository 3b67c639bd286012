// Effects without a journal
// What tools of the classes "write" and "execute" do is written ahead into the session and saved: planned before it begins, executed before anybody
// goes on. After a restart the model is asked from its prompt, which knows of milestones alone. So what it asks for again is answered from here.
//
//   ER1. No such tool begins before its plan is durable, and no result of it is seen before that is (C-7). Nothing switches this off.
//   ER2. A call that was executed since the last milestone answers once in each later process, by its tool and arguments, without being done again.
//        One that comes after the milestone in the same round is not behind it.
//   ER3. One that was planned and perhaps done is done again only if the tool can find out (`detect`) or the outside knows it by its key
//        (`idempotent`); otherwise the model is told to leave it, and the work ends as an escalation.
//   ER4. What an executed call changes in the session is in the record until the session has it. A restored session gets it at once.
import { messageOf, PawlError } from "../base/errors.ts";
import { readableJson } from "../base/storable.ts";
import type { StepInfo } from "../core/context.ts";
import { stableDigest } from "../core/stable-digest.ts";
import type { Ending } from "./adapter.ts";
import type { Calls, ToolCall } from "./calls.ts";
import { digestOf } from "./digest.ts";
import { replace } from "./operation.ts";
import { reducing } from "./reducers.ts";
import type { Session } from "./session.ts";
import { type EventType, eventType, type SessionEvent } from "./session-event.ts";
import { type Slice, slice } from "./slice.ts";
import type { Snapshot } from "./snapshot.ts";
import { ToolInvoked, type ToolInvokedPayload } from "./telemetry.ts";
import type { Tool, ToolRecord } from "./tool.ts";
import { failure, recordOf } from "./tool-call.ts";
import type { Trigger } from "./trigger.ts";

/** One call of a tool that changes something outside. */
export interface EffectRecord {
  /** What the tool was given as `info.key`: unlike that of any other call of the execution. */
  readonly key: string;
  readonly tool: string;
  readonly args: unknown;
  /** Of the arguments. */
  readonly digest: string;
  /** "unknown": it was planned by a process that has ended, and nobody can tell whether it happened. */
  readonly status: "planned" | "executed" | "unknown";
  readonly plannedAt: number;
  /** What it came to. */
  readonly message?: string;
  readonly success?: boolean;
  /** What the session does not have yet of it; absent: the session has all of it, and the call is over. */
  readonly pending?: readonly SessionEvent[];
}

const EffectNoted: EventType<EffectRecord> = eventType("EffectNoted");
const EffectsSettled: EventType<readonly string[]> = eventType("EffectsSettled");

/** The calls that changed something outside since the last milestone, and those of unknown outcome. */
export const effectsSlice: Slice<EffectRecord> = slice<EffectRecord>("effects", {
  on: [
    reducing(EffectNoted, (records: readonly EffectRecord[], { payload }) =>
      records.some(({ key }) => key === payload.key)
        ? replace(records.map((record) => (record.key === payload.key ? payload : record)))
        : replace([...records, payload]),
    ),
    // The plan says now that they are done: a call like it is meant anew.
    reducing(EffectsSettled, (records: readonly EffectRecord[], { payload }) =>
      replace(records.filter(({ key }) => !payload.includes(key))),
    ),
  ],
});

export interface EffectCallsOptions {
  readonly calls: Calls;
  readonly session: Session;
  /** Unlike that of any other start of the execution. */
  readonly prefix: string;
  readonly trigger: Trigger;
  /** Saves the session, or throws and so ends the work. */
  readonly floor: (session: Session) => Promise<void>;
  /** Called before the first effect of this process begins. */
  readonly begin: () => Promise<void>;
}

/** Gives a restored session what executed calls changed and the snapshot does not have yet. */
export function applyPending(session: Session, isMeant: (record: EffectRecord) => boolean = () => true): void {
  for (const record of session.query(effectsSlice).where(isMeant)) {
    if (record.pending === undefined) continue;
    for (const event of record.pending) session.dispatch(event);
    session.dispatch(EffectNoted(withoutPending(record)));
  }
}

/** What a snapshot tells of effects. */
export function effectsOf({ slices }: Snapshot): readonly EffectRecord[] {
  return (slices.find(({ slice: name }) => name === effectsSlice.name)?.items ?? []) as readonly EffectRecord[];
}

/** The snapshot with an effect of unknown outcome decided by a person: done, with a message for the model, or not. `null`: there is none such. */
export function settledSnapshot(snapshot: Snapshot, effect: string, message: string | null): Snapshot | null {
  const records = effectsOf(snapshot);
  if (!records.some(({ key, status }) => key === effect && status !== "executed")) return null;
  const items = records.flatMap((record): EffectRecord[] => {
    if (record.key !== effect) return [record];
    return message === null ? [] : [{ ...record, status: "executed", message, success: true }];
  });
  const slices = snapshot.slices.map((one) => (one.slice === effectsSlice.name ? { ...one, items } : one));
  return { ...snapshot, slices };
}

/** Calls whose effects are written ahead. */
export class EffectCalls {
  readonly #options: EffectCallsOptions;
  /** What earlier processes have left, each until it has answered here. */
  #left: EffectRecord[];
  /** Calls that were begun here and that nobody has been told of yet, in order. */
  readonly #open: { readonly id: string; readonly key: string }[] = [];
  /** Calls that were over, or asked for again, since the last milestone: its prompt will know of them. */
  #over: string[] = [];
  #milestones = 0;
  #hasBegun = false;

  constructor(options: EffectCallsOptions) {
    this.#options = options;
    this.#left = [...options.session.query(effectsSlice).all()];
  }

  get calls(): Calls {
    const { calls } = this.#options;
    return {
      ...calls,
      tool: (call, tool, run) => (isEffect(tool) ? this.#tool(call, tool, run) : calls.tool(call, tool, run)),
      publish: (event) => {
        if (ToolInvoked.is(event) && event.payload.session === this.#options.session) this.#applied(event.payload);
        return calls.publish(event);
      },
    };
  }

  /** How the work ends if calls of unknown outcome are left; `null`: there are none. */
  doubt(): Ending | null {
    const records = this.#options.session.query(effectsSlice).where(({ status }) => status !== "executed");
    if (records.length === 0) return null;
    const names = records.map(({ tool, args }) => `${tool}(${readableJson(args)})`);
    const reason = `unknown_outcome: a process ended during ${names.join(", ")}. Look outside whether it happened, and settle it by hand.`;
    return { kind: "escalation", reason };
  }

  async #tool(call: ToolCall, tool: Tool, run: (info: StepInfo) => Promise<ToolRecord>): Promise<ToolRecord> {
    const digest = stableDigest(digestOf, call.args);
    const left = this.#takeLeft(call.name, digest);
    if (left === null) return this.#do(this.#planned(call, digest), call, tool, run);
    if (left.status === "executed") {
      this.#over.push(left.key);
      return answerOf(left);
    }
    if (left.status === "planned" && (tool.detect !== undefined || tool.idempotent))
      return this.#again(left, call, tool, run);
    await this.#note({ ...left, status: "unknown" });
    return failure(
      `It is not known whether an earlier call of "${tool.name}" with these arguments has happened: the process ended in between. Do not repeat it. A person will look.`,
    );
  }

  #planned({ key, name, args }: ToolCall, digest: string): EffectRecord {
    const plannedAt = this.#options.calls.now();
    return { key: `${this.#options.prefix}:${key}`, tool: name, args, digest, status: "planned", plannedAt };
  }

  async #do(
    record: EffectRecord,
    call: ToolCall,
    tool: Tool,
    run: (info: StepInfo) => Promise<ToolRecord>,
  ): Promise<ToolRecord> {
    await this.#note(record);
    // After the plan: what it is about must not count as done while nothing tells of it.
    if (!this.#hasBegun) await this.#options.begin();
    this.#hasBegun = true;
    this.#open.push({ id: call.id, key: record.key });
    const done = await this.#options.calls.tool(call, tool, (info) => run(withKey(info, record.key)));
    await this.#note(executed(record, tool, done));
    return done;
  }

  /** Under the key that it had: whoever knows it outside must know it again. */
  async #again(
    left: EffectRecord,
    call: ToolCall,
    tool: Tool,
    run: (info: StepInfo) => Promise<ToolRecord>,
  ): Promise<ToolRecord> {
    const { session, calls } = this.#options;
    let wasFound = false;
    this.#open.push({ id: call.id, key: left.key });
    const done = await calls.tool(call, tool, async (given) => {
      const info = withKey(given, left.key);
      const found = await tool.detect?.(call.args, info);
      if (found?.found !== true) return run(info);
      wasFound = true;
      return recordOf(tool, found.value, session.clone());
    });
    await this.#note(executed(left, tool, done));
    if (!wasFound) return done;
    // Nobody is told of a call that was only found, so nobody would say that the session has it.
    applyPending(session, ({ key }) => key === left.key);
    this.#over.push(left.key);
    return answerOf({ ...left, message: done.message, success: done.success });
  }

  #takeLeft(tool: string, digest: string): EffectRecord | null {
    const index = this.#left.findIndex((one) => one.tool === tool && one.digest === digest);
    return index < 0 ? null : (this.#left.splice(index, 1)[0] ?? null);
  }

  async #note(record: EffectRecord): Promise<void> {
    const { session, floor } = this.#options;
    const [failed] = session.dispatch(EffectNoted(record)).failures;
    if (failed !== undefined) throw cannotKeep(record, failed.error);
    await floor(session);
  }

  /** The session has what the call changed; and if it was a milestone, the prompt knows what was done before. */
  #applied({ callId, tool, params, value, events, at, record }: ToolInvokedPayload): void {
    const { session, trigger } = this.#options;
    const index = this.#open.findIndex(({ id }) => id === callId);
    const [mine] = index < 0 ? [] : this.#open.splice(index, 1);
    const noted = session.query(effectsSlice).where(({ key }) => key === mine?.key)[0];
    if (noted !== undefined) {
      session.dispatch(EffectNoted(withoutPending(noted)));
      this.#over.push(noted.key);
    }
    if (value === undefined || value === null || !record.success) return;
    // Triggers of time and number know nothing of progress: as if none had passed, they are silent.
    const facts = { tool, params, value, events, at, checkpointAt: at, toolCalls: 0 };
    if (trigger.matches(facts)) this.#milestone();
  }

  /**
   * What was done before a milestone is behind it. What an earlier process has done, and was not asked for again yet, may belong to what comes next: it is
   * kept for one milestone more.
   */
  #milestone(): void {
    this.#milestones += 1;
    const isLate = ({ status }: EffectRecord) => status === "executed" && this.#milestones > 1;
    const settled = [...this.#over, ...this.#left.filter(isLate).map(({ key }) => key)];
    this.#left = this.#left.filter((record) => !isLate(record));
    this.#over = [];
    this.#options.session.dispatch(EffectsSettled(settled));
  }
}

/** What it changes outside must not happen twice. */
function isEffect({ class: kind }: Tool): boolean {
  return kind === "write" || kind === "execute";
}

function executed(record: EffectRecord, tool: Tool, { message, success, events, value }: ToolRecord): EffectRecord {
  const routed = success && tool.output !== undefined && value !== undefined ? [tool.output.added(value)] : [];
  const pending = [...events, ...routed];
  return { ...record, status: "executed", message, success, pending };
}

/** What the model is told again. The session has the rest. */
function answerOf({ message = "Done.", success = true }: EffectRecord): ToolRecord {
  return { message, success, events: [], trust: "untrusted" };
}

function withoutPending({ pending: _, ...record }: EffectRecord): EffectRecord {
  return record;
}

function withKey(info: StepInfo, key: string): StepInfo {
  return { ...info, key };
}

function cannotKeep({ tool, key }: EffectRecord, cause: unknown): PawlError {
  return new PawlError(
    "not_serializable",
    `The call of tool "${tool}" cannot be kept: ${messageOf(cause)} Give it arguments, events and results of plain data.`,
    { fields: { tool, key }, cause },
  );
}
