// SIGKILL between an outside call and its record, through the engine: with its guard an effect has happened once, without it twice.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished, vi } from "vitest";
import { type Database, loadDriver } from "../../src/stores/sqlite/driver.ts";
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
  readonly repositories: Readonly<Record<string, Repository>>;

  constructor() {
    this.repositories = { commit: this.#repository("commit"), "commit-and-file": this.#repository("commit-and-file") };
    const shop = this.#shop();
    shop.exec('create table bookings (room integer, "key" text unique)');
    shop.close();
  }

  /** Dies where it is told to, and goes on in another process; returns what the runs came to, in any order. */
  async kill(names: readonly string[], isGuarded: boolean, dies = "after the effects"): Promise<unknown[]> {
    const killed = await this.#live(names, isGuarded, dies);
    expect(killed.exit, killed.report()).toEqual({ code: null, signal: "SIGKILL" });
    const second = await this.#live(names, isGuarded, null);
    expect(second.exit, second.report()).toEqual({ code: 0, signal: null });
    await coldStartFile(join(this.folder, "pawl.db"), [WORKFLOWS]);
    return second.lines.map((line) => JSON.parse(line) as unknown);
  }

  counts(names: readonly string[]): Record<string, number> {
    return Object.fromEntries(names.map((name) => [name, this.#count(name)]));
  }

  async #live(names: readonly string[], isGuarded: boolean, dies: string | null): Promise<Program> {
    const inputs = names.map((name) => ({ name, isGuarded, folder: this.folder }));
    const task = { store: join(this.folder, "pawl.db"), inputs, dies };
    const program = new Program([process.execPath, "--no-warnings", PROGRAM, JSON.stringify(task)]);
    onTestFinished(() => void program.process.kill("SIGKILL"));
    await program.exited;
    return program;
  }

  #count(name: string): number {
    const repository = this.repositories[name];
    if (repository !== undefined) return repository.count;
    if (name === "row") return this.#rows();
    const file = join(this.folder, name === "file" ? "file.txt" : `${name}.jsonl`);
    return existsSync(file) ? readFileSync(file, "utf8").split("\n").length - 1 : 0;
  }

  #rows(): number {
    const shop = this.#shop();
    const { count } = shop.prepare("select count(*) as count from bookings").get() ?? {};
    shop.close();
    return Number(count);
  }

  #shop(): Database {
    return loadDriver().open(join(this.folder, "shop.db"));
  }

  #repository(name: string): Repository {
    mkdirSync(join(this.folder, name));
    const repository = new Repository(join(this.folder, name));
    repository.write("page.html", "v1\n");
    return repository;
  }
}

const TWINS = ["file", "once", "comment", "commit", "job", "mail", "row"];

const each = (names: readonly string[], count: number) => Object.fromEntries(names.map((name) => [name, count]));

it("S0-26 S0-27 S0-28 S0-30 S0-32 S0-33 killed between the outside call and its record, each effect with a guard is there once", async () => {
  const world = new World();
  const names = [...TWINS, "commit-and-file", "job-with-lock"];
  expect((await world.kill(names, true)).length).toBe(names.length);
  expect(world.counts(names)).toEqual(each(names, 1));
});

it("S0-34 killed between the outside call and its record, each effect without a guard is there twice", async () => {
  const world = new World();
  await world.kill(TWINS, false);
  expect(world.counts(TWINS)).toEqual(each(TWINS, 2));
});

it("S0-30 killed between the commit and the result file, there is one commit, and the file is repaired", async () => {
  const world = new World();
  const repository = world.repositories["commit-and-file"] as Repository;
  repository.hook("post-commit", 'test -z "$VICTIM" || kill -9 "$VICTIM"');
  const [result] = await world.kill(["commit-and-file"], true, "after the commit");
  const commit = repository.head;
  expect([repository.count, result]).toEqual([1, { commit }]);
  const file = readFileSync(join(world.folder, "result.json"), "utf8");
  expect(JSON.parse(file)).toEqual({ passed: true, commit, key: "commit-and-file/effect" });
});
