// The file store with real processes and real disks: killed while it writes, worked on by one and asked by others, full, read-only.

import { spawnSync } from "node:child_process";
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { Pawl } from "../src/client/pawl.ts";
import { workflow } from "../src/core/workflow.ts";
import { fileStore } from "../src/stores/file/file-store.ts";
import { built, type Child, startChild } from "./child.ts";
import { json, pawl } from "./fixtures/cli/command.ts";

const KILLS = fileURLToPath(new URL("../scripts/document-kills.mjs", import.meta.url));
const quiet = { debug() {}, info() {}, warn() {}, error() {} };

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "pawl-file-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function documentIn(folder: string, run: string): Record<string, unknown> {
  return JSON.parse(readFileSync(join(folder, "state", "runs", run, "state.json"), "utf8")) as Record<string, unknown>;
}

it("S0-22 a document of 5 MB whose writer is killed is one of its two versions, and parses", {
  timeout: 120_000,
}, () => {
  const { stdout, stderr, status } = spawnSync(process.execPath, [KILLS, "--kills", "4", "--seed", "1"], {
    encoding: "utf8",
  });
  expect(status, stderr).toBe(0);
  const { faults, before, after } = JSON.parse(stdout) as Record<string, number>;
  expect({ faults, kills: (before ?? 0) + (after ?? 0) }).toEqual({ faults: 0, kills: 4 });
});

/** A worker on the directory `state`, which notes what it does, says where it is and can be killed there. */
function startWorker(folder: string, start = ""): Child {
  const child = startChild(`
    import { appendFileSync } from "node:fs";
    import { Pawl, workflow } from "${built("index.js")}";
    const effect = (what) => appendFileSync(${JSON.stringify(join(folder, "effects"))}, what + "\\n");
    const other = workflow("other", async (ctx, name) => {
      await ctx.step("tell", () => effect("told " + name));
      return name.length;
    });
    const order = workflow("order", async (ctx) => {
      await ctx.step("fetch", () => effect("fetched"));
      const length = await ctx.call(other, "Ada");
      const paid = await ctx.waitFor("paid");
      await ctx.step("ship", async ({ attempt }) => {
        effect("shipped");
        say("shipping");
        if (attempt === 1) await new Promise(() => {});
      });
      return { length, paid };
    });
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    const opened = Pawl.open(${JSON.stringify(`file:${join(folder, "state")}`)}, { workflows: [other, order], logger, poll: "50ms" });
    const pawl = await opened.catch((error) => void say(error.code + " " + error.message));
    if (pawl) {
      ${start}
      say("working " + process.getActiveResourcesInfo().filter((one) => one.startsWith("TCP")).length);
      await heard();
      await pawl.close();
    }`);
  onTestFinished(() => child.kill());
  return child;
}

it("S1-67 S0-2 S0-16 a run in documents is asked by other processes, loses its worker to a kill and ends under the next one", {
  timeout: 60_000,
}, async () => {
  const folder = newFolder();
  const store = ["--store", `file:${join(folder, "state")}`];
  const first = startWorker(folder, `await pawl.start(order, undefined, { id: "o1" });`);
  expect(await first.line()).toBe("working 0");

  const second = startWorker(folder);
  const refusal = await second.line();
  expect(refusal).toMatch(/^storage_unavailable /);
  expect(refusal).toContain(`process ${first.process.pid} on `);
  await second.rest();
  const start = await pawl(folder, "start", "order", "null", ...store);
  expect([start.code === 0, start.stderr]).toEqual([false, expect.stringContaining(`process ${first.process.pid} on`)]);
  expect(await json(folder, "workers", ...store)).toMatchObject({
    workers: [{ pid: first.process.pid, health: "live" }],
  });

  const signal = await pawl(folder, "signal", "o1", "paid", '{"cents":5}', "--id", "m1", ...store);
  expect(signal.code, signal.stderr).toBe(0);
  expect(await first.line()).toBe("shipping");
  // The mark of what is under way is on the disk while it is (S0-18).
  expect(documentIn(folder, "o1")).toMatchObject({
    status: "in_progress",
    phases: { run: { steps: { fetch: { status: "done" }, ship: { status: "in_progress" } } } },
  });
  await first.kill();
  expect((await pawl(folder, "why", "o1", ...store)).stdout).toContain("its worker is gone");

  const third = startWorker(folder);
  await third.line();
  const client = await Pawl.open(`file:${join(folder, "state")}`, { logger: quiet, poll: "50ms" });
  expect(await client.get("o1").result()).toEqual({ length: 3, paid: { cents: 5 } });
  await client.close();
  third.tell("stop");
  await third.rest();
  expect(readFileSync(join(folder, "effects"), "utf8")).toBe("fetched\ntold Ada\nshipped\nshipped\n");
  expect(documentIn(folder, "o1")).toMatchObject({ status: "done" });
  expect((await pawl(folder, "doctor", ...store)).stdout).toContain("Healthy.");
  expect(readdirSync(join(folder, "state", "mail"))).toEqual([]);
});

it("C-23 E-22 status, why and doctor explain a document that was edited, and what to do", async () => {
  const folder = newFolder();
  const url = `file:${join(folder, "state")}`;
  const waits = workflow("waits", (ctx) => ctx.waitFor("go"));
  const first = await Pawl.open(url, { workflows: [waits], logger: quiet, durability: "process" });
  await first.start(waits, undefined, { id: "r1" });
  await first.idle();
  await first.close();
  const file = join(folder, "state", "runs", "r1", "state.json");
  writeFileSync(file, readFileSync(file, "utf8").replace('"status": "in_progress"', '"status": "done"'));
  const store = fileStore(join(folder, "state"));
  const second = await Pawl.open(store, { workflows: [waits], logger: quiet });
  onTestFinished(() => second.close());
  const command = "pawl state accept r1 --reason";
  expect(await second.get("r1").status()).toMatchObject({
    status: "waiting",
    parked: { reason: "invalid_state_document", message: expect.stringContaining(command) },
  });
  for (const words of [["why", "r1"], ["doctor"]])
    expect((await pawl(folder, ...words, "--store", url)).stdout).toContain(command);
  await expect(second.signal("r1", "go")).rejects.toMatchObject({ code: "invalid_state_document" });
  await store.accept("r1", { by: "ada", reason: "looked at it" });
  await second.signal("r1", "go", 7);
  expect(await second.get("r1").result()).toBe(7);
});

it("S0-18 S0-19 what is begun is in the document before it happens, and what is done has its time with it", async () => {
  const folder = newFolder();
  const path = join(folder, "state");
  const seen: unknown[] = [];
  const fault = (point: string, file: string) => {
    if (point === "sync-folder" && file.endsWith("r1")) seen.push(documentIn(folder, "r1")["phases"]);
  };
  const pawl = await Pawl.open(fileStore(path, { fault }), { workflows: [twoSteps], logger: quiet });
  onTestFinished(() => pawl.close());
  const inside: unknown[] = [];
  look = () => inside.push(documentIn(folder, "r1"));
  await (await pawl.start(twoSteps, undefined, { id: "r1" })).result();
  expect(inside).toMatchObject([
    { phases: { run: { steps: { first: { status: "in_progress" } } } } },
    { phases: { run: { steps: { first: { status: "done" }, second: { status: "in_progress" } } } } },
  ]);
  const steps = seen.flatMap((phases) => Object.values((phases as { run?: { steps?: object } }).run?.steps ?? {}));
  const done = steps.filter((step) => (step as { status: string }).status === "done");
  expect(done.length).toBeGreaterThan(1);
  for (const step of done) expect(step).toHaveProperty("completed_at");
});

let look = (): void => {};
const twoSteps = workflow("two-steps", async (ctx) => {
  await ctx.step("first", () => look());
  await ctx.step("second", () => look());
});

it("E-27 D-14 a run goes on when a full disk has room again: nothing is lost, nothing happens twice", async () => {
  const folder = newFolder();
  const effects = join(folder, "effects");
  let isFull = false;
  const fault = (point: string, path: string) => {
    if (isFull && point === "write") throw Object.assign(new Error("no room"), { code: "ENOSPC", path });
  };
  const errors: string[] = [];
  const logger = {
    ...quiet,
    error(message: string) {
      errors.push(message);
      isFull = false;
    },
  };
  const fills = workflow("fills", async (ctx) => {
    await ctx.step("a", () => {
      appendFileSync(effects, "a\n");
      isFull = true;
    });
    await ctx.step("b", () => appendFileSync(effects, "b\n"));
    return "done";
  });
  const pawl = await Pawl.open(fileStore(join(folder, "state"), { fault }), { workflows: [fills], logger });
  onTestFinished(() => pawl.close());
  expect(await pawl.run(fills)).toBe("done");
  expect(errors.join()).toContain("the disk is full");
  expect(readFileSync(effects, "utf8")).toBe("a\nb\n");
});

const MOUNTING = ["unshare", "-Urm", "sh", "-c", 'mount -t tmpfs -o size=200k tmpfs /mnt && exec "$@"', "sh"] as const;
const [unshare, ...mounting] = MOUNTING;
const canMount = spawnSync(unshare, [...mounting, "true"]).status === 0;

// Needs a kernel that lets a process have a mount of its own.
it.skipIf(!canMount)(
  "E-27 D-14 a real disk that is full, then has room, then is read-only, damages nothing",
  async () => {
    const lines = await startChild(
      `
    import { execFileSync } from "node:child_process";
    import { fileStore } from "${built("index.js")}";
    import { creation, entry, newWorker } from "${built("testing/store-cases/case.js")}";
    const failure = (promise) => promise.then(() => "applied", (error) => error.code + " " + error.fields.errno);
    const store = fileStore("/mnt/state");
    await store.open();
    await store.register(newWorker("w1"));
    await store.commit({ worker: "w1", runs: [creation("r", { claimed: true })] });
    let head = 1;
    const write = async () => {
      const entries = [entry(head, "step.completed", { data: JSON.stringify("x".repeat(5_000)) })];
      await store.commit({ worker: "w1", runs: [{ run: "r", head, entries }] });
      head += 1;
    };
    let answer = "applied";
    while (answer === "applied") answer = await failure(write());
    say(answer);
    say(String((await store.journal("r")).length - head) + " " + (await store.inspect()).faults.length);
    execFileSync("mount", ["-o", "remount,size=10m", "/mnt"]);
    for (let i = 0; i < 5; i++) say(await failure(write()));
    await store.close();
    execFileSync("mount", ["-o", "remount,ro", "/mnt"]);
    const reader = fileStore("/mnt/state");
    await reader.open();
    say(String((await reader.journal("r")).length - head) + " " + (await reader.inspect()).faults.length);
    say(await failure(reader.register(newWorker("w2"))));`,
      MOUNTING,
    ).rest();
    expect(lines).toEqual([
      "storage_unavailable ENOSPC",
      "0 0",
      ...Array<string>(5).fill("applied"),
      "0 0",
      expect.stringMatching(/^storage_unavailable/),
    ]);
  },
);
