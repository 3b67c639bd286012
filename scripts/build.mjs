// Builds dist from src: clean, compile, join, mark the command executable.
// A process takes longer to find and link two hundred small files than to run them, and `pawl` is started often. So what is compiled is
// joined: one file for each entry below, and what they share in dist/shared. `tsc -p tsconfig.build.json` alone gives a dist that works
// as well, with a file for each module.

import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");

const ENTRIES = [
  // What package.json exports, and the command.
  "index",
  "notify/index",
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

rmSync(dist, { recursive: true, force: true });
compile();
await joinModules();
chmodSync(join(dist, "cli", "main.js"), 0o755);

function compile() {
  const require = createRequire(import.meta.url);
  const tsc = join(dirname(require.resolve("typescript/package.json")), "bin", "tsc");
  const { status } = spawnSync(process.execPath, [tsc, "-p", "tsconfig.build.json"], { cwd: root, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

async function joinModules() {
  const input = Object.fromEntries(ENTRIES.map((name) => [name, join(dist, `${name}.js`)]));
  const bundle = await rolldown({ input, platform: "node", external: /^[^./]/ });
  const { output } = await bundle.generate({ format: "esm", chunkFileNames: "shared/[name].js" });
  await bundle.close();
  for (const name of readdirSync(dist, { recursive: true })) if (name.endsWith(".js")) rmSync(join(dist, name));
  for (const { fileName, code } of output) {
    mkdirSync(dirname(join(dist, fileName)), { recursive: true });
    writeFileSync(join(dist, fileName), code);
  }
}
