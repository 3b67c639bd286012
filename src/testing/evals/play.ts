// Playing a case
// Starts the run, lets the events happen in their order, and keeps what did not happen as the case says.
import { toMs } from "../../base/duration.ts";
import { messageOf } from "../../base/errors.ts";
import { formatVersion, parseVersion } from "../../base/semver.ts";
import type { ApprovalSummary, Decision } from "../../client/approvals.ts";
import type { Choice } from "../../client/resolve.ts";
import type { Entry } from "../../core/journal.ts";
import { isTerminal } from "../../core/transition.ts";
import type { Workflow } from "../../core/workflow.ts";
import type { EvalEngine } from "./eval-engine.ts";
import type { EvalSubject } from "./eval-setup.ts";
import type { EvalCase, EvalEvent } from "./read-case.ts";
import { opened, type Script } from "./script.ts";
import { fits } from "./tool-names.ts";
import { TRACE_WORDS } from "./trace-words.ts";

/** The same in every play: whatever is derived from it is, too. */
const RUN_ID = "eval";

/** Something that the case says and that did not come about. */
export interface Broken {
  /** The name of the expectation, as the case has it. */
  readonly expectation: string;
  readonly message: string;
  readonly expected?: unknown;
  readonly actual?: unknown;
}

type EventOf<T extends EvalEvent["type"]> = Extract<EvalEvent, { readonly type: T }>;

export class Play {
  readonly broken: Broken[] = [];
  readonly #case: EvalCase;
  readonly #setup: EvalSubject;
  readonly #engine: EvalEngine;
  readonly #script: Script;
  #run = "";
  #signals = 0;
  /** Makes the last signal or decision once more. */
  #repeat: (() => Promise<unknown>) | null = null;

  constructor(one: EvalCase, setup: EvalSubject, engine: EvalEngine, script: Script) {
    this.#case = one;
    this.#setup = setup;
    this.#engine = engine;
    this.#script = script;
  }

  get run(): string {
    return this.#run;
  }

  async perform(): Promise<void> {
    this.#run = await this.#start();
    await this.#reachInitialStep();
    const { events } = this.#case;
    for (const [index, event] of events.entries()) {
      this.#script.arm(nextAct(events, index));
      await this.#engine.calm();
      await this.#happen(event, index);
      if (!isAnswer(event)) this.#script.position = index + 1;
      await this.#engine.calm();
    }
    this.#script.arm(events.length);
    await this.#engine.calm();
  }

  async #start(): Promise<string> {
    const { workflow, input: usual } = this.#setup;
    const input = "input" in this.#case ? opened(this.#case.input) : usual;
    const run = await this.#engine.pawl.start(workflow as unknown as Workflow, input, { id: RUN_ID });
    return run.id;
  }

  /** What comes before has its usual answers, and people agree to it. */
  async #reachInitialStep(): Promise<void> {
    const { initial_step: step } = this.#case;
    for (;;) {
      await this.#engine.calm();
      if (step === undefined || this.#script.hasBegun) return;
      const [approval] = await this.#openApprovals();
      if (approval === undefined) break;
      await this.#vote(approval, { type: "approval_granted" });
    }
    const calls = [...new Set(this.#script.answered.map(({ tool }) => tool))].join(", ") || "none";
    this.#fail("initial_step", `The run never came to "${step}". Its calls were: ${calls}.`, { expected: step });
    this.#script.hasBegun = true;
  }

  async #happen(event: EvalEvent, index: number): Promise<void> {
    try {
      await this.#act(event, index);
    } catch (error) {
      if (this.#case.events_may_be_left === true) return;
      this.#fail("events", `events[${index}] (${event.type}) could not happen: ${messageOf(error)}`);
    }
  }

  async #act(event: EvalEvent, index: number): Promise<unknown> {
    const { handle, pawl } = this.#engine;
    switch (event.type) {
      case "tool_success":
      case "tool_failure":
        return this.#script.isUsed(index) ? undefined : this.#neverCalled(event.tool, index);
      case "approval_granted":
      case "approval_denied":
        return this.#decide(event);
      case "approval_timeout":
        return this.#letTimeOut(event);
      case "signal":
        return this.#signal(event);
      case "duplicate_event":
        return event.of === "start" ? this.#startAgain() : this.#repeat?.();
      case "crash":
        return this.#crash(event, index);
      case "deploy":
        return this.#deploy(event);
      case "cancel":
        return handle.cancel(this.#run, {
          reason: event.reason ?? "the case says so",
          compensate: event.compensate ?? false,
        });
      case "resolve":
        return pawl.resolve(this.#run, choiceOf(event));
      case "time_passes":
        return handle.advance(toMs(event.time, `events[${index}].time`));
    }
  }

  async #neverCalled(tool: string, index: number): Promise<void> {
    if (this.#case.events_may_be_left === true) return;
    const { state } = await this.#status();
    const calls = [...new Set(this.#script.answered.map((one) => one.tool))].join(", ") || "none";
    const message = `events[${index}]: "${tool}" was never called${isTerminal(state) ? `, and the run has ${state}` : ""}. Its calls were: ${calls}.`;
    this.#fail("events", message, { expected: tool });
  }

  async #signal(event: EventOf<"signal">): Promise<void> {
    const id = event.id ?? `signal-${++this.#signals}`;
    const send = () => this.#engine.pawl.signal(this.#run, event.name, opened(event.payload), { id });
    this.#repeat = send;
    await send();
  }

  async #startAgain(): Promise<void> {
    const again = await this.#start();
    if (again === this.#run) return;
    this.#fail("duplicate_event", `A second start with the same id made another run: ${again}.`, {
      expected: this.#run,
      actual: again,
    });
  }

  async #crash({ tool }: EventOf<"crash">, index: number): Promise<void> {
    if (tool !== undefined) {
      this.#script.setTrap(index, () => this.#engine.die());
      const { events } = this.#case;
      this.#script.arm(nextAct(events, index + 1));
      await this.#engine.calm();
      if (!this.#engine.isDead) await this.#neverCalled(tool, index);
    }
    this.#script.abandon();
    await this.#engine.recover();
  }

  async #deploy({ version }: EventOf<"deploy">): Promise<void> {
    const { workflow, workflows = [], deployments = {} } = this.#setup;
    const { major, minor, patch } = parseVersion(workflow.version);
    const next = version ?? formatVersion({ major, minor, patch: patch + 1 });
    const deployed = deployments[next] ?? { ...workflow, version: next };
    this.#script.abandon();
    await this.#engine.deploy([deployed, ...workflows]);
  }

  // Approvals

  async #openApprovals(): Promise<readonly ApprovalSummary[]> {
    return (await this.#engine.pawl.approvals.list()).approvals;
  }

  /** The one that the case means: by its name here, or the only one there is. */
  async #approval(id: string | undefined): Promise<ApprovalSummary> {
    const open = await this.#openApprovals();
    const name = id === undefined ? undefined : (this.#case.map?.approvals?.[id] ?? this.#setup.names?.[id] ?? id);
    const meant = open.filter(
      (one) => name !== undefined && fits(name, { workflow: one.workflow, name: one.name, key: one.id }),
    );
    const [approval, ...others] = meant.length > 0 ? meant : open;
    if (approval === undefined) throw new Error("the run waits for no approval.");
    if (others.length === 0) return approval;
    const names = open.map((one) => one.name).join(", ");
    throw new Error(`several approvals are open (${names}): say which one with approval_id, or with map.approvals.`);
  }

  async #decide(event: EventOf<"approval_granted" | "approval_denied">): Promise<void> {
    const approval = await this.#approval(event.approval_id);
    const last = await this.#vote(approval, event);
    this.#repeat = () => this.#engine.pawl.approvals.decide(approval.id, last);
  }

  /** As many people as are needed, each by a name of their own. */
  async #vote(approval: ApprovalSummary, event: EventOf<"approval_granted" | "approval_denied">): Promise<Decision> {
    const decision = event.type === "approval_granted" ? "approved" : "denied";
    for (let n = 0; ; n++) {
      const vote = {
        decision,
        ...voterOf(approval, event, n),
        ...(event.reason !== undefined && { reason: event.reason }),
      } as const;
      const { missing } = await this.#engine.pawl.approvals.decide(approval.id, vote);
      if (decision === "denied" || missing === 0) return vote;
    }
  }

  /** Lets time pass until others are asked or the approval has expired; with `until`, until just that. */
  async #letTimeOut({ approval_id: id, until }: EventOf<"approval_timeout">): Promise<void> {
    const approval = await this.#approval(id);
    const word =
      until === "escalated" ? "approval_escalated" : until === "expired" ? "approval_decision" : "approval_timeout";
    const isIt = (entry: Entry) => {
      const about = (entry.payload as { readonly id?: unknown } | null)?.id === approval.id;
      return about && TRACE_WORDS[word]?.(entry) === true;
    };
    const seen = (await this.#journal()).filter(isIt).length;
    await this.#engine.handle.until(async () => (await this.#journal()).filter(isIt).length > seen);
    if ((await this.#journal()).filter(isIt).length > seen) return;
    throw new Error(`the approval "${approval.name}" never timed out.`);
  }

  #journal(): Promise<Entry[]> {
    return this.#engine.pawl.get(this.#run).journal();
  }

  #status() {
    return this.#engine.pawl.get(this.#run).status();
  }

  #fail(expectation: string, message: string, values: Pick<Broken, "expected" | "actual"> = {}): void {
    this.broken.push({ expectation, message, ...values });
  }
}

/** Behind this event, up to the next one that is no answer of a tool. */
function nextAct(events: readonly EvalEvent[], from: number): number {
  const next = events.findIndex((event, index) => index >= from && !isAnswer(event));
  return next < 0 ? events.length : next;
}

function isAnswer({ type }: EvalEvent): boolean {
  return type === "tool_success" || type === "tool_failure";
}

function choiceOf({ choice, value, step }: EventOf<"resolve">): Choice {
  const more = { ...(value !== undefined && { value: opened(value) }), ...(step !== undefined && { step }) };
  return { choice, ...more } as Choice;
}

/** Who may decide: by the case, or by whoever is asked. */
function voterOf(
  { approvers }: ApprovalSummary,
  { by, roles }: { by?: string; roles?: readonly string[] },
  n: number,
): Pick<Decision, "by" | "roles"> {
  const asked = approvers[n % Math.max(1, approvers.length)] ?? "";
  const role = asked.startsWith("role:") ? asked.slice("role:".length) : null;
  const people = approvers.flatMap((one) => (one.startsWith("role:") ? [one.slice("role:".length)] : []));
  if (by !== undefined) return { by: n === 0 ? by : `${by}-${n + 1}`, roles: roles ?? people };
  return role === null ? { by: asked, roles: [] } : { by: `eval-${n + 1}`, roles: roles ?? [role] };
}
