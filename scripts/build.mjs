// Builds dist from src: clean, compile, join, mark the command executable; and the dashboard from web.
// A process takes longer to find and link two hundred small files than to run them, and `pawl` is started often. So what is compiled is
// joined: one file for each entry below, and what they share in a few of dist/shared, see `groups`. `tsc -p tsconfig.build.json` alone gives a dist that works
// as well, with a file for each module.

import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { build } from "vite";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");

const ENTRIES = [
  // What package.json exports, and the command.
  "index",
  "notify/index",
  "otel/index",
  "guards/index",
  "agent/index",
  "ai/index",
  "server/index",
  "server/client",
  "testing/index",
  "cli/main",
  // What package.json calls by a name with #: files of threads and processes.
  "cli/crash-life",
  "cli/detector-life",
  "cli/dev-examples",
  "cli/load",
  "cli/ts-hook",
  "cli/worker-process",
  "stores/postgres/pulse-thread",
  "stores/sqlite/pulse-thread",
  // It knows the engine's lines in a stack by its own name among them.
  "core/call-site",
  // What scripts, benches and tests of this repository use beside the exports.
  "base/clock",
  "base/envelope",
  "base/random",
  "client/doctor",
  "client/machine",
  "core/values",
  "stores/postgres/migrate",
  "stores/sqlite/connection",
  "stores/sqlite/driver",
  "stores/sqlite/lock-holder",
  "stores/sqlite/sqlite-store",
  "testing/store-cases/case",
  "worker/node-host",
];

/** Parts of the engine that others need without the rest of it: a web page, threads that are to start quickly, and processes for one question. */
const APART = {
  client: ["server/client"],
  "call-site": ["core/call-site"],
  // On Node 20 a thread of every process that loads a TypeScript file runs it.
  "ts-hook": ["cli/ts-hook"],
  threads: ["stores/postgres/pulse-thread", "stores/sqlite/pulse-thread", "stores/sqlite/lock-holder"],
  detector: ["cli/detector-life"],
};

rmSync(dist, { recursive: true, force: true });
compile();
await joinModules();
chmodSync(join(dist, "cli", "main.js"), 0o755);
await buildDashboard();

function compile() {
  const require = createRequire(import.meta.url);
  const tsc = join(dirname(require.resolve("typescript/package.json")), "bin", "tsc");
  const { status } = spawnSync(process.execPath, [tsc, "-p", "tsconfig.build.json"], { cwd: root, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

async function joinModules() {
  const output = await joined(ENTRIES, {
    chunkFileNames: "shared/[name].js",
    codeSplitting: { groups: await groups() },
  });
  for (const name of readdirSync(dist, { recursive: true })) if (name.endsWith(".js")) rmSync(join(dist, name));
  for (const { fileName, code } of output) {
    mkdirSync(dirname(join(dist, fileName)), { recursive: true });
    writeFileSync(join(dist, fileName), code);
  }
}

/** The whole engine is one file, but for what is apart: left alone, it would be fifty, by who shares what. */
async function groups() {
  const parts = Object.entries({ ...APART, pawl: ["index"] });
  return Promise.all(
    parts.map(async ([name, entries]) => {
      const chunks = await joined(entries);
      const modules = new Set(chunks.flatMap(({ moduleIds }) => moduleIds));
      // An entry without exports does something: it must not be part of what others import.
      for (const chunk of chunks) if (chunk.exports.length === 0) modules.delete(chunk.facadeModuleId);
      return { name, test: (id) => modules.has(id) };
    }),
  );
}

async function joined(names, options = {}) {
  const input = Object.fromEntries(names.map((name) => [name, join(dist, `${name}.js`)]));
  const bundle = await rolldown({ input, platform: "node", external: /^[^./]/ });
  const { output } = await bundle.generate({ format: "esm", ...options });
  await bundle.close();
  return output;
}

/** Nothing is inlined: the server allows scripts and styles of its own files only. */
function buildDashboard() {
  return build({
    root: join(root, "web"),
    configFile: false,
    logLevel: "warn",
    build: {
      outDir: join(dist, "web"),
      emptyOutDir: true,
      target: "es2022",
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
    },
  });
}
