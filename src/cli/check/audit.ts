// The audit
// The nine things that a workflow which outlives its process must have (S0-52 to S0-60), each with what shows it. The engine sees to most of
// them for whoever does not switch it off; what depends on the code is seen in plays, and without one it is not claimed.
import { parseVersion } from "../../base/semver.ts";
import type { Workflow } from "../../core/workflow.ts";
import type { LintFinding } from "../../testing/lint/findings.ts";
import type { Registry } from "../../worker/registry.ts";
import { relativeToHere } from "../code-place.ts";
import { countOf } from "../printable.ts";
import type { BumpVerdict } from "./bump.ts";
import type { PlayedWorkflow } from "./played-workflow.ts";
import type { RunPlan } from "./run-plan.ts";

export type AuditStatus = "pass" | "fail" | "not applicable" | "not shown";

export interface AuditItem {
  readonly item: number;
  readonly title: string;
  readonly status: AuditStatus;
  /** What shows it; if it fails, what to do. */
  readonly evidence: string;
}

/** What is known of a workflow. */
export interface Audited {
  readonly workflow: Workflow;
  readonly registry: Registry;
  /** `null`: nobody gave an input. */
  readonly played: PlayedWorkflow | null;
  /** Of this workflow; `null`: no runs were looked at. */
  readonly plans: readonly RunPlan[] | null;
  readonly bumps: readonly BumpVerdict[];
}

export type Judged = readonly [AuditStatus, evidence: string];
type Judge = (audited: Audited) => Judged;

export function auditOf(audited: Audited): AuditItem[] {
  return ITEMS.map(([title, judge], at) => {
    const [status, evidence] = judge(audited);
    return { item: at + 1, title, status, evidence };
  });
}

export const NOT_PLAYED: Judged = [
  "not shown",
  "nobody has played it: give --input, or a file that exports crash tests",
];

const ITEMS: readonly (readonly [title: string, judge: Judge])[] = [
  ["every phase and step is marked before it begins and when it is done", marks],
  ["resume reads the recorded state only", resume],
  ["the state document has the workflow's version", version],
  ["all external writes have idempotency checks", writes],
  ["detection uses a unique identifier", identifier],
  ["detection has no side effects", detection],
  ["the version is verified on resume", verified],
  ["MAJOR changes have a handling strategy", majors],
  ["mismatches show choices that can be acted on", choices],
];

function marks({ workflow, played }: Audited): Judged {
  if (played !== null) {
    const found = messagesOf(played, ({ kind }) => kind === "in_body");
    if (found !== "") return ["fail", found];
  }
  if (workflow.definition.shape !== undefined)
    return ["pass", "its body is Pawl's own: every phase and step is recorded when it begins and when it is done"];
  if (played === null) return NOT_PLAYED;
  if (played.lint.plays.some(({ isWatched }) => !isWatched))
    return ["not shown", "no recorder watched what is done outside of steps: give one to the crash test"];
  const begun = played.runs.flatMap(({ exported }) => exported.entries).filter(({ type }) => BEGINS.has(type));
  const calls = countOf(begun.length, "call was", "calls were");
  return ["pass", `${calls} recorded before they began; nothing was done outside of one`];
}

const BEGINS: ReadonlySet<string> = new Set(["step.started", "effect.planned"]);

function resume({ played, plans }: Audited): Judged {
  if (played !== null) {
    const [hazard] = played.hazards;
    if (hazard !== undefined)
      return ["fail", `the body calls ${hazard.what} at ${hazard.line}; use ${hazard.instead}, or put it into a step`];
    const lost = played.runs.find(({ replay }) => !replay.ok);
    if (lost !== undefined)
      return ["fail", `code that remembers nothing takes another way: ${lost.replay.message} Keep it in run state`];
    const entries = played.runs.reduce((sum, { exported }) => sum + exported.entries.length, 0);
    return [
      "pass",
      `code that remembers nothing was led through ${countOf(entries, "entry", "entries")} by them alone`,
    ];
  }
  const followed = plans?.filter(({ plan }) => plan !== "decision").length ?? 0;
  if (followed === 0) return NOT_PLAYED;
  return [
    "pass",
    `${countOf(followed, "unfinished run was", "unfinished runs were")} followed by their journals alone`,
  ];
}

function version({ workflow, played, bumps }: Audited): Judged {
  if (!workflow.definition.isVersioned) {
    const isChanged = bumps.some(({ needed }) => needed === "minor" || needed === "major");
    if (isChanged)
      return [
        "fail",
        `it was changed, and has no version of its own that says so: "${workflow.version}" stands for any`,
      ];
    const advice = `write \`version: "${workflow.version}"\` before you change it`;
    return [
      "pass",
      `${workflow.version}, which stands for all that have none, goes into the first entry of every run; ${advice}`,
    ];
  }
  const shown = played?.runs[0]?.document.workflow_version;
  if (shown === undefined) return ["pass", `version ${workflow.version} goes into the first entry of every run`];
  return ["pass", `workflow_version is ${shown} in the document of a run that was played`];
}

/** Findings that nothing keeps an action from happening twice. */
export const GUARDS: ReadonlySet<LintFinding["kind"]> = new Set([
  "no_class",
  "wrong_class",
  "unguarded",
  "acts_again",
  "undo_acts_again",
]);

function writes({ played }: Audited): Judged {
  if (played === null) return NOT_PLAYED;
  const found = messagesOf(played, ({ kind }) => GUARDS.has(kind));
  if (found !== "") return ["fail", found];
  const writing = writesOf(played);
  if (writing.length === 0) return ["not applicable", "nothing that it did was seen, or is said, to write outside"];
  return ["pass", writing.map(({ name, detectedBy }) => `"${name}" by ${detectedBy ?? "its class"}`).join(", ")];
}

function identifier({ played }: Audited): Judged {
  if (played === null) return NOT_PLAYED;
  const found = messagesOf(played, ({ kind, questions }) => kind === "detector" && questions.includes(2));
  if (found !== "") return ["fail", found];
  const named = (how: string) =>
    writesOf(played)
      .filter(({ detectedBy }) => detectedBy === how)
      .map(({ name }) => `"${name}"`);
  const [looking, keyed] = [named("detect").join(", "), named("key").join(", ")];
  const shown = [
    ...(looking === "" ? [] : [`in another run, nothing of the first one was taken for its own: ${looking}`]),
    ...(keyed === "" ? [] : [`recognised outside by the key that it passes on: ${keyed}`]),
  ];
  return shown.length === 0
    ? ["not applicable", "nothing is detected, or recognised by a key"]
    : ["pass", shown.join("; ")];
}

function detection({ played }: Audited): Judged {
  if (played === null) return NOT_PLAYED;
  const found = messagesOf(played, (finding) => finding.questions.includes(3) && isFault(finding));
  if (found !== "") return ["fail", found];
  if (!played.lint.findings.every(isFault))
    return ["not shown", "no recorder watched its detectors: give one to the crash test"];
  const looking = played.lint.operations.filter(({ detection: one }) => one === "only looks");
  if (looking.length === 0) return ["not applicable", "it has no detector"];
  return ["pass", `asked before and after, these wrote nothing: ${looking.map(({ name }) => `"${name}"`).join(", ")}`];
}

/** That nobody could see is no fault: what was not shown is said to be so. */
export function isFault({ kind }: LintFinding): boolean {
  return kind !== "detector_not_watched";
}

function verified({ workflow }: Audited): Judged {
  const { versionPolicy } = workflow.definition;
  if (versionPolicy === "ignore")
    return ["fail", '`versionPolicy: "ignore"` lets this code go on with any run: use "semver" or "exact"'];
  return ["pass", `\`versionPolicy: "${versionPolicy}"\`: compared before any code of it is called`];
}

function majors({ workflow, registry, plans, bumps }: Audited): Judged {
  const own = parseVersion(workflow.version).major;
  const isOther = (text: string) => parseVersion(text).major !== own;
  const runs = plans?.map((plan) => plan.version) ?? [];
  const definitions = bumps.flatMap(({ from }) => (from === null ? [] : [from]));
  const others = [...new Set([...runs, ...(plans === null ? definitions : [])])].filter(isOther);
  const open = others.filter(
    (one) => registry.forRun(workflow.name, one) === undefined && registry.migrationFrom(workflow.name, one) === null,
  );
  if (open.length > 0)
    return [
      "fail",
      `nothing is said about runs of ${open.join(", ")}: keep that version registered beside ${workflow.version}, or give it \`migrations\``,
    ];
  const handled = others.map((one) => {
    const beside = registry.forRun(workflow.name, one);
    return beside === undefined ? `a migration leads from ${one}` : `runs of ${one} finish under ${beside.version}`;
  });
  if (handled.length > 0) return ["pass", handled.join("; ")];
  if (definitions.some(isOther)) return ["pass", "no unfinished run is of another MAJOR version"];
  return ["not applicable", "no other MAJOR version is known here: --against and --store tell of them"];
}

function choices({ workflow }: Audited): Judged {
  if (workflow.definition.onMissing === "execute")
    return [
      "fail",
      '`onMissing: "execute"` runs what does not fit without asking: leave it out, and such runs are parked',
    ];
  return [
    "pass",
    "such runs are parked, never failed: old, fresh, migrate or cancel, by `pawl resolve` and `pawl why`",
  ];
}

function writesOf({ lint }: PlayedWorkflow) {
  return lint.operations.filter(({ kind, class: level, did }) => (kind === "step" ? did.length > 0 : level !== "read"));
}

function messagesOf({ lint }: PlayedWorkflow, isMeant: (finding: LintFinding) => boolean): string {
  return lint.findings
    .filter(isMeant)
    .map(({ message }) => relativeToHere(message))
    .join(" ");
}
