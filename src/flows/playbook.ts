// Playbooks
// Work of an outside agent or a person, written down in a file: phases, steps, what is to be done, the files that each step must leave, and the
// gates where somebody else decides. This is the one place where what such a file holds becomes a workflow; whatever is wrong is named by its path.
import { formatMs, toMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import { isName } from "../base/ids.ts";
import { isVersion } from "../base/semver.ts";
import { type ApproveOptions, RISKS } from "../core/approval.ts";
import { POLICY, ROLE } from "../core/approval-votes.ts";
import { LIMITS } from "../core/limits.ts";
import { stepKey } from "../core/outline.ts";
import { isFileName, isPlainName } from "./phase-plan.ts";
import type { GateOptions, Phase, PhaseFacts, PhaseStep } from "./phase-spec.ts";
import { type PhasesWorkflow, phases } from "./phases.ts";

export interface Playbook {
  readonly name: string;
  readonly version: string;
  /** What it is for, in a line. */
  readonly about?: string;
  /** The field of the state document that holds the key of the business. */
  readonly correlation?: string;
  /** How long a run may take in all. */
  readonly deadline?: string | number;
  readonly phases: readonly PlaybookPhase[];
}

/** Work, or a gate. */
export interface PlaybookStep {
  readonly name: string;
  readonly instructions?: string;
  readonly outputs?: readonly string[];
  readonly gate?: PlaybookGate;
}

export interface PlaybookPhase extends PlaybookStep {
  readonly steps?: readonly PlaybookStep[];
}

export interface PlaybookGate extends Pick<ApproveOptions, "approvers" | "quorum" | "risk" | "timeout" | "remind"> {
  /** What is to be decided. */
  readonly question: string;
}

/** What a run of a playbook is given: its state document alone is enough to go on with it. */
export interface PlaybookInput {
  readonly playbook: Playbook;
  /** Where it was read. */
  readonly file: string;
  readonly startedBy: string;
  readonly input: unknown;
}

/** Runs of playbooks have it: they are told from those of other workflows in the same store. */
export const PLAYBOOK_TAG = "pawl.playbook";

const ROOT_FIELDS = ["name", "version", "about", "correlation", "deadline", "phases"];
const STEP_FIELDS = ["name", "instructions", "outputs", "gate"];
const PHASE_FIELDS = [...STEP_FIELDS, "steps"];
const GATE_FIELDS = ["question", "approvers", "quorum", "risk", "timeout", "remind"];

/** The workflow that a playbook is. */
export function playbookWorkflow(playbook: Playbook): PhasesWorkflow<PlaybookInput> {
  const { name, version, correlation, deadline } = playbook;
  return phases<PlaybookInput>(
    {
      name,
      version,
      ...(correlation !== undefined && { correlation }),
      ...(deadline !== undefined && { deadline }),
    },
    playbook.phases.map((phase) => phaseOf(playbook, phase)),
  );
}

function phaseOf(playbook: Playbook, phase: PlaybookPhase): Phase<PlaybookInput> {
  const { name, steps } = phase;
  if (steps === undefined) return stepOf(playbook, phase, name);
  return { name, steps: steps.map((step) => stepOf(playbook, step, stepKey(name, step.name))) };
}

function stepOf(playbook: Playbook, step: PlaybookStep, at: string): PhaseStep<PlaybookInput> {
  const { name, instructions = "", outputs = [], gate } = step;
  if (gate !== undefined) return { name, approve: gateOf(playbook, gate, at) };
  return { name, manual: { instructions, outputs } };
}

/** Bound to the very files that are there when it is asked for: others need another approval. */
function gateOf(
  playbook: Playbook,
  gate: PlaybookGate,
  at: string,
): GateOptions<PlaybookInput, Record<string, unknown>> {
  const { question, ...options } = gate;
  return {
    ...options,
    kind: "review",
    evidence: question,
    fourEyes: true,
    onDenied: "fail",
    onChanges: "fail",
    action: ({ files, run }: PhaseFacts<PlaybookInput, Record<string, unknown>>) => ({
      tool: `${playbook.name}.${at}`,
      arguments: { question, key: run.key ?? null, files },
    }),
  };
}

// Reading

/** Checks what a file holds. Throws `invalid_playbook` with the path of what is wrong and what is allowed there. */
export function readPlaybook(value: unknown, file: string): Playbook {
  new Reading(file).root(value);
  return value as Playbook;
}

class Reading {
  readonly #file: string;
  /** What has its place already: steps and phases by their full names, and files. */
  readonly #places = new Map<string, string>();
  readonly #outputs = new Map<string, string>();

  constructor(file: string) {
    this.#file = file;
  }

  root(value: unknown): void {
    const playbook = this.#record(value, "", ROOT_FIELDS);
    if (!isName(playbook["name"])) throw this.#wrong("name", playbook["name"], 'a name such as "release-notes"');
    if (!isVersion(playbook["version"])) throw this.#wrong("version", playbook["version"], 'a version such as "1.0.0"');
    this.#optionalText(playbook, "about", "about");
    const { correlation, deadline } = playbook;
    if (correlation !== undefined && !isName(correlation))
      throw this.#wrong("correlation", correlation, 'the name of a field such as "ticket"');
    if (deadline !== undefined) this.#duration(deadline, "deadline", 1);
    for (const [index, phase] of this.#list(playbook["phases"], "phases", "phase").entries())
      this.#phase(phase, `phases[${index}]`);
  }

  #phase(value: unknown, path: string): void {
    const phase = this.#record(value, path, PHASE_FIELDS);
    const name = this.#name(phase["name"], path, null);
    if (phase["steps"] === undefined) return this.#work(phase, path);
    const other = ["instructions", "outputs", "gate"].find((field) => phase[field] !== undefined);
    if (other !== undefined)
      throw this.#wrong(
        `${path}.${other}`,
        phase[other],
        "it to one of the steps: a phase with `steps` has none itself",
      );
    this.#list(phase["steps"], `${path}.steps`, "step").forEach((one, index) => {
      const place = `${path}.steps[${index}]`;
      const step = this.#record(one, place, STEP_FIELDS);
      this.#name(step["name"], place, name);
      this.#work(step, place);
    });
  }

  #work(step: Readonly<Record<string, unknown>>, path: string): void {
    const { instructions, outputs, gate } = step;
    if ((instructions === undefined) === (gate === undefined)) {
      const what = "`instructions` (work) or `gate` (a decision of somebody else), one of the two";
      throw this.#wrong(path, step, path.includes("steps") ? what : `${what}, or \`steps\``);
    }
    this.#optionalText(step, "instructions", `${path}.instructions`);
    if (gate !== undefined) {
      if (outputs !== undefined)
        throw this.#wrong(`${path}.outputs`, outputs, "it to a step with `instructions`: a gate leaves no files");
      return this.#gate(gate, `${path}.gate`);
    }
    if (outputs === undefined) return;
    if (!Array.isArray(outputs)) throw this.#wrong(`${path}.outputs`, outputs, "a list of file names");
    for (const [index, output] of outputs.entries()) this.#output(output, `${path}.outputs[${index}]`);
  }

  #output(output: unknown, path: string): void {
    if (!isFileName(output)) throw this.#wrong(path, output, 'a relative file name such as "notes.md"');
    this.#once(this.#outputs, output.toLowerCase(), output, path);
  }

  #gate(value: unknown, path: string): void {
    const gate = this.#record(value, path, GATE_FIELDS);
    const { question, risk, approvers, quorum = 1, timeout, remind } = gate;
    if (typeof question !== "string" || question.trim() === "")
      throw this.#wrong(`${path}.question`, question, "what is to be decided, as text");
    if (risk !== undefined && !(RISKS as readonly unknown[]).includes(risk))
      throw this.#wrong(`${path}.risk`, risk, `one of ${RISKS.join(", ")}`, RISKS);
    if (timeout !== undefined) this.#duration(timeout, `${path}.timeout`, 1);
    if (remind !== undefined) this.#duration(remind, `${path}.remind`, LIMITS.remindMs);
    this.#approvers(approvers, quorum, path);
  }

  #approvers(approvers: unknown, quorum: unknown, path: string): void {
    const people = this.#list(approvers, `${path}.approvers`, 'person such as "ann", or role such as "role:editor"');
    for (const [index, one] of people.entries())
      if (!isName(one) || one === POLICY)
        throw this.#wrong(
          `${path}.approvers[${index}]`,
          one,
          'a person such as "ann", or a role such as "role:editor"',
        );
    const hasRoles = people.some((one) => String(one).startsWith(ROLE));
    const most = hasRoles ? Number.MAX_SAFE_INTEGER : new Set(people).size;
    if (Number.isSafeInteger(quorum) && (quorum as number) >= 1 && (quorum as number) <= most) return;
    throw this.#wrong(
      `${path}.quorum`,
      quorum,
      hasRoles ? "a whole number of people" : `a whole number from 1 to ${most}: so many may decide`,
    );
  }

  // Kinds of values

  #record(value: unknown, path: string, allowed: readonly string[]): Readonly<Record<string, unknown>> {
    if (typeof value !== "object" || value === null || Array.isArray(value))
      throw this.#wrong(path, value, `an object with ${allowed.join(", ")}`, allowed);
    const other = Object.keys(value).find((field) => !allowed.includes(field));
    if (other === undefined) return value as Record<string, unknown>;
    const place = path === "" ? other : `${path}.${other}`;
    throw this.#error(place, `${place} is no field of a playbook. Allowed there: ${allowed.join(", ")}.`, allowed);
  }

  #list(value: unknown, path: string, what: string): readonly unknown[] {
    if (Array.isArray(value) && value.length > 0) return value;
    throw this.#wrong(path, value, `a list of at least one ${what}`);
  }

  #name(value: unknown, path: string, phase: string | null): string {
    if (!isPlainName(value)) throw this.#wrong(`${path}.name`, value, 'a name of letters, digits, "_" and "-"');
    const at = phase === null ? value : stepKey(phase, value);
    this.#once(this.#places, at, value, `${path}.name`);
    return at;
  }

  #once(taken: Map<string, string>, key: string, value: string, path: string): void {
    const before = taken.get(key);
    if (before !== undefined) throw this.#wrong(path, value, `another one: ${before} has it already`);
    taken.set(key, path);
  }

  #optionalText(record: Readonly<Record<string, unknown>>, field: string, path: string): void {
    const value = record[field];
    if (value !== undefined && (typeof value !== "string" || value.trim() === ""))
      throw this.#wrong(path, value, "text that is not empty");
  }

  #duration(value: unknown, path: string, leastMs: number): void {
    try {
      if (toMs(value as string, path) >= leastMs) return;
    } catch {
      // Named below.
    }
    const least = leastMs > 1 ? `, at least ${formatMs(leastMs)}` : "";
    throw this.#wrong(path, value, `a duration such as "2h" or "30 days"${least}`);
  }

  #wrong(path: string, value: unknown, wanted: string, allowed?: readonly string[]): PawlError {
    const where = path === "" ? "It" : path;
    return this.#error(
      path,
      `${where} ${value === undefined ? "is missing" : `is ${shown(value)}`}. Give ${wanted}.`,
      allowed,
    );
  }

  #error(path: string, what: string, allowed?: readonly string[]): PawlError {
    return new PawlError("invalid_playbook", `Playbook ${this.#file}: ${what}`, {
      fields: { file: this.#file, path, ...(allowed !== undefined && { allowed }) },
    });
  }
}

function shown(value: unknown): string {
  const json = JSON.stringify(value) ?? String(value);
  return json.length > 60 ? `${json.slice(0, 60)}…` : json;
}
