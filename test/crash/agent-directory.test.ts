// The planning agent in a worker's directory, killed with SIGKILL after every durable write and inside every tool.
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it, onTestFinished, vi } from "vitest";
import { listWorkers } from "../../src/agent/recovery.ts";
import { directoryStore } from "../../src/agent/worker-directory.ts";
import { Program } from "../child.ts";
import type { KillPoint } from "./child.ts";
import { compiled, removeCompiled } from "./compiled.ts";

vi.setConfig({ testTimeout: 180_000 });

const PROGRAM = fileURLToPath(new URL("./agent-process.mjs", import.meta.url));
const REQUEST = { topic: "owls" };
/** How many lives end in one process: see kill-point.mjs. */
const IN_ONE_PROCESS = 12;

afterAll(removeCompiled);

interface Said {
  readonly event: string;
  readonly [fact: string]: unknown;
}

interface Worker {
  readonly root: string;
  readonly worker: string;
  readonly request?: unknown;
  readonly kill?: KillPoint;
}

interface Begun {
  readonly tool: string;
  readonly args: unknown;
}

class World {
  readonly folder: string = mkdtempSync(join(tmpdir(), "pawl-agent-"));

  constructor() {
    onTestFinished(() => rmSync(this.folder, { recursive: true, force: true }));
  }

  root(name: string): string {
    const root = join(this.folder, name);
    mkdirSync(root, { recursive: true });
    return root;
  }

  start(task: { readonly workers: readonly Worker[]; readonly stay?: boolean }): Program {
    const example = dirname(compiled("07-planning-agent/guide.ts"));
    const env = { ...process.env, NODE_OPTIONS: "", LEDGER: join(this.folder, "ledger.jsonl"), FAKES_LATENCY_MS: "0" };
    const program = new Program([process.execPath, "--no-warnings", PROGRAM, JSON.stringify({ example, ...task })], {
      env,
    });
    onTestFinished(() => void program.process.kill("SIGKILL"));
    return program;
  }

  async live(workers: readonly Worker[]): Promise<Said[]> {
    const program = this.start({ workers });
    expect(await program.exited, program.report()).toEqual({ code: 0, signal: null });
    return program.lines.map((line) => JSON.parse(line) as Said);
  }

  /** Each of them has to come to its point. */
  async killAll(workers: readonly Worker[]): Promise<void> {
    for (let first = 0; first < workers.length; first += IN_ONE_PROCESS) {
      const program = this.start({ workers: workers.slice(first, first + IN_ONE_PROCESS) });
      expect(await program.exited, program.report()).toEqual({ code: null, signal: "SIGKILL" });
      // One that was over before would have told its result, or how it failed.
      const over = program.lines.map((line) => JSON.parse(line) as Said).filter(({ event }) => event !== "warning");
      expect(over).toEqual([]);
    }
  }

  /** The addresses that the outside has published for an execution. */
  published(execution: string): number {
    const lines = readFileSync(join(this.folder, "ledger.jsonl"), "utf8").split("\n").filter(Boolean);
    return lines
      .map((line) => JSON.parse(line) as { action: string; key: string })
      .filter(({ action, key }) => action === "publish" && key.startsWith(execution)).length;
  }
}

function begunIn(root: string): Begun[] {
  const file = join(root, "begun.jsonl");
  return existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Begun)
    : [];
}

/** The tools whose results the checkpoint has: of steps that are done, and effects that were executed. */
async function recordedIn(root: string): Promise<Set<string>> {
  const checkpoint = await directoryStore({ root, worker: "w1" }).loadCheckpoint();
  if (checkpoint === null) return new Set();
  const { slices } = JSON.parse(checkpoint.snapshot) as { slices: { slice_type: string; items: unknown[] }[] };
  const itemsOf = (name: string) => slices.find(({ slice_type }) => slice_type === name)?.items ?? [];
  const [plan] = itemsOf("plan") as { steps: { id: number; status: string }[] }[];
  const done = plan?.steps.filter(({ status }) => status === "done").map(({ id }) => TOOLS_OF[id - 1]!) ?? [];
  const effects = itemsOf("effects") as { tool: string; status: string }[];
  return new Set([...done, ...effects.filter(({ status }) => status === "executed").map(({ tool }) => tool)]);
}

const TOOLS_OF = ["search", "write_page", "check_page", "publish"];

it("D-2 S1-2 S1-20 S1-50 S1-69 C-7 T-8 T-12 killed after every durable write and inside every tool, the planning agent finishes, and nothing recorded is done again", async () => {
  const world = new World();
  const [whole] = (await world.live([{ root: world.root("whole"), worker: "w1", request: REQUEST }])).filter(
    ({ event }) => event === "result",
  );
  const points = whole?.["points"] as Record<string, number>;
  expect(points).toMatchObject({ begin: 5, end: 5, planning: 10 });
  expect(points["disk"]).toBeGreaterThan(20);
  const kills = Object.entries(points).flatMap(([point, count]) =>
    Array.from({ length: count }, (_, n) => ({ point, n: n + 1 })),
  );

  const wrecks = kills.map((kill) => ({ kill, root: world.root(`${kill.point}-${kill.n}`) }));
  await world.killAll(wrecks.map(({ kill, root }) => ({ root, worker: "w1", request: REQUEST, kill })));

  const before = await Promise.all(
    wrecks.map(async ({ root }) => ({
      begun: begunIn(root).length,
      recorded: await recordedIn(root),
      state: (await listWorkers(root))[0]?.state,
    })),
  );
  expect(new Set(before.map(({ state }) => state))).toEqual(new Set(["empty", "started", "incomplete"]));
  // A process that found nothing but drafts has to be told again what to do; the others know.
  const workers = wrecks.map(({ root }, index) => ({
    root,
    worker: "w1",
    ...(isOver(before[index]?.state) && { request: REQUEST }),
  }));
  const said = (await world.live(workers)).filter(({ event }) => event === "result" || event === "failure");
  for (const [index, { kill, root }] of wrecks.entries()) {
    const what = `killed at ${JSON.stringify(kill)}, ${before[index]?.state}`;
    const result = said[index]!;
    expect(result, what).toMatchObject({ event: "result", text: whole?.["text"], ending: { kind: "finished" } });
    if (result["plan"] !== null) expect(result["plan"], what).toEqual(whole?.["plan"]);
    expect(
      readdirSync(join(root, "w1")).filter((name) => name.endsWith(".tmp")),
      what,
    ).toEqual([]);
    if (isOver(before[index]?.state)) continue;
    const again = begunIn(root)
      .slice(before[index]?.begun)
      .map(({ tool }) => tool);
    for (const tool of before[index]!.recorded) expect(again, `${tool} was recorded; ${what}`).not.toContain(tool);
    const request = await directoryStore({ root, worker: "w1" }).loadRequest();
    expect(world.published(request?.execution ?? "?"), what).toBe(1);
  }
});

function isOver(state: string | undefined): boolean {
  return state === "empty" || state === "completed";
}

it("T-8 S1-21 S1-51 C-20 killed at every write with which a request takes the place of the one before, both are kept", async () => {
  const world = new World();
  const done = world.root("done");
  await world.live([{ root: done, worker: "w1", request: REQUEST }]);
  const old = await directoryStore({ root: done, worker: "w1" }).loadRequest();
  const next = { topic: "cranes" };
  // Three documents to the archive, the request, and what is dropped: the marker, the checkpoint and the note of effects.
  const wrecks = Array.from({ length: 7 }, (_, n) => ({ root: join(world.folder, `kill-${n + 1}`), n: n + 1 }));
  for (const { root } of wrecks) cpSync(done, root, { recursive: true });
  await world.killAll(wrecks.map(({ root, n }) => ({ root, worker: "w1", request: next, kill: { point: "disk", n } })));
  const states = await Promise.all(wrecks.map(async ({ root }) => (await listWorkers(root))[0]?.state));
  expect(states).toEqual([...Array(4).fill("completed"), ...Array(3).fill("started")]);
  const said = (await world.live(wrecks.map(({ root }) => ({ root, worker: "w1", request: next })))).filter(
    ({ event }) => event === "result",
  );
  expect(said.map(({ text }) => text)).toEqual(wrecks.map(() => "The field guide to cranes is published."));
  for (const { root } of wrecks) {
    const archived = readdirSync(join(root, "w1", "archive", old?.execution ?? "?"));
    expect(archived.sort()).toEqual(["checkpoint.json", "completed", "request.json"]);
    expect((await directoryStore({ root, worker: "w1" }).loadRequest())?.request).toEqual(next);
  }
});

it("S1-67 E-10 F-13 a second process is refused with the first one's identity, and takes over when that is killed", async () => {
  const world = new World();
  const root = world.root("shared");
  const first = world.start({ workers: [{ root, worker: "w1", request: REQUEST }], stay: true });
  await first.until(() => first.lines.find((line) => line.includes("working")));
  await expect.poll(async () => (await listWorkers(root))[0]?.state).toBe("started");
  const [refused] = await world.live([{ root, worker: "w1", request: REQUEST }]);
  expect(refused).toMatchObject({ event: "failure", code: "worker_directory_busy", owner: { pid: first.process.pid } });
  expect(String(refused?.["message"])).toContain(`process ${first.process.pid} on `);
  await first.kill();
  expect(await listWorkers(root)).toMatchObject([{ state: "started", owner: null }]);
  const said = await world.live([{ root, worker: "w1" }]);
  expect(said.find(({ event }) => event === "result")).toMatchObject({ ending: { kind: "finished" } });
});
