// The repository checks itself: what reviewers would otherwise have to look for, as tests over its own files.

import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, extname, join, posix, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const THIS_FILE = "test/tidy.test.ts";
const NOT_OURS = new Set([".git", ".cache", ".pawl", "node_modules", "dist", "coverage"]);
const CODE = new Set([".ts", ".tsx", ".mts", ".js", ".mjs", ".cjs"]);
const SIMULATE = join(ROOT, "scripts", "simulate.mjs");
const SYSTEM_CLOCK = "src/base/clock.ts";
const MAX_LINES = 500;

// Each group may import the groups before it. Folders of one group do not know each other.
// "index" stands for the files directly in src: the package's root export.
const LAYERS = [
  ["base"],
  ["core"],
  ["files"],
  ["stores", "worker", "flows", "notify", "observe", "otel"],
  ["client", "guards"],
  ["index"],
  ["agent", "server", "testing"],
  ["ai"],
  ["cli"],
];

interface PackageFile {
  readonly dependencies: Readonly<Record<string, string>>;
}

interface LockFile {
  readonly packages: Readonly<Record<string, { dev?: boolean; peer?: boolean; hasInstallScript?: boolean }>>;
}

interface SourceFile {
  path: string;
  text: string;
}

const files = readFiles(ROOT);
const code = files.filter((file) => CODE.has(extname(file.path)));
const sources = code.filter((file) => file.path.startsWith("src/") && !isTest(file));
const tests = code.filter((file) => isTest(file) && file.path !== THIS_FILE);

it("layers import only to their left", () => {
  const broken = sources.flatMap((file) =>
    importsOf(file).flatMap((specifier) => {
      const target = layerOfImport(file, specifier);
      if (target === null || mayImport(layerOf(file.path), target)) return [];
      return [`${file.path} (${layerOf(file.path)}) imports ${specifier} (${target})`];
    }),
  );
  expect(broken).toEqual([]);
});

it("every folder of src is in the layer table", () => {
  const unknown = new Set(sources.map((file) => layerOf(file.path)).filter((layer) => rankOf(layer) === -1));
  expect([...unknown]).toEqual([]);
});

it("the layer rule knows left, right and sibling", () => {
  expect(mayImport("core", "base")).toBe(true);
  expect(mayImport("cli", "stores")).toBe(true);
  expect(mayImport("worker", "worker")).toBe(true);
  expect(mayImport("base", "core")).toBe(false);
  expect(mayImport("worker", "stores")).toBe(false);
  expect(mayImport("core", "somewhere-new")).toBe(false);
});

it("the import scan sees every form of import and no comment", () => {
  const text = [
    'import { a } from "./a.ts";',
    "import {",
    "  type B,",
    '} from "./b.ts";',
    'import "./c.ts";',
    'export * from "./d.ts";',
    'const e = await import("./e.ts");',
    'type F = import("./f.ts").F;',
    ' * import { x } from "./comment.ts";',
    '// import { x } from "./comment.ts";',
  ].join("\n");
  const seen = importsOf({ path: "src/core/x.ts", text }).sort();
  expect(seen).toEqual(["./a.ts", "./b.ts", "./c.ts", "./d.ts", "./e.ts", "./f.ts"]);
});

it("base and core import nothing of Node", () => {
  const pure = sources.filter((file) => ["base", "core"].includes(layerOf(file.path)));
  const impure = pure.flatMap((file) =>
    importsOf(file)
      .filter((specifier) => specifier.startsWith("node:"))
      .map((specifier) => `${file.path} imports ${specifier}: go through a port`),
  );
  expect(impure).toEqual([]);
});

// Date as a type, or built from a given number, is pure; reading the clock is not. Other globals are the linter's.
it("base and core read neither clock nor dice", () => {
  const pure = sources.filter((file) => ["base", "core"].includes(layerOf(file.path)) && file.path !== SYSTEM_CLOCK);
  expect(linesMatching(pure, /\bDate\.now\b|\bDate\(\s*\)|\bnew Date\b(?!\()|\bMath\.random\b/)).toEqual([]);
});

it("Q9 nothing in src turns text into code", () => {
  expect(linesMatching(sources, /\beval\(|\bnew Function\b|(?<![\w.])Function\(|["']node:vm["']/)).toEqual([]);
});

it(`no file in src is longer than ${MAX_LINES} lines`, () => {
  const long = code
    .filter((file) => file.path.startsWith("src/"))
    .map((file) => ({ path: file.path, lines: file.text.trimEnd().split("\n").length }))
    .filter(({ lines }) => lines > MAX_LINES)
    .map(({ path, lines }) => `${path} has ${lines} lines, more than ${MAX_LINES}: split it`);
  expect(long).toEqual([]);
});

it("files are named after what they hold", () => {
  const vague = code
    .filter((file) => /^(utils?|helpers?|common|types?|impl|manager)\./.test(basename(file.path)))
    .map((file) => `${file.path}: name it after its main export`);
  expect(vague).toEqual([]);
});

it("S3-5 the examples have no recovery code: no try, no flags, no table of their own", () => {
  const examples = code.filter((file) => /^examples\/.+\/workflow\.ts$/.test(file.path));
  expect(examples.length).toBeGreaterThanOrEqual(3);
  const recovery = /\b(try|catch|finally)\b|resume|restart|checkpoint|already|\bcreate table\b/i;
  expect(linesMatching(examples, recovery)).toEqual([]);
});

it("scripts tell their options: by the comment at their top, whoever asks for help or mistypes one", () => {
  const READER = "scripts/read-options.mjs";
  const others = code.filter(({ path, text }) => /^(scripts|bench)\//.test(path) && text.includes("parseArgs("));
  expect(others.map(({ path }) => path)).toEqual([READER]);
  const asked = spawnSync(process.execPath, [SIMULATE, "--help"], { encoding: "utf8" });
  expect(asked).toMatchObject({ status: 0, stdout: expect.stringContaining("--seeds 100000") });
  const mistyped = spawnSync(process.execPath, [SIMULATE, "--sedes", "3"], { encoding: "utf8" });
  expect(mistyped).toMatchObject({ status: 2, stderr: expect.stringMatching(/'--sedes'.*--seeds 100000/s) });
  const notANumber = spawnSync(process.execPath, [SIMULATE, "--seeds", "3x"], { encoding: "utf8" });
  expect(notANumber).toMatchObject({ status: 2, stderr: "--seeds is 3x. Give a whole number.\n" });
});

it("nothing is left to do in the code", () => {
  expect(linesMatching(code, /\b(TODO|FIXME|XXX)\b/)).toEqual([]);
});

it("no file names a machine's folders or a package registry", () => {
  const machine = linesMatching(files, /(?<![\w.)}\]*-])\/(work|root|home)\//);
  const registry = linesMatching(files, /npmjs|\/\/registry\./);
  expect([...machine, ...registry]).toEqual([]);
});

it("Q19 the lock file has no download addresses", () => {
  const lock = files.find((file) => file.path === "package-lock.json");
  expect(lock).toBeDefined();
  expect(lock?.text).not.toContain('"resolved"');
});

it("Q19 dependencies are pinned exactly", () => {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const loose = Object.entries<string>({ ...dependencies, ...devDependencies }).filter(
    ([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version),
  );
  expect(loose).toEqual([]);
});

it("Q19 nothing that users install runs a script while it is installed, and it is little", () => {
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as PackageFile;
  const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as LockFile;
  const installed = Object.entries(packages).filter(
    ([path, one]) => path !== "" && one.dev !== true && one.peer !== true,
  );
  const scripted = installed.filter(([, one]) => one.hasInstallScript === true).map(([path]) => path);
  // Its binaries are in the package: npm is told not to run its script.
  expect(scripted).toEqual(["node_modules/@photostructure/sqlite"]);
  expect(Object.keys(dependencies).length).toBeLessThanOrEqual(8);
});

it("a test that is narrowed, skipped or postponed says why", () => {
  const silent = tests.flatMap((file) => {
    const lines = file.text.split("\n");
    return lines.flatMap((line, i) => {
      if (!/\b(it|test|describe|suite)(\.\w+)*\.(only|skip|todo|skipIf|runIf)\b/.test(line)) return [];
      const hasReason = /\/\/ ?\S/.test(line) || /^\s*(\/\/|\*\/|\*) ?\S?/.test(lines[i - 1] ?? "");
      return hasReason ? [] : [`${file.path}:${i + 1} ${line.trim()}: give the reason in a comment`];
    });
  });
  expect(silent).toEqual([]);
});

it("titles have their ids in front, each spelled out", () => {
  const id = "(?:S\\d|[A-Z])-?\\d+";
  const behind = new RegExp(`\\(${id}(?:,? ${id})*\\)["\`]`);
  const range = new RegExp(`\\b(?:it|describe)\\b.*["\`].*\\b${id} (?:to|\u2013|\\.\\.+) ${id}`);
  expect([...linesMatching(tests, behind), ...linesMatching(tests, range)]).toEqual([]);
});

it("no test sleeps", () => {
  const sleep = /new Promise(<[^>]*>)?\(\s*\(?\w+\)?\s*=>\s*\{?\s*setTimeout\(|\bfrom "node:timers\/promises"/;
  const sleeping = tests
    .filter((file) => sleep.test(file.text))
    .map((file) => `${file.path}: await a signal or a virtual clock instead`);
  expect(sleeping).toEqual([]);
});

function readFiles(folder: string): SourceFile[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (NOT_OURS.has(entry.name)) return [];
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return readFiles(path);
    if (!entry.isFile()) return [];
    const name = relative(ROOT, path).split(sep).join("/");
    const text = readFileSync(path, "utf8");
    const isBinary = text.includes("\0");
    return name === THIS_FILE || isBinary ? [] : [{ path: name, text }];
  });
}

function isTest(file: SourceFile): boolean {
  return /\.test\.\w+$/.test(file.path);
}

function importsOf(file: SourceFile): string[] {
  const statement = /^(?:import|export)\b[^;"'`]*?\bfrom\s*["']([^"']+)["']/gm;
  const bare = /^import\s*["']([^"']+)["']/gm;
  const call = /\bimport\(\s*["']([^"']+)["']/g;
  return [statement, bare, call].flatMap((form) => [...file.text.matchAll(form)].map((match) => match[1] ?? ""));
}

function layerOf(path: string): string {
  const [, folder = "", ...rest] = path.split("/");
  return rest.length === 0 ? "index" : folder;
}

// The layer that an import leads to, or null where it leads out of the package.
function layerOfImport(file: SourceFile, specifier: string): string | null {
  if (specifier === "pawl") return "index";
  if (specifier.startsWith("pawl/")) return specifier.slice("pawl/".length);
  if (!specifier.startsWith(".")) return null;
  const target = posix.join(dirname(file.path), specifier);
  return target.startsWith("src/") ? layerOf(target) : "outside src";
}

function mayImport(from: string, to: string): boolean {
  if (from === to) return true;
  return rankOf(to) !== -1 && rankOf(to) < rankOf(from);
}

function rankOf(layer: string): number {
  return LAYERS.findIndex((group) => group.includes(layer));
}

function linesMatching(among: SourceFile[], pattern: RegExp): string[] {
  return among.flatMap((file) =>
    file.text
      .split("\n")
      .flatMap((line, i) => (pattern.test(line) ? [`${file.path}:${i + 1} ${line.trim().slice(0, 120)}`] : [])),
  );
}
