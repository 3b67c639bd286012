// An exploration: which histories are played, in which order, and until when.
import { hasCode, PawlError, readProperty } from "../../base/errors.ts";
import { seededRandom } from "../../base/random.ts";
import { type CrashMode, modesAt } from "./crash-point.ts";
import { type Blow, blowsAt, type Explored, Explorer, type RecordedPoint, sample } from "./explorer.ts";
import { Findings, plain } from "./findings.ts";
import { RUN_ID } from "./history.ts";
import { type CrashReport, reportOf } from "./report.ts";
import { describeEnd } from "./run-end.ts";
import { failureOf } from "./step-outcomes.ts";
import { Variation } from "./variation.ts";
import { faultsOf, hazardsOf, type Outcome, waitedInVain } from "./verdict.ts";

/** Up to here every history is played. Beyond, a kill still is everywhere, and of the other modes some. */
const ALL_UP_TO = 1500;
const SAMPLED = 150;
/** Up to so many points all pairs are played, otherwise some. */
const ALL_PAIRS_UP_TO = 14;
const SAMPLED_PAIRS = 200;
/** So many further undisturbed histories are played to see whether a step varies by itself. */
const MOST_REPEATED = 3;

export interface ExplorationOptions {
  readonly modes: readonly CrashMode[];
  readonly seed: number;
  readonly pairs: boolean;
  readonly at: number | null;
  readonly budgetMs: number;
}

// Captured at load: what a test does to the globals is no concern of the budget.
const { performance } = globalThis;

export async function exploreAll(explored: Explored, options: ExplorationOptions): Promise<CrashReport> {
  const end = performance.now() + options.budgetMs;
  const isTime = () => performance.now() < end;
  const explorer = new Explorer(explored);
  const { outcome: undisturbed, points } = await explorer.record();
  assertNoTransaction(undisturbed);
  const variation = new Variation(undisturbed);
  const findings = new Findings(undisturbed, variation);
  const vain = waitedInVain(undisturbed, explored.scene.workflow);
  findings.withoutCrash([...faultsOf(undisturbed), ...vain]);
  // What does not even come to its end undisturbed has nothing to be compared with.
  const { stuck, scriptError, world } = undisturbed.ending;
  const hasEnded = stuck.length === 0 && scriptError === undefined && vain.length === 0;
  // Whoever keeps something between runs shows it the second time.
  const again = async () => {
    const fault = variation.learn(await explorer.repeat());
    explorer.isReplayingAll = variation.hasSteps;
    if (fault !== null && !findings.has(fault.kind)) findings.withoutCrash([fault]);
  };
  await again();
  // A clock may have shown the same twice: what differs later is asked of a further undisturbed history first.
  let repeated = 0;
  const judge = async (outcome: Outcome) => {
    const differing = findings.compare(outcome);
    if (differing.length === 0 || repeated >= MOST_REPEATED) return findings.add(outcome, differing);
    repeated++;
    await again();
    findings.add(outcome, findings.compare(outcome));
  };

  assertPoint(options.at, points.length);
  const { blows, skipped, left } = plan(points, options);
  explorer.expect(blows);
  let played = 0;
  for (const blow of blows) {
    if (!hasEnded || !isTime()) break;
    const outcome = await explorer.strike(blow);
    if (outcome !== null) await judge(outcome);
    played++;
  }
  const pairs =
    options.pairs && hasEnded ? await explorePairs(explorer, points, options, judge, isTime) : { explored: 0, left: 0 };
  return reportOf({
    workflow: explored.scene.workflow.name,
    outcome: describeEnd(undisturbed.ends.get(RUN_ID) ?? null),
    points: points.map(plain),
    explored: played + pairs.explored,
    skipped,
    left: left + (blows.length - played) + pairs.left,
    seed: options.seed,
    repeats: findings.repeats,
    varying: variation.names,
    hazards: explored.scene.workflow.definition.guard === "off" ? [] : hazardsOf(world),
    failures: findings.failures,
  });
}

function assertPoint(at: number | null, points: number): void {
  if (at === null || (Number.isInteger(at) && at >= 1 && at <= points)) return;
  throw new PawlError("invalid_argument", `There is no point ${at}: \`at\` is one of 1 to ${points}.`, {
    fields: { at, points },
  });
}

/** What is played at one point each. Under a budget the order is random, so that what is left out is spread. */
function plan(
  points: readonly RecordedPoint[],
  { modes, at, seed, budgetMs }: ExplorationOptions,
): { readonly blows: readonly Blow[]; readonly skipped: number; readonly left: number } {
  if (at !== null)
    return {
      ...blowsAt(
        points.filter(({ n }) => n === at),
        modes,
      ),
      left: 0,
    };
  const { blows, skipped } = blowsAt(points, modes);
  const some =
    blows.length <= ALL_UP_TO
      ? blows
      : modes.flatMap((mode) => {
          const ofMode = blows.filter((blow) => blow.mode === mode);
          return mode === "kill" ? ofMode : sample(ofMode, SAMPLED, seed);
        });
  const order = budgetMs < Number.POSITIVE_INFINITY ? shuffled(some, seed) : some;
  return { blows: order, skipped, left: blows.length - some.length };
}

async function explorePairs(
  explorer: Explorer,
  points: readonly RecordedPoint[],
  { modes, seed }: ExplorationOptions,
  judge: (outcome: Outcome) => Promise<void>,
  isTime: () => boolean,
): Promise<{ readonly explored: number; readonly left: number }> {
  let explored = 0;
  const between = points.filter(({ kind }) => kind !== "effect");
  if (between.length <= ALL_PAIRS_UP_TO) {
    for await (const outcome of explorer.pairs(modes, isTime)) {
      await judge(outcome);
      explored++;
    }
    return { explored, left: isTime() ? 0 : 1 };
  }
  const chance = seededRandom(`pairs ${seed}`);
  const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(chance.next() * list.length)];
  for (; explored < SAMPLED_PAIRS && isTime(); explored++) {
    const point = pick(between);
    const mode = point === undefined ? undefined : pick(modes.filter((one) => modesAt(point.kind).includes(one)));
    const second = pick(modes);
    if (point === undefined || mode === undefined || second === undefined) continue;
    const gap = 1 + Math.floor(chance.next() * Math.max(1, points.length - point.n));
    await judge(await explorer.pair({ point, mode }, gap, second));
  }
  return { explored, left: Math.max(1, points.length * points.length - explored) };
}

function shuffled<T>(list: readonly T[], seed: number): readonly T[] {
  const chance = seededRandom(`order ${seed}`);
  return list
    .map((one) => ({ one, place: chance.next() }))
    .sort((a, b) => a.place - b.place)
    .map(({ one }) => one);
}

/** Histories are played on a store in memory, which has no transactions: a run in which one has failed for that tells nothing of its crashes. */
function assertNoTransaction({ journals }: Outcome): void {
  const refused = [...journals].flatMap(([run, journal]) =>
    journal.flatMap((entry) => (entry.type === "step.failed" ? refusedTransaction(failureOf(run, entry).error) : [])),
  );
  const [transaction] = refused;
  if (transaction === undefined) return;
  throw new PawlError(
    "invalid_argument",
    `crashEverywhere cannot explore ctx.transaction("${transaction}"): it plays in memory, where there are no transactions. Kill real processes on a SQLite file or PostgreSQL instead.`,
    { fields: { transaction } },
  );
}

function refusedTransaction(error: unknown): string[] {
  const transaction = readProperty(readProperty(error, "fields"), "transaction");
  return hasCode(error, "invalid_argument") && typeof transaction === "string" ? [transaction] : [];
}
