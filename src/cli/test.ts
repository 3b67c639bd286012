import type { Command } from "commander";
import { toMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import { crashEverywhere } from "../testing/crash-everywhere.ts";
import { CRASH_MODES, type CrashMode } from "../testing/explorer/crash-point.ts";
import type { CrashReport } from "../testing/explorer/report.ts";
import { action, addCommand, type Call } from "./command.ts";
import { type CrashTestChoice, chooseTests, type NamedCrashTest } from "./crash-tests.ts";
import { checkInProcesses, chooseDetectors, printDetector } from "./detector-tests.ts";
import { byWorkflow, lintTests, printLint } from "./effect-tests.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { type FreshReport, killEverywhere, MOST_POINTS } from "./fresh-processes.ts";
import { readValue, wholeNumber } from "./input.ts";
import { onInterrupt } from "./interrupt.ts";
import { loadModule } from "./load.ts";
import { assertNoNetwork, blockNetwork } from "./network.ts";
import { printReport } from "./test-report.ts";

interface TestOptions {
  readonly crashEverywhere?: boolean;
  readonly detectors?: boolean;
  readonly effects?: boolean;
  readonly input?: string;
  readonly pairs?: boolean;
  readonly at?: string;
  readonly modes?: string;
  readonly seed?: string;
  readonly budget?: string;
  readonly allowNet?: boolean;
  /** `false` is Commander's form of --no-processes. */
  readonly processes?: string | boolean;
}

/** The options, read. */
interface Plan {
  readonly choice: CrashTestChoice;
  readonly modes: readonly CrashMode[] | null;
  readonly pairs: boolean;
  readonly at: number | null;
  readonly seed: number;
  readonly budgetMs: number | null;
  readonly allowNet: boolean;
  /** At how many points at most; 0: none. */
  readonly processPoints: number;
}

/** What came of one test. */
export interface TestReport {
  readonly test: string;
  readonly workflow: string;
  readonly ok: boolean;
  readonly crashes: CrashReport;
  /** `null`: not asked for. */
  readonly processes: FreshReport | null;
}

/** Of these, one at a time. */
const TESTS = ["--crash-everywhere", "--effects", "--detectors"] as const;

export function addTest(program: Command): void {
  addCommand(program, "test <file> [workflow]", "crash a workflow everywhere, or lint its effects", [
    `pawl test --crash-everywhere workflows/shop.ts order --input '{"id":"order-17"}'`,
    "pawl test --crash-everywhere checkout.crash.ts              # the crash tests that it exports",
    "pawl test --crash-everywhere checkout.crash.ts --at 17      # one point, to look into it",
    "pawl test --effects checkout.crash.ts                       # what keeps each step and effect from happening twice",
    "pawl test --detectors refund.ts                             # the checks of detectors that it exports",
  ])
    .option("--crash-everywhere", "the test: crash before and after every commit, step, wake and signal")
    .option("--effects", "the test: every step and effect says what keeps it from happening twice, and it is so")
    .option("--detectors", "the test: detectors of effects only look, and find what was done, in fresh processes")
    .option("--input <json>", "the input: JSON, @file or - for stdin")
    .option("--pairs", "also two crashes in one run")
    .option("--at <n>", "only the point with this number")
    .option("--modes <list>", `how to crash: ${CRASH_MODES.join(",")} (default: all of them)`)
    .option("--seed <n>", "what is drawn by lot follows from it (default: a new one)")
    .option("--budget <time>", "explore no longer than this: 60s, 5m")
    .option("--allow-net", "let steps use the network")
    .option("--processes <n>", `points at most to try with real processes (default: ${MOST_POINTS})`)
    .option("--no-processes", "do not also kill real processes and recover in fresh ones")
    .addHelpText("after", HELP)
    .action(
      action<TestOptions, [string, string | undefined]>(async (call, file, name) => {
        assertOneTest(call.options);
        if (call.options.detectors === true) return testDetectors(call, file, name ?? null);
        if (call.options.effects === true) return testEffects(call, file, name ?? null);
        const plan = await planOf(call.options, file, name ?? null);
        const network = plan.allowNet ? null : blockNetwork();
        const tests = chooseTests(await loadModule(file), plan.choice);
        const reports: TestReport[] = [];
        for (const [index, test] of tests.entries()) {
          const report = await tryOut(call, plan, test, index, () => assertNoNetwork(network, test.name));
          if (report === null) return EXIT.interrupted;
          reports.push(report);
          if (!call.out.isJson) printReport(call.out, report, plan.seed);
        }
        const ok = reports.every((report) => report.ok);
        if (call.out.isJson) call.out.json({ ok, seed: plan.seed, tests: reports });
        return ok ? EXIT.ok : EXIT.failed;
      }),
    );
}

const HELP = `
FILE exports crash tests, made with crashTest() of pawl/testing, or workflows. Each is run once, to find its points, and then
again for every point and every way to crash: the process dies there, a commit is applied but its answer lost, or the process
freezes and another one takes over. Then it is also killed for real, and recovered in a fresh process, which has none of the
first one's variables: at all points, or if there are more than ${MOST_POINTS}, at so many of them by lot.

With --effects, each is played once, what acts outside is run a second time, and three questions are asked about every step and effect:
does a second run have effects outside, how is "already executed" detected, is the detection itself free of effects.

With --detectors, FILE exports checks made with detectorTest(): each detector is asked twice, before and after its effect was made,
every time in a process of its own.

Exit codes: 0 if nothing was found, 1 if something was, 2 for bad usage.`;

function assertOneTest({ crashEverywhere, effects, detectors }: TestOptions): void {
  const count = [crashEverywhere, effects, detectors].filter((one) => one === true).length;
  if (count === 1) return;
  const [first, second, third] = TESTS;
  const message =
    count > 1
      ? `Of ${first}, ${second} and ${third} one is possible at a time. Leave the others out.`
      : `required option '${first}', '${second}' or '${third}' not specified`;
  throw new PawlError("invalid_argument", message, { fields: { options: TESTS } });
}

async function testEffects(call: Call<TestOptions>, file: string, name: string | null): Promise<ExitCode> {
  const { choice, allowNet } = await planOf(call.options, file, name);
  const network = allowNet ? null : blockNetwork();
  const reports = [];
  for (const tested of byWorkflow(chooseTests(await loadModule(file), choice))) {
    const { name: workflow } = tested.workflow;
    const report = await lintTests(tested);
    assertNoNetwork(network, workflow);
    reports.push({ workflow, ...report });
    if (!call.out.isJson) printLint(call.out, workflow, report);
  }
  const ok = reports.every((report) => report.ok);
  if (call.out.isJson) call.out.json({ ok, workflows: reports });
  return ok ? EXIT.ok : EXIT.failed;
}

async function testDetectors(call: Call<TestOptions>, file: string, name: string | null): Promise<ExitCode> {
  const allowNet = call.options.allowNet === true;
  const tests = chooseDetectors(await loadModule(file), file, name);
  const reports = [];
  for (const { name: test } of tests) {
    const report = await checkInProcesses({ file, test, allowNet });
    reports.push({ test, ok: report.ok, failures: report.failures });
    if (!call.out.isJson) printDetector(call.out, test, report);
  }
  const ok = reports.every((report) => report.ok);
  if (call.out.isJson) call.out.json({ ok, tests: reports });
  return ok ? EXIT.ok : EXIT.failed;
}

async function planOf(options: TestOptions, file: string, name: string | null): Promise<Plan> {
  const { input, at, seed, budget, modes } = options;
  return {
    choice: { file, name, input: input === undefined ? null : { value: await readValue(input, "--input") } },
    modes: modes === undefined ? null : modesOf(modes),
    pairs: options.pairs === true,
    at: at === undefined ? null : wholeNumber(at, "--at", 1),
    seed: seed === undefined ? Math.floor(Math.random() * 2 ** 31) : wholeNumber(seed, "--seed", 0),
    budgetMs: budget === undefined ? null : toMs(budget, "--budget"),
    allowNet: options.allowNet === true,
    processPoints: processPointsOf(options.processes),
  };
}

function processPointsOf(option: string | boolean | undefined): number {
  if (option === false) return 0;
  return typeof option === "string" ? wholeNumber(option, "--processes", 1) : MOST_POINTS;
}

function modesOf(list: string): CrashMode[] {
  return list.split(",").map((word) => {
    const mode = CRASH_MODES.find((one) => one === word.trim());
    if (mode !== undefined) return mode;
    throw new PawlError("invalid_argument", `--modes "${word.trim()}" is none of ${CRASH_MODES.join(", ")}.`, {
      fields: { option: "--modes", value: word },
    });
  });
}

/** `null`: interrupted. */
async function tryOut(
  call: Call<TestOptions>,
  plan: Plan,
  test: NamedCrashTest,
  index: number,
  check: () => void,
): Promise<TestReport | null> {
  const progress = call.out.progress(`Crashing ${test.name}`);
  const interrupt = onInterrupt();
  const stop = new AbortController();
  const interrupted = interrupt.asked.then(() => {
    stop.abort();
    return null;
  });
  try {
    const endsAt = plan.budgetMs === null ? Number.POSITIVE_INFINITY : Date.now() + plan.budgetMs;
    const crashes = await Promise.race([crashHere(plan, test), interrupted]);
    if (crashes === null) return null;
    check();
    const task = { choice: plan.choice, index, allowNet: plan.allowNet };
    const how = {
      task,
      seed: plan.seed,
      at: plan.at,
      isReplayed: crashes.ok && plan.at === null,
      varying: crashes.varying,
      most: plan.processPoints,
      endsAt,
      stop: stop.signal,
      progress: progress.update,
    };
    // A run that does not come to its end here does not in another process either.
    const hasEnded = crashes.ok || crashes.explored > 0;
    const processes = plan.processPoints > 0 && hasEnded ? await killEverywhere(how) : null;
    const ok = crashes.ok && (processes === null || processes.failures.length === 0);
    return { test: test.name, workflow: test.workflow.name, ok, crashes, processes };
  } catch (error) {
    if (stop.signal.aborted) return null;
    throw error;
  } finally {
    interrupt.forget();
    progress.done();
  }
}

/** The crashes that this process can play by itself. With a budget, half of it is left for real processes. */
function crashHere(plan: Plan, { name: _, workflow, input, ...own }: NamedCrashTest): Promise<CrashReport> {
  const { modes, pairs, at, seed, budgetMs, processPoints } = plan;
  return crashEverywhere(workflow, input, {
    ...own,
    seed,
    ...(modes !== null && { modes }),
    ...(pairs && { pairs }),
    ...(at !== null && { at }),
    ...(budgetMs !== null && { budgetMs: processPoints > 0 ? budgetMs / 2 : budgetMs }),
  });
}
