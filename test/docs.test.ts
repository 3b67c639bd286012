// Documentation that runs: every code block of the guides is compiled and executed, and keeps what its comments promise.

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Pawl } from "pawl";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { hasCode } from "../src/base/errors.ts";
import { loadDriver } from "../src/stores/postgres/driver.ts";
import { Program } from "./child.ts";
import { withoutColdStart } from "./cold-start.ts";
import { asProject, blocksOf, compilerConfig, extractGuide, withChecks } from "./fixtures/docs/guide.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const GUIDES = readdirSync(join(ROOT, "docs", "guides")).map((name) => `docs/guides/${name}`);
const guides = new Map(GUIDES.map((path) => [path, extractGuide(path)]));

/** Long enough for a machine that is busy with other things. */
const PATIENTLY = { timeout: 10_000 };

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

describe("the runner of code blocks", () => {
  it("finds blocks, their files and whether they stand alone", () => {
    const text = ["```ts", "// lib/a.ts", "1;", "```", "", "```sh", "x", "```", "```js standalone", "2;", "```"].join(
      "\n",
    );
    expect(blocksOf(text)).toEqual([
      { language: "ts", line: 2, isStandalone: false, file: "lib/a.ts", code: "// lib/a.ts\n1;\n" },
      { language: "js", line: 10, isStandalone: true, file: null, code: "2;\n" },
    ]);
  });

  it("turns promises in comments into checks", () => {
    const promises = ["console.log(a); // => [1]", "await b(); // => 2", "await c(); // throws closed", "// => no"];
    expect(withChecks(promises.join("\n"))).toEqual({
      count: 3,
      code: '__equal(a, [1]);\n__equal(await b(), 2);\nawait __throws(async () => c(), "closed");\n// => no',
    });
  });
});

describe("guides", () => {
  it("compile", () => {
    const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
    const { stdout, status } = spawnSync(process.execPath, [tsc, "-p", compilerConfig()], { encoding: "utf8" });
    expect(stdout).toBe("");
    expect(status).toBe(0);
  });

  it.each(GUIDES)("%s does what it says", async (path) => {
    if (path.endsWith("determinism.md")) withoutColdStart("it shows code that leaves the journal");
    inTempFolder();
    if (path.endsWith("postgres.md")) process.env["DATABASE_URL"] = await ownDatabase();
    for (const { path: file, checks } of guides.get(path)?.modules ?? []) expect(await runModule(file)).toBe(checks);
  });

  it("S3-27 S3-28 tell about replay, determinism and who is responsible for what", () => {
    const determinism = read("docs/guides/determinism.md");
    for (const topic of ["event sourcing", "## What to use instead", "## Who is responsible for what"])
      expect(determinism).toContain(topic);
  });

  it("Express: a request that is repeated is one run, and a stop hands it back", async () => {
    inTempFolder();
    const { listening } = await import("./fixtures/docs/express.ts");
    const before = { int: process.listeners("SIGINT"), term: process.listeners("SIGTERM") };
    await import(fileOf("docs/guides/express-and-nextjs.md", "server.ts"));
    await expect.poll(() => listening.url, PATIENTLY).not.toBe("");
    const ask = async (method: string, path: string, body?: unknown) => {
      const init = { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
      const response = await fetch(`${listening.url}${path}`, body === undefined ? { method } : init);
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    };
    const order = { id: "o1", cents: 4200 };
    const [first, second] = [await ask("POST", "/orders", order), await ask("POST", "/orders", order)];
    expect([first.status, second.body]).toEqual([202, first.body]);
    expect((await ask("POST", "/orders", { ...order, cents: 1 })).status).toBe(409);
    expect((await ask("GET", "/orders/nope")).status).toBe(404);
    const { run } = first.body;
    expect((await ask("POST", `/orders/${run}/shipped`, {})).status).toBe(202);
    await ended(String(run));
    const end = { status: "succeeded", data: { payment: "payment of o1" }, output: "payment of o1" };
    expect((await ask("GET", `/orders/${run}`)).body).toEqual(end);
    const stops = process.listeners("SIGTERM").filter((listener) => !before.term.includes(listener));
    expect(stops.length).toBe(1);
    stops[0]?.("SIGTERM");
    await untilNoWorker();
    for (const listener of process.listeners("SIGINT"))
      if (!before.int.includes(listener)) process.off("SIGINT", listener);
  });

  it("Next.js: route handlers share one Pawl", async () => {
    inTempFolder();
    const guide = "docs/guides/express-and-nextjs.md";
    process.env["NEXT_RUNTIME"] = "nodejs";
    const { register } = await import(fileOf(guide, "instrumentation.ts"));
    await register();
    const { POST } = await import(fileOf(guide, "app/orders/route.ts"));
    const { GET } = await import(fileOf(guide, "app/orders/[run]/route.ts"));
    const post = (order: unknown): Promise<Response> =>
      POST(new Request("http://localhost/orders", { method: "POST", body: JSON.stringify(order) }));
    const get = (run: string): Promise<Response> =>
      GET(new Request(`http://localhost/orders/${run}`), { params: Promise.resolve({ run }) });
    const started = await post({ id: "o1", cents: 1 });
    expect(started.status).toBe(202);
    expect((await post({ id: "o1", cents: 2 })).status).toBe(409);
    const { run } = (await started.json()) as { run: string };
    const { getPawl } = await import(fileOf(guide, "lib/pawl.ts"));
    const pawl: Pawl = await getPawl();
    await pawl.signal(run, "shipped");
    await pawl.get(run).result();
    expect(await (await get(run)).json()).toMatchObject({ status: "succeeded", output: "payment of o1" });
    expect((await get("nope")).status).toBe(404);
    expect((await pawl.workers()).length).toBe(1);
    await pawl.close();
  });

  it("Recovery: a step that asks waits for a person after SIGKILL", async () => {
    const folder = inTempFolder();
    asProject(folder);
    writeFileSync(join(folder, "pay.mjs"), readFileSync(fileOf("docs/guides/recovery.md", "pay.mjs"), "utf8"));
    const first = node(folder, ["pay.mjs"]);
    await printed(first, "transferring 4200");
    await first.kill("SIGKILL");
    const second = node(folder, ["pay.mjs"]);
    await printed(second, "nobody can tell whether it took effect");
    const command = (...args: string[]) => endOf(node(folder, ["node_modules/pawl/dist/cli/main.js", ...args]));
    expect((await command("why", "payout-1")).output).toContain("complete");
    expect((await command("resolve", "payout-1", "complete", "--value", '"transferred"')).code).toBe(0);
    const { code, output } = await endOf(second);
    expect({ code, count: output.split("transferring").length - 1 }).toEqual({ code: 0, count: 0 });
    expect(second.stdout).toBe("transferred\n");
  });
});

it("S3-18 Steps and retries: a step that a crash runs twice inserts one row, by its key", async () => {
  const folder = inTempFolder();
  asProject(folder);
  const guide = "docs/guides/steps-and-retries.md";
  writeFileSync(join(folder, "payments.mjs"), readFileSync(fileOf(guide, "payments.mjs"), "utf8"));
  const first = node(folder, ["payments.mjs"]);
  await printed(first, "attempt 1 with ");
  await first.kill("SIGKILL");
  const second = node(folder, ["payments.mjs"]);
  expect(await endOf(second)).toMatchObject({ code: 0 });
  const [line = ""] = first.lines;
  expect(second.lines).toEqual([line.replace("attempt 1", "attempt 2"), "rows: 1"]);
});

it("Testing: the planted double charge and the lost variable are found, and the fixed checkout passes", async () => {
  const folder = inTempFolder();
  asProject(folder);
  const guide = "docs/guides/testing.md";
  for (const file of ["bank.ts", "checkout.ts", "fixed.ts", "state.ts"])
    writeFileSync(join(folder, file), readFileSync(fileOf(guide, file), "utf8"));
  const test = (...args: string[]) =>
    endOf(node(folder, ["node_modules/pawl/dist/cli/main.js", "test", "--crash-everywhere", ...args]));
  const [broken, fixed, state] = [
    await test("checkout.ts", "--no-processes"),
    await test("fixed.ts", "--at", "6"),
    await test("state.ts", "--at", "8"),
  ];
  expect(broken.code).toBe(1);
  expect(broken.output).toMatch(/The effect "charge" \{ cents: 4200 \} happened 2 times instead of 1/);
  const [where = "no place"] = /^ +\S.* at point \d+, .*--at \d+\.$/m.exec(broken.output) ?? [];
  expect(read(guide)).toContain(`${where}\n`);
  expect(fixed).toMatchObject({ code: 0, output: expect.stringContaining("No failure.") });
  expect(state.code).toBe(1);
  expect(state.output).toContain('Step "fetch" recorded "fetched with none", undisturbed "fetched with t-1".');
}, 120_000);

it("S3-29 the demonstration kills a worker, and every effect happened once", async () => {
  const { code, output } = await endOf(node(ROOT, ["scripts/demo.mjs"]));
  expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining("Every effect happened once.") });
  expect(output).toMatch(/kill -9 \d+/);
  expect(output).toMatch(/in flight: run again with the same key/);
});

describe("README", () => {
  const [example] = blocksOf(read("README.md"));

  it("shows code within the first lines that a reader sees", () => {
    expect(example?.file).toBe("checkout.mjs");
    expect(example?.line).toBeLessThan(25);
    expect(example?.code.split("\n").length).toBeLessThan(36);
  });

  it.each(["SIGINT", "SIGKILL"] as const)(
    "S3-1 S3-29 the checkout example goes on after %s without charging again",
    async (signal) => {
      const folder = inTempFolder();
      asProject(folder);
      // The reader has ten seconds to kill it; the test needs no more than a moment.
      writeFileSync(join(folder, "checkout.mjs"), (example?.code ?? "").replace('"10s"', '"3s"'));
      const first = node(folder, ["checkout.mjs"]);
      await printed(first, "charging 4200 cents");
      await untilAsleep(folder);
      await first.kill(signal);
      const second = await endOf(node(folder, ["checkout.mjs"]));
      expect(second.code).toBe(0);
      expect(second.output).not.toContain("charging");
      expect(second.output).toContain("mail to ada@example.com: paid with payment-1");
      expect(second.output).toContain("{ order: 17, payment: 'payment-1' }");
      const third = await endOf(node(folder, ["checkout.mjs"]));
      expect(third.output).toBe("{ order: 17, payment: 'payment-1' }\n");
    },
  );
});

describe("references", () => {
  it.each(["docs/reference/options.md", "docs/reference/cli.md"])("%s is up to date", (path) => {
    const script = join(ROOT, "scripts", "reference.mjs");
    const { stdout, stderr, status } = spawnSync(process.execPath, [script, "--print", path], { encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(read(path), `Run "node scripts/reference.mjs" and commit ${path}.`).toBe(stdout);
  });
});

describe("errors", () => {
  const codes = [...read("src/base/errors.ts").matchAll(/^ {2}\| "(\w+)"/gm)].map((match) => match[1] ?? "");
  const rows = [...read("docs/reference/errors.md").matchAll(/^\| `(\w+)` \| (.+) \| (.+) \|$/gm)];

  it("are all in the reference, once, in order", () => {
    expect(codes.length).toBeGreaterThan(30);
    expect(rows.map((row) => row[1])).toEqual(codes);
  });

  it("S3-28 lead to the guides where more is to be known", () => {
    const guideOf = {
      determinism: ["determinism_hazard", "foreign_await", "replay_drift", "replay_stalled"],
      recovery: ["corrupted_journal", "lease_lost", "poisoned", "run_parked", "step_interrupted", "unknown_outcome"],
    };
    for (const [guide, about] of Object.entries(guideOf))
      for (const code of about) expect(rows.find((row) => row[1] === code)?.[3]).toContain(`(../guides/${guide}.md#`);
  });

  it("each say what happened and what to do next", () => {
    const short = rows.filter(([, , meaning = "", next = ""]) => meaning.length < 15 || next.length < 10);
    expect(short.map((row) => row[1])).toEqual([]);
  });
});

describe("links", () => {
  const pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", ...markdownIn("docs")];

  it("point to files and headings that exist", () => {
    const broken = pages.flatMap((page) =>
      [...read(page).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)]
        .filter(([, link = "", anchor]) => {
          const target = link === "" ? page : join(dirname(page), link);
          if (!existsSync(join(ROOT, target))) return true;
          return anchor !== undefined && !anchorsOf(target).includes(anchor);
        })
        .map(([found]) => `${page}: ${found}`),
    );
    expect(broken).toEqual([]);
  });
});

/** The names by which the headings of a page can be linked to. */
function anchorsOf(page: string): string[] {
  const headings = [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, text = ""]) => text.toLowerCase());
  return headings.map((text) => text.replace(/[^\w\s-]/g, "").replaceAll(" ", "-"));
}

function markdownIn(folder: string): string[] {
  const entries = readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" });
  return entries.filter((name) => name.endsWith(".md")).map((name) => `${folder}/${name}`);
}

/** The URL of a PostgreSQL database that is gone when the test is over. */
async function ownDatabase(): Promise<string> {
  const server = inject("postgresUrl");
  const name = `docs_${process.pid}`;
  const client = (await loadDriver()).client({ connectionString: server });
  await client.connect();
  await client.query({ text: `create database ${name}` });
  onTestFinished(async () => {
    await client.query({ text: `drop database ${name} with (force)` });
    await client.end();
  });
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

function fileOf(guide: string, file: string): string {
  const path = guides.get(guide)?.files[file];
  if (path === undefined) throw new Error(`${guide} has no block that begins with "// ${file}".`);
  return path;
}

/** Moves this process into a folder of its own until the test is over. */
function inTempFolder(): string {
  const before = process.cwd();
  const folder = mkdtempSync(join(tmpdir(), "pawl-docs-"));
  process.chdir(folder);
  onTestFinished(() => {
    process.chdir(before);
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  });
  return folder;
}

/** Runs a module of a guide; returns how many of its checks were reached. */
async function runModule(path: string): Promise<number> {
  let checks = 0;
  Object.assign(globalThis, {
    __equal(actual: unknown, expected: unknown) {
      checks += 1;
      expect(actual).toEqual(expected);
    },
    async __throws(run: () => Promise<unknown>, code: string) {
      checks += 1;
      const error = await run().then(
        (value) => new Error(`resolved with ${JSON.stringify(value)}`),
        (thrown: unknown) => thrown,
      );
      expect(hasCode(error, code as never), String(error)).toBe(true);
    },
  });
  await import(path);
  return checks;
}

/** Opens the default store of this folder for as long as `look` takes. */
async function looking<T>(look: (pawl: Pawl) => Promise<T>): Promise<T> {
  const pawl = await Pawl.open();
  return look(pawl).finally(() => pawl.close());
}

function ended(run: string): Promise<unknown> {
  return looking((pawl) => pawl.get(run).result());
}

async function untilNoWorker(): Promise<void> {
  await looking(async (pawl) => {
    await expect.poll(async () => (await pawl.workers()).length, PATIENTLY).toBe(0);
  });
}

/** Resolves when the one run of this folder has recorded its sleep. */
async function untilAsleep(folder: string): Promise<void> {
  await expect.poll(() => existsSync(join(folder, ".pawl", "pawl.db")), PATIENTLY).toBe(true);
  await looking(async (pawl) => {
    const [run] = (await pawl.list()).runs;
    for await (const entry of pawl.get(run?.id ?? "").events()) if (entry.type === "timer.set") return;
  });
}

/** Runs Node in a folder, as a reader would. */
function node(folder: string, args: readonly string[]): Program {
  const { PAWL_STORE: _, FORCE_COLOR: __, ...env } = process.env;
  const words = [process.execPath, "--no-warnings", ...args];
  const program = new Program(words, { cwd: folder, env: { ...env, NO_COLOR: "1" } });
  onTestFinished(() => void program.process.kill("SIGKILL"));
  return program;
}

/** Resolves when it has printed this text. */
function printed(program: Program, text: string): Promise<true> {
  return program.until(() => program.stdout.includes(text) || program.stderr.includes(text) || undefined);
}

async function endOf(program: Program): Promise<{ readonly code: number | null; readonly output: string }> {
  const { code } = await program.exited;
  return { code, output: program.stdout + program.stderr };
}
