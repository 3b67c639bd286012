import { existsSync } from "node:fs";
import type { Command } from "commander";
import { PawlError } from "../base/errors.ts";
import { DEFAULT_STORE } from "../client/open-store.ts";
import type { Pawl } from "../client/pawl.ts";
import type { Workflow } from "../core/workflow.ts";
import { readIncidents, withoutCase } from "../observe/incidents.ts";
import { Registry } from "../worker/registry.ts";
import { type Audited, auditOf, isFault } from "./check/audit.ts";
import { type BumpVerdict, bumpsOf, verdictOf } from "./check/bump.ts";
import { differencesFromRecord } from "./check/difference.ts";
import { scan } from "./check/hazards.ts";
import { type PlayedWorkflow, playWorkflow } from "./check/played-workflow.ts";
import { readinessOf } from "./check/production.ts";
import { type CheckedReadiness, type CheckReport, printCheck, runsReport } from "./check/report.ts";
import type { RunPlan } from "./check/run-plan.ts";
import { storedRuns } from "./check/stored-runs.ts";
import { plansInFolder, plansInStore } from "./check/unfinished-runs.ts";
import { action, addCommand, type Call, withClient } from "./command.ts";
import { type NamedCrashTest, others, writtenTests } from "./crash-tests.ts";
import { byWorkflow } from "./effect-tests.ts";
import { CASES_FOLDER, CASES_HELP } from "./eval-files.ts";
import { EXIT } from "./exit-codes.ts";
import { readValue } from "./input.ts";
import { collectWorkflows, loadModule, loadWorkflows, pickWorkflow } from "./load.ts";
import { assertNoNetwork, blockNetwork } from "./network.ts";
import { storeExists } from "./store-url.ts";

interface CheckOptions {
  readonly workflow?: string;
  readonly against?: string;
  readonly runs?: string;
  readonly input?: string;
  readonly allowNet?: boolean;
  readonly production?: boolean;
  readonly cases?: string;
}

/** The files that are to be deployed, loaded. */
interface Code {
  readonly files: readonly string[];
  readonly modules: readonly object[];
  readonly workflows: readonly Workflow[];
  readonly registry: Registry;
  /** Of those that are checked. */
  readonly names: readonly string[];
}

export function addCheck(program: Command): void {
  addCommand(
    program,
    "check <files...>",
    "say whether this code may be deployed: versions, runs in flight, effects, audit",
    [
      "pawl check workflows/order.ts --against old/order.ts",
      "pawl check workflows/*.ts --store postgres://…              # every unfinished run, read only",
      "pawl check workflows/order.ts --runs exports/ --json        # runs that pawl export has written",
      "pawl check checkout.crash.ts                                # plays the crash tests that it exports",
      `pawl check workflows/order.ts --workflow order --input '{"id":"order-17"}'`,
      "pawl check checkout.crash.ts --production --store postgres://…   # the ten items of readiness, with evidence",
    ],
  )
    .option("--workflow <name>", "only this one (default: all that the files export)")
    .option("--against <file>", "the definitions that are deployed now (default: what unfinished runs have recorded)")
    .option("--runs <folder>", "look at the exports in this folder instead of a store")
    .option("--input <json>", "play the workflow for real with this input: JSON, @file or - for stdin")
    .option("--allow-net", "let steps that are played use the network")
    .option("--production", "say also whether it is ready for production: ten items, each with evidence")
    .option("--cases <folder>", `with --production: ${CASES_HELP}`)
    .addHelpText("after", HELP)
    .action(
      action<CheckOptions, [string[]]>(async (call, files) => {
        const code = await loadCode(files, call.options.workflow ?? null);
        const { against } = call.options;
        const before = against === undefined ? null : await loadWorkflows([against]);
        const plans = await plansOf(call, code, before ?? []);
        const bumps = bumpsFor(code, before, plans);
        const played = await playAll(call, code);
        const production = call.options.production === true ? await examine(call, code, played) : null;
        const report = withProduction(reportOf(code, bumps, plans, played), production);
        if (call.out.isJson) call.out.json(report);
        else printCheck(call.out, report);
        return report.ok ? EXIT.ok : EXIT.failed;
      }),
    );
}

const HELP = `
What it says:
  versions      which bump the change needs and why, and whether the version has it
  runs          for every unfinished run: it resumes, finishes under its own version, or needs a decision. Each is replayed against
                this code; nothing is claimed or written, and workers may be at work
  effects       what keeps each step and effect from happening twice: three questions, as pawl test --effects asks them
  determinism   what a body must not do, with lines: seen in a play, or else found in the text, which is only a search
  audit         nine things that a workflow needs to be resumed safely, each with what shows it
  production    with --production, ten things that it needs before people depend on it. Here, what was not shown is not ready

Effects, and a part of the audit, are known only for workflows that are played: with --input, or by crash tests that a file exports.
A play runs the steps for real, several times; the network is blocked unless you allow it.

Exit codes: 0 if it may be deployed, 1 if not, 2 for bad usage, 5 if the store cannot be used. What was not shown does not count.`;

async function loadCode(files: readonly string[], name: string | null): Promise<Code> {
  const workflows = await loadWorkflows(files);
  const modules: object[] = [];
  for (const file of files) modules.push(await loadModule(file));
  if (name !== null) pickWorkflow(workflows, name, files.join(", "));
  const registry = new Registry(workflows);
  return { files, modules, workflows, registry, names: name === null ? registry.names : [name] };
}

// Runs

/** `null`: there is nothing to look at. */
async function plansOf(call: Call<CheckOptions>, code: Code, before: readonly Workflow[]): Promise<RunPlan[] | null> {
  const { workflow, runs, store } = call.options;
  const gone = workflow === undefined ? before.map(({ name }) => name) : [];
  const names = [...new Set([...code.names, ...gone])];
  if (runs !== undefined && store !== undefined)
    throw new PawlError("invalid_argument", "--runs and --store are two places to look for runs. Leave one out.", {
      fields: { options: ["--runs", "--store"] },
    });
  if (runs !== undefined) return plansInFolder(runs, names, code.registry);
  if (call.url === DEFAULT_STORE && store === undefined && !existsSync(DEFAULT_STORE)) return null;
  const progress = call.out.progress("Looking at unfinished runs");
  try {
    return await withClient(call, (pawl) => plansInStore(pawl, names, code.registry, progress.update));
  } finally {
    progress.done();
  }
}

// Versions

function bumpsFor(code: Code, before: readonly Workflow[] | null, plans: readonly RunPlan[] | null): BumpVerdict[] {
  const known = before === null ? bumpsByRecord(code, plans ?? []) : bumpsOf(before, code.workflows);
  const meant = known.filter(({ workflow, to }) => to === null || code.names.includes(workflow));
  return meant.map((verdict) => withRuns(verdict, plans));
}

/** What unfinished runs say of the definition that they began with. */
function bumpsByRecord({ registry }: Code, plans: readonly RunPlan[]): BumpVerdict[] {
  const verdicts = new Map<string, BumpVerdict>();
  for (const { workflow, version, recorded } of plans) {
    const code = registry.forRun(workflow, version) ?? registry.newest(workflow);
    if (code === undefined) continue;
    const verdict = verdictOf(workflow, version, code.version, differencesFromRecord(recorded, code));
    verdicts.set(JSON.stringify(verdict), verdict);
  }
  return [...verdicts.values()];
}

/** A function shows no structure: whether it goes another way, its runs tell. */
function withRuns(verdict: BumpVerdict, plans: readonly RunPlan[] | null): BumpVerdict {
  const { workflow, from, to, reasons } = verdict;
  if (to === null) {
    const isOver = plans?.every((plan) => plan.workflow !== workflow);
    return isOver === true ? { ...verdict, ok: true, advice: null } : verdict;
  }
  const lost = plans?.filter((plan) => plan.workflow === workflow && plan.cause === "drift" && plan.with === to) ?? [];
  if (lost.length === 0 || from === null) return verdict;
  const what = `${lost.length === 1 ? "an unfinished run does" : `${lost.length} unfinished runs do`} not follow this code`;
  return verdictOf(workflow, from, to, [...reasons, { needs: "minor", what }]);
}

// Plays

async function playAll(call: Call<CheckOptions>, code: Code): Promise<PlayedWorkflow[]> {
  const tests = await testsOf(call.options, code);
  if (tests.length === 0) return [];
  const network = call.options.allowNet === true ? null : blockNetwork();
  if (call.options.input !== undefined)
    call.out.note(
      `Playing with --input: steps and effects run for real, several times, with ${network === null ? "the network" : "the network blocked"}. Give those that act outside fakes.`,
    );
  const again = await secondInstance(code);
  const progress = call.out.progress("Playing");
  try {
    const played: PlayedWorkflow[] = [];
    for (const tested of byWorkflow(tests)) {
      played.push(await playWorkflow(tested, again));
      assertNoNetwork(network, tested.workflow.name);
    }
    return played;
  } finally {
    progress.done();
  }
}

async function testsOf(options: CheckOptions, { names, modules, workflows, files }: Code): Promise<NamedCrashTest[]> {
  const { input } = options;
  if (input === undefined)
    return modules
      .flatMap(writtenTests)
      .filter(({ workflow }) => names.includes(workflow.name))
      .map((test) => ({ ...test, workflows: test.workflows ?? others(workflows, test.workflow) }));
  const [name = "", ...more] = names;
  if (more.length > 0)
    throw new PawlError(
      "invalid_argument",
      `--input is for one workflow, and there are ${names.join(", ")}. Name one with --workflow, or export crash tests.`,
      { fields: { option: "--input" } },
    );
  const workflow = pickWorkflow(workflows, name, files.join(", "));
  const value = await readValue(input, "--input");
  return [{ name, workflow, input: value, workflows: others(workflows, workflow) }];
}

/** The same code once more: what its files keep in variables is as it was when they were loaded. */
async function secondInstance({ files }: Code): Promise<(workflow: Workflow) => Workflow> {
  const loaded: Workflow[] = [];
  for (const file of files) loaded.push(...collectWorkflows(await loadModule(file, 1)));
  return (workflow) =>
    loaded.find(({ name, version }) => name === workflow.name && version === workflow.version) ?? workflow;
}

// Production

async function examine(
  call: Call<CheckOptions>,
  { names, modules, registry }: Code,
  played: readonly PlayedWorkflow[],
): Promise<CheckedReadiness[]> {
  const folder = call.options.cases ?? CASES_FOLDER;
  const incidents = readIncidents(folder);
  const open = new Set(withoutCase(folder, incidents));
  const alerts = modules.map((one) => (one as { readonly alerts?: unknown }).alerts).find((one) => one !== undefined);
  const examined = async (name: string, pawl: Pawl | null): Promise<CheckedReadiness> => {
    const workflow = registry.newest(name)!;
    const items = readinessOf({
      workflow,
      played: played.find((one) => one.workflow === name) ?? null,
      stored: pawl === null ? null : await storedRuns(pawl, name, registry),
      alerts,
      incidents: incidents
        .filter((one) => one.workflow === name)
        .map((one) => ({ id: one.id, hasCase: !open.has(one) })),
    });
    return { workflow: name, version: workflow.version, items };
  };
  const all = (pawl: Pawl | null) => inTurn(names, (name) => examined(name, pawl));
  return call.options.runs === undefined && storeExists(call.url) ? withClient(call, all) : all(null);
}

async function inTurn<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const done: R[] = [];
  for (const item of items) done.push(await work(item));
  return done;
}

function withProduction(report: CheckReport, production: readonly CheckedReadiness[] | null): CheckReport {
  if (production === null) return report;
  const isReady = production.every(({ items }) => items.every(({ status }) => status === "pass"));
  return { ...report, ok: report.ok && isReady, production };
}

// The report

function reportOf(
  code: Code,
  bumps: readonly BumpVerdict[],
  plans: readonly RunPlan[] | null,
  played: readonly PlayedWorkflow[],
): CheckReport {
  const workflows = code.names.map((name) => {
    const workflow = code.registry.newest(name)!;
    const play = played.find((one) => one.workflow === name) ?? null;
    const audited: Audited = {
      workflow,
      registry: code.registry,
      played: play,
      plans: plans?.filter((plan) => plan.workflow === name) ?? null,
      bumps: bumps.filter((one) => one.workflow === name),
    };
    const { operations = [], findings = [], plays = [], unseen = [] } = play?.lint ?? {};
    const lint = { operations, findings, plays, unseen };
    const isPlayed = play !== null;
    const audit = auditOf(audited);
    return { workflow: name, version: workflow.version, isPlayed, ...lint, hazards: play?.hazards ?? [], audit };
  });
  const suspected = workflows.every(({ isPlayed }) => isPlayed) ? [] : code.files.flatMap(scan);
  const runs = plans === null ? null : runsReport(plans);
  const isFine = workflows.every(
    ({ findings, hazards, audit }) =>
      !findings.some(isFault) && hazards.length === 0 && audit.every(({ status }) => status !== "fail"),
  );
  const ok = isFine && bumps.every((one) => one.ok) && (runs?.ok ?? true);
  return { ok, bumps, runs, workflows, suspected };
}
