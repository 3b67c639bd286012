// The bug-fix example, killed after every durable write and inside every step that goes outside, on a directory of documents and on SQLite. A new
// process finishes: the same result, the same files, one commit, one comment, one job, one mail.
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { folderName } from "../../src/files/folder-name.ts";
import { type Child, type EngineRequest, live, type RunRequest } from "./child.ts";
import { everyTime, killLives } from "./killed-lives.ts";
import { example, inGroups, World } from "./world.ts";

// Other work may slow the machine down.
vi.setConfig({ testTimeout: 600_000 });

const FILE = example("06-bugfix");

const STORES = [
  { name: "the file store", write: "document", url: (folder: string) => `file:${join(folder, "state")}` },
  { name: "SQLite", write: "after-commit", url: (folder: string) => join(folder, "pawl.db") },
] as const;

/** How often each action is to take effect. */
const EFFECTS = { read: 1, propose: 3, reviewer: 1, comment: 1, job: 1, mail: 1 };

class Bench {
  readonly world: World = new World();
  readonly #url: (folder: string) => string;
  readonly #template: string;
  #runs = 0;

  constructor(url: (folder: string) => string) {
    this.#url = url;
    this.#template = join(this.world.folder, "template");
    mkdirSync(this.#template);
    this.#git(this.#template, "init", "--quiet", "--initial-branch=main");
    this.#git(this.#template, "config", "user.name", "Ada");
    this.#git(this.#template, "config", "user.email", "ada@example.com");
  }

  /** A run in a store and a repository of its own. */
  next(): string {
    const run = `AE-${String(++this.#runs).padStart(5, "0")}`;
    cpSync(this.#template, join(this.#folder(run), "app"), { recursive: true });
    return run;
  }

  engine(run: string): EngineRequest {
    return { store: this.#url(this.#folder(run)), runs: [this.#request(run)] };
  }

  live(engines: readonly EngineRequest[]): Promise<Child> {
    return live({ engines, files: [FILE] }, { env: this.world.env });
  }

  /** Kills the engine once, where git has made the commit or is about to. */
  addHook(run: string, name: string): void {
    const hook = join(this.#folder(run), "app", ".git", "hooks", name);
    const once = `[ -e "$GIT_DIR/killed" ] && exit 0; touch "$GIT_DIR/killed"; kill -9 $ENGINE_PID; exit 1`;
    mkdirSync(join(hook, ".."), { recursive: true });
    writeFileSync(hook, `#!/bin/sh\nGIT_DIR=\${GIT_DIR:-.git}\n${once}\n`);
    chmodSync(hook, 0o755);
  }

  /** What is there in the end, in words that do not depend on the run. */
  end(run: string, result: unknown): object {
    const folder = this.#folder(run);
    const place = this.#document(run);
    const outputs = place === null ? join(folder, "outputs", folderName(run)) : join(place, "outputs");
    const files = readdirSync(outputs).sort();
    const lines = this.world.ledger().filter(({ about, did }) => did && about.includes(run));
    const counts: Record<string, number> = {};
    for (const { action } of lines) counts[action] = (counts[action] ?? 0) + 1;
    const app = join(folder, "app");
    return {
      result: plain(run, JSON.stringify(result)),
      files: files.map((name) => [name, plain(run, readFileSync(join(outputs, name), "utf8"))]),
      commits: plain(run, this.#git(app, "log", "--all", "--format=%B")),
      fix: plain(run, this.#git(app, "show", "HEAD:fix.patch")),
      counts,
    };
  }

  /** Of a directory: what its document says. */
  statuses(run: string): string[] | null {
    const place = this.#document(run);
    if (place === null) return null;
    const text = readFileSync(join(place, "state.json"), "utf8");
    const { phases, status } = JSON.parse(text) as { status: string; phases: object };
    return [status, ...Object.values(phases).map((phase) => phase.status)];
  }

  /** The folder of its document, in a directory of documents. */
  #document(run: string): string | null {
    const runs = join(this.#folder(run), "state", "runs");
    return existsSync(runs) ? join(runs, readdirSync(runs)[0] ?? "") : null;
  }

  #folder(run: string): string {
    return join(this.world.folder, run);
  }

  #request(run: string): RunRequest {
    const input = { jira_key: run, repository: join(this.#folder(run), "app") };
    return { workflow: "bug-e2e", id: run, key: run, input };
  }

  #git(cwd: string, ...args: string[]): string {
    return execFileSync("git", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  }
}

/** Digests of a text with the run's own key in it are its own, too. */
function plain(run: string, text: string): string {
  return text
    .replaceAll(run, "KEY")
    .replace(/[0-9a-f]{40,64}/g, "digest")
    .replace(/\/[^"]*\/app\b/g, "app");
}

interface Wreck {
  readonly run: string;
  readonly at: string;
}

/** A hook of the repository kills the process while it commits. */
async function killedBy(hook: "pre-commit" | "post-commit", bench: Bench): Promise<Wreck> {
  const run = bench.next();
  bench.addHook(run, hook);
  const child = await bench.live([bench.engine(run)]);
  expect(await child.exited, child.report()).toEqual({ code: null, signal: "SIGKILL" });
  return { run, at: hook };
}

for (const store of STORES) {
  it(`D-1 S0-1 S0-19 S0-26 S0-28 S0-29 T-4 T-6 I6 example 06 on ${store.name}, killed after every durable write and inside every step: the same end, one commit, one comment, one job, one mail`, async () => {
    const bench = new Bench(store.url);
    const whole = bench.next();
    const undisturbed = await bench.live([bench.engine(whole)]);
    expect(await undisturbed.exited, undisturbed.report()).toEqual({ code: 0, signal: null });
    const expected = bench.end(whole, await undisturbed.result(whole));
    expect(expected).toMatchObject({
      counts: EFFECTS,
      commits: expect.stringContaining("Pawl-Step: KEY/phase_5.commit"),
    });

    const wrecks: Wreck[] = [];
    for (const hook of ["pre-commit", "post-commit"] as const) wrecks.push(await killedBy(hook, bench));
    const times = await Promise.all(
      [store.write, "effect"].map(async (point) => ({ point, n: await undisturbed.reached(point) })),
    );
    const killed = await killLives(
      times.flatMap(({ point, n }) => everyTime(point, n)),
      { next: () => bench.engine(bench.next()), live: (engines) => bench.live(engines) },
    );
    // One for each step that goes outside, and as many writes as there are steps at least.
    const killedAt = (point: string) => killed.filter(({ kill }) => kill.point === point).length;
    expect(killedAt("effect")).toBeGreaterThanOrEqual(8);
    expect(killedAt(store.write)).toBeGreaterThanOrEqual(14);
    wrecks.push(...killed.map(({ run, kill }) => ({ run, at: JSON.stringify(kill) })));
    await inGroups(wrecks, 20, async (group) => {
      const child = await bench.live(group.map(({ run }) => bench.engine(run)));
      expect(await child.exited, child.report()).toEqual({ code: 0, signal: null });
      for (const { run, at } of group) {
        expect(bench.end(run, await child.result(run)), at).toEqual(expected);
        expect(bench.statuses(run), at).toEqual(bench.statuses(whole));
      }
    });
  });
}
