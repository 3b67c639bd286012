// Disks that are full, read-only or broken, and files that were damaged: runs wait and go on by themselves, or are parked with the place
// of the damage, or the store is refused with a clear error. Never a wrong result.

import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { checkout } from "../../examples/01-checkout/workflow.ts";
import { report } from "../../examples/03-report/workflow.ts";
import { Pawl, type PawlOptions, sqliteStore } from "../../src/index.ts";
import type { FaultPoint } from "../../src/stores/sqlite/connection.ts";
import { loadDriver } from "../../src/stores/sqlite/driver.ts";
import { withoutColdStart } from "../cold-start.ts";
import { Child, live } from "./child.ts";
import { TEST_WORKFLOWS, World } from "./world.ts";

// Other work may slow the machine down.
vi.setConfig({ testTimeout: 600_000 });

const [command, ...flags] = ["unshare", "-Urm"] as const;
const canMount = spawnSync(command, [...flags, "true"]).status === 0;
const order = { id: "order-17", cents: 4200, email: "ada@example.com" };

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const opened: Pawl[] = [];

afterEach(async () => {
  for (const pawl of opened.splice(0)) await pawl.close();
});

async function open(world: World, options: PawlOptions = {}, fault?: (point: FaultPoint) => void): Promise<Pawl> {
  process.env["LEDGER"] = world.env["LEDGER"];
  process.env["FAKES_LATENCY_MS"] = "0";
  const store = sqliteStore(world.store(), fault === undefined ? {} : { fault });
  const pawl = await Pawl.open(store, { logger: quiet, handleSignals: false, ...options });
  opened.push(pawl);
  return pawl;
}

function sqliteError(message: string, errcode: number): Error {
  return Object.assign(new Error(message), { code: "ERR_SQLITE_ERROR", errcode });
}

/** Runs the child with a disk of its own at `folder`, which it alone sees. */
function withDisk(folder: string, options: string): string[] {
  mkdirSync(folder, { recursive: true });
  const script = `mount -t tmpfs -o ${options} none "$0" && exec "$@"`;
  return [command, ...flags, "sh", "-c", script, folder];
}

// A disk of one's own needs user namespaces, which some machines do not allow.
describe.skipIf(!canMount)("a small disk", () => {
  it("D-14 E-27 I1 I20 when it is full, runs wait with the reason in the log, and go on by themselves when there is room", async () => {
    const world = new World();
    const disk = `${world.folder}/disk`;
    const engines = [{ store: `${disk}/pawl.db` }];
    const child = new Child(
      { engines, files: [TEST_WORKFLOWS], stay: true },
      { env: world.env, wrap: withDisk(disk, "size=2m") },
    );
    child.send("start", { workflow: "gated", id: "g", input: { gate: "one" } });
    await child.hears("started");
    child.send("fill", { path: `${disk}/filler` });
    await child.hears("done", ({ command }) => command === "fill");
    child.send("open", { gate: "one" });
    const { message } = await child.logged(/cannot be written to/);
    expect(message).toMatch(/disk is full/);
    child.send("start", { workflow: "harmless", id: "late", input: 1 });
    expect(await child.hears("failed")).toMatchObject({
      code: "storage_unavailable",
      message: expect.stringMatching(/Free some space/),
    });

    child.send("free", { path: `${disk}/filler` });
    expect(await child.result("g")).toEqual({ by: child.pid, attempt: 1 });
    expect(world.seenOf("g").map(({ action }) => action)).toEqual(["first", "second"]);
    child.send("start", { workflow: "harmless", id: "late", input: 1 });
    expect(await child.result("late")).toBe(3);
  });

  it("D-14 E-27 when it is read-only, opening says so and says what to do", async () => {
    const world = new World();
    const pawl = await open(world, { workflows: [checkout] });
    await pawl.run(checkout, order);
    await pawl.close();
    const disk = `${world.folder}/disk`;
    const script = 'mount -t tmpfs none "$0" && cp "$1" "$0/pawl.db" && mount -o remount,ro "$0" && shift && exec "$@"';
    mkdirSync(disk);
    const child = await live(
      { engines: [{ store: `${disk}/pawl.db` }], files: [TEST_WORKFLOWS] },
      { env: world.env, wrap: [command, ...flags, "sh", "-c", script, disk, world.store()] },
    );
    expect((await child.exited).code, child.report()).toBe(1);
    expect(await child.hears("failed")).toMatchObject({
      code: "storage_unavailable",
      message: expect.stringMatching(/writ/),
    });
  });
});

for (const [what, errcode, text] of [
  ["full", 13, "database or disk is full"],
  ["read-only", 8, "attempt to write a readonly database"],
] as const) {
  it(`D-14 E-27 I1 a disk that is ${what} for a while: nothing is lost, nothing is parked, nothing runs twice`, async () => {
    const world = new World();
    let refusals = 0;
    let isBroken = false;
    const logged: string[] = [];
    const logger = { ...quiet, error: (message: string) => void logged.push(message) };
    const pawl = await open(world, { workflows: [checkout], logger }, (point) => {
      if (point !== "before-commit" || !isBroken) return;
      // Long enough to be tried again a few times, and over without anybody's help.
      if (++refusals > 8) isBroken = false;
      else throw sqliteError(text, errcode);
    });
    const run = await pawl.start(checkout, order);
    isBroken = true;
    expect(await run.result()).toEqual({ order: "order-17", payment: "pay-order-17" });
    expect(refusals).toBeGreaterThan(8);
    expect(logged.join("\n")).toMatch(/cannot be written to/);
    expect(world.ledger().length).toBe(2);
  });
}

for (const [point, what] of [
  ["commit", "was not applied"],
  ["after-commit", "was applied"],
] as const) {
  it(`I2 B30 P17 E-27 an I/O error at a COMMIT that ${what}: the file is read again, and nothing runs twice`, async () => {
    for (let n = 1, hasFailed = true; hasFailed; n++) {
      const world = new World();
      let commits = 0;
      hasFailed = false;
      const pawl = await open(world, { workflows: [checkout] }, (reached) => {
        // The first one registers the worker: there, it is the caller of open who is told.
        if (reached !== point || ++commits !== n + 1) return;
        hasFailed = true;
        throw sqliteError("disk I/O error", 10);
      });
      const run = await pawl.start(checkout, order);
      expect(await run.result(), `${point} ${n}`).toEqual({ order: "order-17", payment: "pay-order-17" });
      expect(
        world.ledger().map(({ action, did }) => ({ action, did })),
        `${point} ${n}`,
      ).toEqual([
        { action: "charge", did: true },
        { action: "mail", did: true },
      ]);
      expect(await pawl.store.orphans()).toEqual([]);
      await pawl.close();
      if (!hasFailed) expect(n).toBeGreaterThan(3);
    }
  });
}

describe("damage", () => {
  /** A report that waits for its reviewer, and nobody at work on it. */
  async function waitingReport(): Promise<World> {
    const world = new World();
    const pawl = await open(world, { workflows: [report] });
    await pawl.start(report, { topic: "tides", to: "board@example.com" }, { id: "r" });
    await pawl.idle();
    expect((await pawl.get("r").status()).state).toBe("waiting");
    await pawl.close();
    return world;
  }

  function edit(world: World, sql: string): void {
    withoutColdStart("it damages a journal");
    const db = loadDriver().open(world.store());
    db.exec(sql);
    db.close();
  }

  const damages: [what: string, sql: string, position: RegExp][] = [
    ["an edited value", "update journal set data = replace(data, 'journals', 'journalz') where seq = 5", /entry 5 /],
    ["an edited checksum", "update journal set hash = 'x' where seq = 3", /entry 3 /],
    ["a moved time", "update journal set at = at + 1 where seq = 2", /entry 2 /],
    ["another key", "update journal set key = 'search radio' where seq = 4", /entry 4 /],
    ["another type", "update journal set type = 'step.failed' where seq = 6", /entry 6 /],
    ["a missing entry", "delete from journal where seq = 4", /entry 4\b/],
    ["a missing first entry", "delete from journal where seq = 0", /entry 0\b/],
    ["missing last entries", "delete from journal where seq >= 10", /entry 10\b/],
    ["a value that is no JSON", "update journal set data = '{' where seq = 7", /entry 7 /],
    [
      "two entries in each other's place",
      "update journal set seq = 99 where seq = 5; update journal set seq = 5 where seq = 6; update journal set seq = 6 where seq = 99",
      /entry 5\b/,
    ],
  ];

  for (const [what, sql, position] of damages) {
    it(`Q15 E-22 S3-24 E-21 ${what}: nothing is executed, and the park names the position`, async () => {
      const world = await waitingReport();
      edit(world, sql);
      const effects = world.ledger().length;
      const pawl = await open(world, { workflows: [report] });
      await pawl.signal("r", "review", { by: "ada", ok: true });
      await pawl.idle();
      const status = await pawl.get("r").status();
      expect(status).toMatchObject({ state: "parked", parked: { reason: "corrupted_journal" } });
      expect(status.parked?.message).toMatch(position);
      const isMissing = what.includes("missing");
      expect(status.parked?.detail).toMatchObject({
        code: isMissing ? "journal_entry_missing" : "corrupted_journal",
        seq: Number(/\d+/.exec(String(position))?.[0]),
      });
      expect(world.ledger().length).toBe(effects);
      // It can still be put away.
      expect(await pawl.cancel("r")).toEqual({ outcome: "cancelled" });
    });
  }

  it("Q15 B69 one damaged run does not keep the others from going on", async () => {
    const world = await waitingReport();
    const pawl = await open(world, { workflows: [report] });
    const other = await pawl.start(report, { topic: "winds", to: "board@example.com" }, { id: "s" });
    await pawl.idle();
    await pawl.close();
    edit(world, "update journal set hash = 'x' where seq = 3 and run = (select n from runs where id = 'r')");
    const again = await open(world, { workflows: [report] });
    await again.signal("r", "review", { by: "ada", ok: true });
    await again.signal("s", "review", { by: "ada", ok: true });
    expect(await again.get(other.id).result()).toMatchObject({ delivered: true });
  });

  it("D-14 E-27 a truncated database is refused by name, before anything is written to it", async () => {
    for (const bytes of [100, 4096, 20_000]) {
      const world = await waitingReport();
      truncateSync(world.store(), bytes);
      const before = readFileSync(world.store());
      await expect(open(world, { workflows: [report] }), `${bytes} bytes`).rejects.toMatchObject({
        code: expect.stringMatching(/^(corrupted_journal|not_a_store|storage_unavailable)$/),
        message: expect.stringContaining(world.store()),
      });
      expect(readFileSync(world.store()).equals(before), `${bytes} bytes`).toBe(true);
    }
  });

  it("D-14 I23 a file of something else, and one of a newer Pawl, are refused and left alone", async () => {
    const world = await waitingReport();
    edit(world, "update meta set value = '999' where key = 'schema_version'");
    const before = readFileSync(world.store());
    await expect(open(world)).rejects.toMatchObject({
      code: "newer_schema",
      message: expect.stringMatching(/Upgrade Pawl/),
    });
    expect(readFileSync(world.store()).equals(before)).toBe(true);
    const other = new World();
    mkdirSync(dirname(other.store()), { recursive: true });
    writeFileSync(other.store(), "Dear diary, today I was not a database at all. ".repeat(100));
    await expect(open(other)).rejects.toMatchObject({ code: "not_a_store" });
  });
});
