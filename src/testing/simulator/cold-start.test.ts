import { expect, it } from "vitest";
import { manualClock } from "../../base/clock.ts";
import { jsonCodec } from "../../base/envelope.ts";
import { Pawl } from "../../client/pawl.ts";
import { checksum } from "../../core/checksum.ts";
import { type Workflow, workflow } from "../../core/workflow.ts";
import { storeOver } from "../../stores/memory/memory-store.ts";
import { emptyTables, type MemoryRun } from "../../stores/memory/tables.ts";
import { nodeHost } from "../../worker/node-host.ts";
import { coldStart, idle } from "./cold-start.ts";
import { drawScenario } from "./draw-scenario.ts";
import { type Outside, type Program, type ProgramInput, runProgram } from "./program.ts";

const { settings } = drawScenario(1);
const allHadBodies = () => false;
const add: Program = { op: "add", counter: "x", by: 2, ms: 0 };
const program: Program = { op: "all", of: [add, { op: "call", of: add, fails: false }] };

it("I5 the end of a run follows from its journal without the last entry, children included", async () => {
  const { runs } = await recorded(program);
  expect(runs.size).toBe(2);
  expect(await coldStart(runs, settings, allHadBodies)).toBe(null);
});

it("I5 the end of a run that failed follows from its journal, with a child that failed as well", async () => {
  const { runs } = await recorded({ op: "call", of: add, fails: true }, { fails: true });
  expect([...runs.values()].map(({ row }) => row.state)).toEqual(["failed", "failed"]);
  expect(await coldStart(runs, settings, allHadBodies)).toBe(null);
  expect(await coldStart(withEnd(runs, '{"error":"another","stopReason":"error"}'), settings, allHadBodies)).toMatch(
    /ended with .*another.*, from its journal follows .*this run was meant to fail/,
  );
});

it("I5 the end of a cancelled run follows from its journal, and from the cancel alone if it had not begun", async () => {
  const waiting: Program = { op: "wait", signal: "never", timeoutMs: null };
  for (const [delay, entries] of [
    [0, 4],
    [60_000, 3],
  ] as const) {
    const { runs } = await recorded(waiting, { delay, isCancelled: true });
    const [run] = [...runs.values()] as [MemoryRun];
    expect(run.row.state).toBe("cancelled");
    expect(run.journal).toHaveLength(entries);
    const hadNoBody = () => entries === 3;
    expect(await coldStart(runs, settings, hadNoBody)).toBe(null);
    expect(await coldStart(withEnd(runs, "null"), settings, hadNoBody)).toMatch(
      /ended with null, from its journal follows/,
    );
  }
});

it("I5 an end that does not follow from the journal is found", async () => {
  const { runs } = await recorded(program);
  expect(await coldStart(withEnd(runs, "[[9,[2]]]"), settings, allHadBodies)).toMatch(
    /ended with \[\[9,\[2\]\]\], from its journal follows \[\[2,\[2\]\]\]/,
  );
});

it("I5 a journal that stops too early is found: its run does something first", async () => {
  const { runs } = await recorded(program);
  const [[id, run]] = [...runs] as [[string, MemoryRun]];
  const short = { ...run, journal: [...run.journal.slice(0, 1), ...run.journal.slice(-1)] };
  expect(await coldStart(new Map([[id, short]]), settings, allHadBodies)).toMatch(
    /recorded more than its end when it was started cold/,
  );
});

interface Recording {
  readonly fails?: boolean;
  readonly delay?: number;
  readonly isCancelled?: boolean;
}

async function recorded(of: Program, { fails = false, delay = 0, isCancelled = false }: Recording = {}) {
  const outside: Outside = { ...idle, pause: async () => {} };
  const made: Workflow<ProgramInput, unknown> = workflow<ProgramInput, unknown>("program", (ctx, input) =>
    runProgram(ctx, input, { isPatched: false, workflow: () => made, outside }),
  );
  const tables = emptyTables();
  const clock = manualClock();
  const store = storeOver(tables, { clock });
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const pawl = await Pawl.open(store, { workflows: [made], codec: jsonCodec, handleSignals: false, logger });
  const run = await pawl.start(made, { program: of, rounds: 1, done: [], fails }, { delay });
  if (isCancelled) await run.cancel();
  await run.result().catch(() => {});
  await pawl.close();
  return tables;
}

function withEnd(runs: ReadonlyMap<string, MemoryRun>, data: string): Map<string, MemoryRun> {
  const [[id, run]] = [...runs] as [[string, MemoryRun]];
  const last = run.journal.at(-1) as MemoryRun["journal"][number];
  const before = run.journal.at(-2)?.hash ?? id;
  const changed = { ...last, data, hash: checksum(nodeHost, before, { ...last, data }) };
  return new Map([[id, { ...run, journal: [...run.journal.slice(0, -1), changed] }]]);
}
