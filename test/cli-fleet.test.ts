// `pawl worker --processes` with real processes: they are killed, stopped and replaced while runs go on.
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Pawl, type Run } from "pawl";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { begin, hosted, json, pawl, project, type Running } from "./fixtures/cli/command.ts";
import { postgresUrl } from "./fixtures/cli/postgres-url.ts";

// Each fleet is three processes and more.
vi.setConfig({ testTimeout: 120_000 });

const JOB = readFileSync(new URL("./fixtures/cli/job.ts", import.meta.url), "utf8");

/** Long enough for a machine that is busy with other things. */
const PATIENTLY = { timeout: 20_000, interval: 20 };

interface Site {
  readonly folder: string;
  readonly store: string;
  readonly client: Pawl;
}

async function site(kind: "sqlite" | "postgres"): Promise<Site> {
  const folder = project({ "job.ts": JOB });
  const store = kind === "sqlite" ? join(folder, ".pawl", "pawl.db") : postgresUrl();
  const client = await Pawl.open(store);
  onTestFinished(() => client.close());
  return { folder, store, client };
}

function fleet({ folder, store }: Site, ...args: string[]): Running {
  return begin(folder, ["worker", "job.ts", "--store", store, ...args]);
}

interface Effect {
  readonly what: string;
  readonly pid: number;
}

function effects({ folder }: Site): Effect[] {
  const path = join(folder, "effects.log");
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, "utf8").trim().split("\n");
  return lines.map((line) => ({ what: line.replace(/ \d+$/, ""), pid: Number(/\d+$/.exec(line)?.[0]) }));
}

/** The first effect of this name, once it has happened. */
async function effect(at: Site, what: string): Promise<Effect> {
  const find = () => effects(at).find((one) => one.what === what);
  await expect.poll(find, PATIENTLY).toBeDefined();
  return find() as Effect;
}

function start({ client }: Site, id: string, steps: number, ms: number, gate?: string): Promise<Run> {
  return client.start("job", { id, steps, ms, ...(gate !== undefined && { gate }) }, { id, version: "1.0.0" });
}

/** The process ids of a fleet, in the order of their places, once all of them work. */
async function pids(running: Running, places: number): Promise<number[]> {
  await running.line(/^Working on job 1\.0\.0/);
  const lines = await Promise.all(
    Array.from({ length: places }, (_, i) => running.line(new RegExp(`^\\[${i + 1}\\] works`))),
  );
  return lines.map((line) => Number(/pid (\d+)/.exec(line)?.[1]));
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const attempts = async (run: Run) => (await run.journal()).filter(({ type }) => type === "step.started").length;

describe("pawl worker --processes", () => {
  const kind = "sqlite";

  it("replaces a process that was killed, and its run goes on without waiting for a lease", async () => {
    const at = await site(kind);
    const running = fleet(at, "--processes", "2");
    const before = await pids(running, 2);
    const run = await start(at, "r", 2, 0, "go");
    const { pid } = await effect(at, "r 0 begun");
    const place = before.indexOf(pid) + 1;
    const killedAt = Date.now();
    process.kill(pid, "SIGKILL");
    await running.line(new RegExp(`^\\[${place}\\] was ended by SIGKILL after .*; another one starts in `));
    await running.line(new RegExp(`^\\[${place}\\] works \\(pid (?!${pid}\\))`));
    writeFileSync(join(at.folder, "go"), "");
    expect(await run.result()).toBe("r");
    // A lease is 15 s; the new process finds at once that the old one is gone.
    expect(Date.now() - killedAt).toBeLessThan(14_000);
    running.kill("SIGTERM");
    expect((await running.ended).code).toBe(0);
  });

  it("lets steps finish when it is stopped, and leaves neither processes nor workers behind", async () => {
    const at = await site(kind);
    const running = fleet(at, "--processes", "2", "--json");
    await running.line(/"event":"started"/);
    const run = await start(at, "r", 2, 0, "go");
    const { pid } = await effect(at, "r 0 begun");
    // As from a service manager: everybody gets the signal.
    process.kill(pid, "SIGTERM");
    running.kill("SIGTERM");
    await running.line(/"event":"stopping"/);
    writeFileSync(join(at.folder, "go"), "");
    const { code, stdout } = await running.ended;
    expect(code).toBe(0);
    const events = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(events.map(({ event }) => event)).toEqual(["working", "working", "started", "stopping", "stopped"]);
    expect(events.filter(({ event }) => event === "working").map((one) => isThere(one.pid))).toEqual([false, false]);
    expect(effects(at).map(({ what }) => what)).toEqual(["r 0 begun", "r 0 done"]);
    expect(await at.client.workers()).toEqual([]);
    expect((await run.journal()).map(({ type }) => type)).toEqual(["run.started", "step.started", "step.completed"]);
  });

  it("stops by itself, after its steps, when the command was killed", async () => {
    const at = await site(kind);
    const running = fleet(at, "--processes", "2");
    const members = await pids(running, 2);
    await start(at, "r", 2, 0, "go");
    await effect(at, "r 0 begun");
    running.kill("SIGKILL");
    await running.ended;
    writeFileSync(join(at.folder, "go"), "");
    await effect(at, "r 0 done");
    await expect.poll(() => members.some(isThere), PATIENTLY).toBe(false);
    expect(await at.client.workers()).toEqual([]);
    expect(effects(at).map(({ what }) => what)).toEqual(["r 0 begun", "r 0 done"]);
  });
});

describe.each(["sqlite", "postgres"] as const)("pawl worker --processes on %s", (kind) => {
  it("restarts one process after the other under load: every run succeeds, no step is begun twice", async () => {
    const at = await site(kind);
    const running = fleet(at, "--processes", "2");
    const before = await pids(running, 2);
    const ids = Array.from({ length: 20 }, (_, i) => `r${i}`);
    const runs = await Promise.all(ids.map((id) => start(at, id, 6, 40)));
    const results = Promise.all(runs.map((run) => run.result()));
    await effect(at, "r10 1 done");
    running.kill("SIGHUP");
    await running.line(/^All processes are restarted\./);
    const late = await start(at, "late", 1, 0);
    expect(await late.result()).toBe("late");
    expect(await results).toEqual(ids);
    const done = effects(at).map(({ what }) => what);
    expect(new Set(done).size).toBe(done.length);
    expect(await Promise.all(runs.map(attempts))).toEqual(ids.map(() => 6));
    const after = new Set((await at.client.workers()).map((worker) => worker.process.pid));
    expect(before.filter((pid) => after.has(pid) || isThere(pid))).toEqual([]);
    expect(after.size).toBe(2);
    running.kill("SIGINT");
    expect((await running.ended).code).toBe(0);
  });

  it("pawl workers names each one, what it can run and how it is", async () => {
    const at = await site(kind);
    await start(at, "r", 1, 0, "go");
    const store = ["--store", at.store];
    const none = await pawl(at.folder, "workers", ...store);
    expect(none.stderr).toMatch(/^No worker\. Start one with: pawl worker <file> --store /);
    expect(none.stdout).toContain("1 run of job 1.0.0 stranded: no live worker can take it (for example r).");
    const running = fleet(at, "--processes", "2");
    const members = await pids(running, 2);
    const { pid } = await effect(at, "r 0 begun");
    const { workers, stranded } = await json<{ workers: Record<string, unknown>[]; stranded: [] }>(
      at.folder,
      "workers",
      ...store,
    );
    expect(stranded).toEqual([]);
    expect(workers.map((worker) => worker["pid"]).sort()).toEqual([...members].sort());
    for (const worker of workers) {
      expect(worker).toMatchObject({ health: "live", leaseMs: 15_000, workflows: [{ name: "job", version: "1.0.0" }] });
      expect(worker["name"]).toMatch(/\/[12]$/);
      expect(worker["runs"]).toBe(worker["pid"] === pid ? 1 : 0);
    }
    // Nobody is left to replace the dead, or to take over from them.
    running.kill("SIGKILL");
    for (const member of members) process.kill(member, "SIGKILL");
    await expect
      .poll(async () => (await at.client.workers()).map(({ health }) => health), PATIENTLY)
      .toEqual(["dead", "dead"]);
    const { stdout } = await pawl(at.folder, "workers", ...store);
    expect(stdout).toMatch(/^WORKER +PID +SINCE +HEALTH +LEASE +RUNS +WORKFLOWS$/m);
    expect(stdout).toMatch(
      new RegExp(`/[12] +${pid} +\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d +dead .* 1 +job 1\\.0\\.0$`, "m"),
    );
  });
});

describe("a fleet", () => {
  it("waits longer and longer for a process that dies at once again and again, and says why", async () => {
    const at = await site("sqlite");
    const running = fleet(at, "--processes", "1", "--json");
    const { pid } = JSON.parse(await running.line(/"event":"working"/));
    writeFileSync(join(at.folder, "broken"), "");
    process.kill(pid, "SIGKILL");
    const waits: number[] = [];
    for (const nth of [1, 2, 3, 4]) {
      const line = await running.nth(/"event":"ended"/, nth);
      const { why, againInMs } = JSON.parse(line);
      waits.push(againInMs);
      expect(why).toMatch(
        nth === 1
          ? /was ended by SIGKILL/
          : /could not begin: job\.ts failed while it was loaded: no bank is configured/,
      );
    }
    for (const [i, ms] of waits.entries()) {
      expect(ms).toBeGreaterThanOrEqual(50 * 2 ** i);
      expect(ms).toBeLessThanOrEqual(100 * 2 ** i);
    }
    rmSync(join(at.folder, "broken"));
    await running.nth(/"event":"working"/, 2);
    running.kill("SIGTERM");
    expect((await running.ended).code).toBe(0);
  });

  it("goes on with the old processes if a new one cannot begin", async () => {
    const at = await site("sqlite");
    const running = fleet(at, "--processes", "2");
    const members = await pids(running, 2);
    writeFileSync(join(at.folder, "broken"), "");
    running.kill("SIGHUP");
    expect(await running.line(/^\[1\] The new process/)).toMatch(
      /could not begin: job\.ts failed .*no bank is configured.*The old ones go on/,
    );
    const run = await start(at, "r", 1, 0);
    expect(await run.result()).toBe("r");
    expect(members).toContain((await effect(at, "r 0 done")).pid);
    expect(members.map(isThere)).toEqual([true, true]);
  });

  it("replaces a new process that dies while the old one still finishes its steps", async () => {
    const at = await site("sqlite");
    const running = fleet(at, "--processes", "1");
    await pids(running, 1);
    const run = await start(at, "r", 1, 0, "go");
    await effect(at, "r 0 begun");
    running.kill("SIGHUP");
    const next = await running.nth(/^\[1\] works/, 2);
    process.kill(Number(/pid (\d+)/.exec(next)?.[1]), "SIGKILL");
    await running.line(/^\[1\] was ended by SIGKILL/);
    await running.nth(/^\[1\] works/, 3);
    writeFileSync(join(at.folder, "go"), "");
    expect(await run.result()).toBe("r");
    await running.line(/^All processes are restarted\./);
    running.kill("SIGTERM");
    expect((await running.ended).code).toBe(0);
    expect(effects(at).map(({ what }) => what)).toEqual(["r 0 begun", "r 0 done"]);
  });

  it("stops at once on a second signal, whatever a step does", async () => {
    const at = await site("sqlite");
    const running = fleet(at, "--processes", "2");
    const members = await pids(running, 2);
    await start(at, "r", 1, 0, "never");
    await effect(at, "r 0 begun");
    running.kill("SIGINT");
    await running.line(/^Stopping/);
    running.kill("SIGINT");
    expect((await running.ended).code).toBe(130);
    await expect.poll(() => members.some(isThere), PATIENTLY).toBe(false);
  });

  it("puts the place of a process before each line that it prints", async () => {
    const talk = `
      import { workflow } from "pawl";
      export const talk = workflow("talk", async (ctx) => {
        await ctx.step("say", () => console.log("hello from a step"));
        ctx.log.info("hello from the log");
      });`;
    const folder = project({ "talk.ts": talk });
    const running = begin(folder, ["worker", "talk.ts", "--processes", "1"]);
    await running.line(/^Working on/);
    expect((await pawl(folder, "start", "talk")).code).toBe(0);
    await running.line(/^\[1\] hello from a step$/);
    await running.line(/^\[1\] .*info +hello from the log/);
    running.kill("SIGTERM");
    expect((await running.ended).stdout).toBe("[1] hello from a step\n");
  });

  it.each([
    [["nope.ts"], 2, /error: .*nope\.ts/],
    [["job.ts", "--processes", "0"], 2, /--processes "0"/],
    [["job.ts", "--drain", "soon"], 2, /--drain/],
    [["job.ts", "--store", "postgres://127.0.0.1:1/none"], 5, /postgres:\/\/127\.0\.0\.1:1\/none cannot be used now/],
  ])("does not start with %j, and ends with %i", async (args, code, message) => {
    const result = await hosted(project({ "job.ts": JOB }), ["worker", "--processes", "2", ...args]);
    expect(result).toMatchObject({ code, stderr: expect.stringMatching(message) });
  });
});
