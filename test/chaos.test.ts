// A short storm over real processes, and the judge's own test: what is wrong is planted into what the storm has left, and must be found.

import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { checksum } from "../src/core/checksum.ts";
import type { StoredEntry } from "../src/core/journal.ts";
import type { Store } from "../src/core/store.ts";
import * as pawl from "../src/index.ts";
import { type Database, loadDriver } from "../src/stores/sqlite/driver.ts";
import { sqliteStore } from "../src/stores/sqlite/sqlite-store.ts";
import { nodeHost } from "../src/worker/node-host.ts";
import { Program } from "./child.ts";
import { coldStartFile } from "./cold-start.ts";

const SCRIPT = fileURLToPath(new URL("../scripts/chaos.mjs", import.meta.url));

interface Report {
  readonly injected: Readonly<Record<string, number>>;
  readonly reached: Readonly<Record<string, number>>;
  readonly judged: Readonly<Record<string, number>>;
  readonly figures: { readonly started: number; readonly ended: number; readonly unfinished: number };
  readonly violations: readonly { readonly rule: string; readonly run: string | null; readonly text: string }[];
  readonly folder: string;
}

let storm: Report;
let code: number | null;
const copies: string[] = [];

async function chaos(...words: string[]): Promise<{ code: number | null; report: Report }> {
  const program = new Program([process.execPath, SCRIPT, "--json", ...words]);
  const { code } = await program.exited;
  const json = program.lines.findLast((line) => line.startsWith("{"));
  if (json === undefined) throw new Error(program.report());
  return { code, report: JSON.parse(json) as Report };
}

beforeAll(async () => {
  const trial = await chaos("--seconds", "4", "--workers", "3", "--rate", "8", "--keep");
  storm = trial.report;
  code = trial.code;
}, 240_000);

interface ProgramsModule {
  readonly programs: (build: object, how: { readonly ledger: object; readonly patch: number }) => object[];
}

/** The workflows of the storm, as its older and its newer processes have them. No step begins in a replay: nothing is booked. */
async function workload(): Promise<object[]> {
  const path = new URL("../scripts/chaos/programs.mjs", import.meta.url).href;
  const { programs } = (await import(path)) as ProgramsModule;
  return [0, 1].flatMap((patch) => programs(pawl, { ledger: {}, patch }));
}

afterAll(async () => {
  if (storm !== undefined) await coldStartFile(join(storm.folder, "pawl.db"), [await workload()]);
  for (const folder of [storm?.folder ?? "", ...copies])
    if (folder !== "") rmSync(folder, { recursive: true, force: true });
});

it("I1 I2 I3 I4 I6 I8 I9 I10 I13 I14 I16 I17 I19 I27 P13 P17 P20 P37 a storm over workers with a lease of 1 s: nothing acknowledged is lost, nothing recorded runs again, everything ends", () => {
  expect(storm.violations).toEqual([]);
  expect(code).toBe(0);
  expect(storm.injected["SIGKILL"]).toBeGreaterThanOrEqual(3);
  expect(storm.injected["SIGSTOP"]).toBeGreaterThan(0);
  expect(storm.reached["processes that died of a run that takes all memory"]).toBeGreaterThan(0);
  expect(storm.figures.ended).toBeGreaterThan(10);
  expect(storm.figures.unfinished).toBe(0);
});

/** A copy of what the storm has left, to plant something in. */
class Scene {
  readonly folder = mkdtempSync(join(tmpdir(), "pawl-judged-"));

  constructor() {
    copies.push(this.folder);
    cpSync(storm.folder, this.folder, { recursive: true });
  }

  lines(file: string): Record<string, unknown>[] {
    const text = readFileSync(join(this.folder, file), "utf8");
    return text
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  }

  book(file: string, line: Readonly<Record<string, unknown>>): void {
    appendFileSync(join(this.folder, file), `${JSON.stringify(line)}\n`);
  }

  keep(file: string, isKept: (line: Record<string, unknown>) => boolean): void {
    const kept = this.lines(file).filter(isKept);
    writeFileSync(join(this.folder, file), kept.map((line) => `${JSON.stringify(line)}\n`).join(""));
  }

  sql<T>(work: (db: Database) => T): T {
    const db = loadDriver().open(join(this.folder, "pawl.db"));
    try {
      return work(db);
    } finally {
      db.close();
    }
  }

  /** A run that succeeded and had started by an acknowledged call. */
  run(workflow: string): string {
    const started = new Set(
      this.lines("acks.jsonl").flatMap((line) => (line["what"] === "started" ? [line["run"]] : [])),
    );
    const rows = this.sql((db) =>
      db
        .prepare("select id from runs where workflow = ? and state in ('succeeded', 'cancelled') order by state desc")
        .all(workflow),
    );
    const found = rows.find(({ id }) => started.has(id))?.["id"];
    if (typeof found !== "string") throw new Error(`the storm has left no ${workflow}`);
    return found;
  }

  /** Writes a journal anew, with positions and checksums that hold. */
  rewrite(run: string, change: (entries: StoredEntry[]) => readonly Omit<StoredEntry, "seq" | "hash">[]): void {
    this.sql((db) => {
      const n = db.prepare("select n from runs where id = ?").get(run)?.["n"] as number;
      const rows = db.prepare("select seq, at, type, key, data, hash from journal where run = ? order by seq").all(n);
      const entries = change(rows as unknown as StoredEntry[]);
      db.prepare("delete from journal where run = ?").run(n);
      let hash = run;
      for (const [seq, { at, type, key, data }] of entries.entries()) {
        hash = checksum(nodeHost, hash, { seq, at, type, key, data });
        db.prepare("insert into journal (run, seq, at, type, key, data, hash) values (?, ?, ?, ?, ?, ?, ?)").run(
          n,
          seq,
          at,
          type,
          key,
          data,
          hash,
        );
      }
      db.prepare("update runs set head = ?, head_hash = ? where n = ?").run(entries.length, hash, n);
    });
    // It was read before as it was then; what is asked here is whether the new one makes sense.
    this.keep("acks.jsonl", (line) => line["what"] !== "seen");
  }
}

interface JudgeModule {
  readonly Judge: new (
    folder: string,
    store: Store,
  ) => {
    readonly store: { open(): Promise<void>; close(): Promise<void> };
    readonly violations: Report["violations"];
    judgeAll(): Promise<void>;
  };
}

interface DumpModule {
  readonly dump: (store: Store, file: string, runs: readonly string[], target: string) => Promise<void>;
}

/** The rules that the judge finds broken. */
async function broken({ folder }: Scene): Promise<string[]> {
  const { Judge } = (await import(new URL("../scripts/chaos/judge.mjs", import.meta.url).href)) as JudgeModule;
  const judge = new Judge(folder, sqliteStore(join(folder, "pawl.db")));
  await judge.store.open();
  await judge.judgeAll();
  await judge.store.close();
  return judge.violations.map(({ rule, text }) => `${rule}: ${text}`);
}

const after = (
  entries: StoredEntry[],
  type: string,
  extra: (entry: StoredEntry) => Omit<StoredEntry, "seq" | "hash">,
) => entries.flatMap((entry) => (entry.type === type ? [entry, extra(entry)] : [entry]));

const PLANTS: readonly (readonly [what: string, plant: (scene: Scene) => void, finding: RegExp])[] = [
  [
    "I1 a run whose start was acknowledged is gone",
    (scene) => {
      const run = scene.run("short");
      scene.sql((db) => db.prepare("delete from runs where id = ?").run(run));
    },
    /I1 I17 .*there is no such run/,
  ],
  [
    "I17 a start by key has made two runs",
    (scene) => {
      const short = scene.run("short");
      const { token } = scene.lines("acks.jsonl").find(({ what, run }) => what === "started" && run === short) ?? {};
      scene.book("acks.jsonl", { what: "started", token, run: scene.run("long") });
    },
    /I1 I17 .*was to be one run/,
  ],
  [
    "I3 an entry was edited",
    (scene) => scene.sql((db) => db.exec("update journal set at = at + 1 where seq = 1")),
    /I3 .*checksum/,
  ],
  [
    "I1 entries that were read before are gone",
    (scene) => {
      const run = scene.run("long");
      let last: StoredEntry | undefined;
      scene.rewrite(run, (entries) => {
        last = entries.at(-1);
        return entries.slice(0, 2);
      });
      scene.book("acks.jsonl", { what: "seen", run, seq: last?.seq, hash: last?.hash, mono: 1 });
    },
    /I1 I3 .*was read before, and is missing now/,
  ],
  [
    "I4 a row says what its journal does not",
    (scene) => scene.sql((db) => db.exec("update runs set state = 'failed' where workflow = 'long'")),
    /I4 .*its state is failed/,
  ],
  [
    "I10 a run that nothing will wake",
    (scene) => scene.sql((db) => db.exec("update runs set state = 'waiting' where workflow = 'long'")),
    /I10 nothing is an orphan/,
  ],
  [
    "I6 a step has two outcomes",
    (scene) => scene.rewrite(scene.run("short"), (entries) => after(entries, "step.completed", (entry) => entry)),
    /I6 .*has 2 outcomes/,
  ],
  [
    "I6 a step was started again after its outcome",
    (scene) =>
      scene.rewrite(scene.run("short"), (entries) =>
        after(entries, "step.completed", ({ at, key }) => ({ at, type: "step.started", key, data: '{"attempt":9}' })),
      ),
    /I6 .*started again after its outcome/,
  ],
  [
    "P13 a body started without a mark",
    (scene) =>
      scene.book("ledger.jsonl", {
        what: "start",
        run: scene.run("short"),
        key: `${scene.run("short")}/add`,
        attempt: 7,
        pid: 1,
        mono: 0,
      }),
    /I6 P13 .*no mark of it/,
  ],
  [
    "I6 a body started a second time for one mark",
    (scene) => scene.book("ledger.jsonl", scene.lines("ledger.jsonl").find(({ what }) => what === "start") ?? {}),
    /I6 P13 .*started a second time/,
  ],
  [
    "P37 a body started when its outcome was on record",
    (scene) => {
      const key = `${scene.run("short")}/double`;
      const start = scene.lines("ledger.jsonl").findLast((line) => line["what"] === "start" && line["key"] === key);
      scene.keep("ledger.jsonl", (line) => line["what"] !== "start" || line["key"] !== key);
      scene.book("ledger.jsonl", { ...start, gate: null, mono: Number.MAX_SAFE_INTEGER });
    },
    /I6 P37 .*had ended it before/,
  ],
  [
    "P37 a body started after the run was seen to be over",
    (scene) => {
      const run = scene.run("short");
      const key = `${run}/add`;
      const start = scene.lines("ledger.jsonl").findLast((line) => line["what"] === "start" && line["key"] === key);
      scene.keep("ledger.jsonl", (line) => line["what"] !== "start" || line["key"] !== key);
      scene.book("acks.jsonl", { what: "seen", run, seq: Number.MAX_SAFE_INTEGER, mono: 1 });
      scene.book("ledger.jsonl", { ...start, gate: 2, mono: Number.MAX_SAFE_INTEGER });
    },
    /I6 P37 .*had ended it before/,
  ],
  [
    "I8 the outcome of an attempt that another one has replaced was accepted",
    (scene) =>
      scene.rewrite(scene.run("short"), (entries) =>
        after(entries, "step.started", ({ at, key }) => ({ at, type: "step.started", key, data: '{"attempt":9}' })),
      ),
    /I8 I9 .*attempt 9 was under way/,
  ],
  [
    "I6 an outcome was recorded whose effect never happened",
    (scene) => scene.keep("ledger.jsonl", ({ what }) => what !== "effect"),
    /I8 I9 .*whose effect nobody saw/,
  ],
  [
    "I13 a timer fired early",
    (scene) =>
      scene.rewrite(scene.run("sleeper"), (entries) =>
        entries.map((entry) => (entry.type === "timer.set" ? { ...entry, data: '{"due":9007199254740991}' } : entry)),
      ),
    /I13 .*ms early/,
  ],
  [
    "I14 an acknowledged signal was never delivered",
    (scene) => scene.book("acks.jsonl", { what: "signalled", run: scene.run("listener"), id: "word-99" }),
    /I1 I14 .*never delivered/,
  ],
  [
    "I14 a signal was delivered twice",
    (scene) => {
      const run = scene.run("listener");
      scene.rewrite(run, (entries) => after(entries, "signal.received", (entry) => entry));
      // The storm may have swallowed every answer that the sender was given.
      scene.book("acks.jsonl", { what: "signalled", run, id: "word-0" });
    },
    /I1 I14 .*delivered 2 times/,
  ],
  [
    "I16 a cancel was answered otherwise",
    (scene) => scene.book("acks.jsonl", { what: "cancelled", run: scene.run("long"), outcome: "cancelled" }),
    /I16 what a cancel was answered with/,
  ],
  [
    "P19 a call was recorded after a cancel",
    (scene) =>
      scene.rewrite(scene.run("endless"), (entries) => {
        // A run that was cancelled before it began has no moment between the request and the end.
        const { at } = entries[0] as StoredEntry;
        const begun = entries.filter(({ type }) => type !== "run.cancelling" && type !== "run.cancelled");
        return [
          ...begun,
          { at, type: "run.cancelling", key: null, data: '{"cause":"cancel","reason":""}' },
          { at, type: "timer.set", key: "late", data: '{"due":1}' },
          ...entries.filter(({ type }) => type === "run.cancelled"),
        ];
      }),
    /I16 P19 .*timer.set after the cancel/,
  ],
  [
    "I16 a result was told otherwise",
    (scene) => scene.book("acks.jsonl", { what: "result", run: scene.run("short"), output: -1 }),
    /I1 I16 .*was told as -1/,
  ],
  [
    "the result is wrong",
    (scene) =>
      scene.rewrite(scene.run("short"), (entries) =>
        entries.map((entry) => (entry.type === "run.succeeded" ? { ...entry, data: "-1" } : entry)),
      ),
    /can be computed: it succeeded with -1/,
  ],
  [
    "I5 a run was parked for a reason of the engine",
    (scene) =>
      scene.rewrite(scene.run("short"), (entries) =>
        after(entries, "run.started", ({ at }) => ({
          at,
          type: "run.parked",
          key: null,
          data: '{"reason":"replay_drift","message":"","choices":["retry"]}',
        })),
      ),
    /I5 I19 .*it was parked: replay_drift/,
  ],
];

it("the judge finds nothing wrong with what the storm has left", async () => {
  expect(await broken(new Scene())).toEqual([]);
});

it("P37 a process that was frozen between its look at the lease and the first word of a body has done nothing wrong", async () => {
  const scene = new Scene();
  const key = `${scene.run("short")}/double`;
  const isIt = (line: Record<string, unknown>) => line["what"] === "start" && line["key"] === key;
  const start = scene.lines("ledger.jsonl").findLast(isIt);
  expect(start?.["gate"]).toEqual(expect.any(Number));
  expect(Number(start?.["mono"]) - Number(start?.["gate"])).toBeGreaterThanOrEqual(0);
  scene.keep("ledger.jsonl", (line) => !isIt(line));
  scene.book("ledger.jsonl", { ...start, mono: Number.MAX_SAFE_INTEGER });
  expect(await broken(scene)).toEqual([]);
});

for (const [what, plant, finding] of PLANTS) {
  it(`${what}: the judge finds it`, async () => {
    const scene = new Scene();
    plant(scene);
    expect(await broken(scene)).toEqual(expect.arrayContaining([expect.stringMatching(finding)]));
  });
}

it("what is stuck is described: workers, orphans, and of each run its journal and why it does not move", async () => {
  const scene = new Scene();
  const run = scene.run("endless");
  scene.sql((db) => db.prepare("update runs set state = 'waiting' where id = ?").run(run));
  const { dump } = (await import(new URL("../scripts/chaos/dump.mjs", import.meta.url).href)) as DumpModule;
  const file = join(scene.folder, "pawl.db");
  const store = sqliteStore(file);
  await store.open();
  await dump(store, file, [run], join(scene.folder, "stuck.txt"));
  await store.close();
  const text = readFileSync(join(scene.folder, "stuck.txt"), "utf8");
  for (const part of [/# workers\n\[/, /# orphans\n\[\s*\{/, /# journal of .*\n\{"seq":0/, /# pawl why .*\n.*waiting/])
    expect(text).toMatch(part);
});

it("a violation is an exit code of 1, and the folder is named", async () => {
  const scene = new Scene();
  scene.book("acks.jsonl", { what: "result", run: scene.run("short"), output: -1 });
  const { code, report } = await chaos("--judge", scene.folder);
  expect(code).toBe(1);
  expect(report.folder).toBe(scene.folder);
  expect(report.violations.length).toBeGreaterThan(0);
});
