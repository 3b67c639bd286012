// SIGKILL between an outside call and its record, through the engine: with its guard an effect has happened once, without it twice.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { loadDriver } from "../../src/stores/sqlite/driver.ts";
import { Program } from "../child.ts";
import { coldStartFile } from "../cold-start.ts";
import { tempFolder } from "./lost-record.ts";
import { Repository } from "./repository.ts";

// Other work may slow the machine down.
vi.setConfig({ testTimeout: 60_000 });

const PROGRAM = fileURLToPath(new URL("./guarded-process.mjs", import.meta.url));
const WORKFLOWS = fileURLToPath(new URL("./guarded.mjs", import.meta.url));

/** The outside world of one test, and how much of an effect there is in it. */
class World {
  readonly folder: string = tempFolder();
  readonly repository: Repository;

  constructor() {
    mkdirSync(join(this.folder, "repository"));
    this.repository = new Repository(join(this.folder, "repository"));
    this.repository.write("page.html", "v1\n");
    const shop = loadDriver().open(join(this.folder, "shop.db"));
    shop.exec('create table bookings (room integer, "key" text unique)');
    shop.close();
  }

  /** Lives through the effect, or dies where it is told to. */
  async live(name: string, isGuarded: boolean, dies: string | null): Promise<Program> {
    const input = { name, isGuarded, folder: this.folder };
    const task = { store: join(this.folder, "pawl.db"), run: "run-1", input, dies };
    const program = new Program([process.execPath, "--no-warnings", PROGRAM, JSON.stringify(task)]);
    onTestFinished(() => void program.process.kill("SIGKILL"));
    const { code, signal } = await program.exited;
    expect({ code, signal }, program.report()).toEqual(
      dies === null ? { code: 0, signal: null } : { code: null, signal: "SIGKILL" },
    );
    return program;
  }

  /** Dies, and goes on in another process; returns what the run came to. */
  async kill(name: string, isGuarded: boolean, dies = "after the effect"): Promise<unknown> {
    await this.live(name, isGuarded, dies);
    const { lines } = await this.live(name, isGuarded, null);
    await coldStartFile(join(this.folder, "pawl.db"), [WORKFLOWS]);
    return JSON.parse(lines[0] ?? "");
  }

  count(name: string): number {
    if (name.startsWith("commit")) return this.repository.count;
    if (name === "row") return this.#rows();
    const [what] = name.split(" ");
    const file = join(this.folder, name === "file" ? "file.txt" : `${what}.jsonl`);
    return existsSync(file) ? readFileSync(file, "utf8").split("\n").length - 1 : 0;
  }

  #rows(): number {
    const shop = loadDriver().open(join(this.folder, "shop.db"));
    const { count } = shop.prepare("select count(*) as count from bookings").get() ?? {};
    shop.close();
    return Number(count);
  }
}

describe("killed between the outside call and its record", () => {
  it.each([
    ["S0-26", "file"],
    ["S0-28", "once"],
    ["S0-27", "comment"],
    ["S0-28 S0-30", "commit"],
    ["S0-28 S0-30", "commit with a result file"],
    ["S0-32", "job"],
    ["S0-32", "job with a lock"],
    ["S0-33", "mail"],
    ["C-3", "row"],
  ])("%s with its guard there is one: %s", async (_, name) => {
    const world = new World();
    await world.kill(name, true);
    expect(world.count(name)).toBe(1);
  });

  it.each(["file", "once", "comment", "commit", "job", "mail", "row"])(
    "S0-34 without a guard there are two: %s",
    async (name) => {
      const world = new World();
      await world.kill(name, false);
      expect(world.count(name)).toBe(2);
    },
  );

  it("S0-30 killed between the commit and the result file, there is one commit, and the file is repaired", async () => {
    const world = new World();
    world.repository.hook("post-commit", 'test -z "$VICTIM" || kill -9 "$VICTIM"');
    const { commit } = (await world.kill("commit with a result file", true, "after the commit")) as { commit: string };
    expect([world.repository.count, commit]).toEqual([1, world.repository.head]);
    const result = JSON.parse(readFileSync(join(world.folder, "result.json"), "utf8"));
    expect(result).toEqual({ passed: true, commit, key: "run-1/effect" });
  });
});
