// Runs `npm test` on Node 24, whatever Node runs this script. The binary comes from npm and stays in .cache/node24.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const VERSION = "24.21.0";

const root = fileURLToPath(new URL("..", import.meta.url));
const cache = join(root, ".cache", "node24");
const isWindows = process.platform === "win32";
const name = `node-${isWindows ? "win" : process.platform}-${process.arch}`;
const bin = join(cache, "node_modules", name, "bin");
const node = join(bin, isWindows ? "node.exe" : "node");
const npm = process.env.npm_execpath;

if (!npm) {
  console.error("Run this script by npm: npm run test:node24");
  process.exit(1);
}
if (installedVersion() !== `v${VERSION}`) install();

const { status } = spawnSync(node, [npm, "test", ...process.argv.slice(2)], {
  cwd: root,
  stdio: "inherit",
  env: { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}`, npm_node_execpath: node, NODE: node },
});
process.exitCode = status ?? 1;

function installedVersion() {
  return existsSync(node) ? spawnSync(node, ["--version"], { encoding: "utf8" }).stdout.trim() : null;
}

function install() {
  mkdirSync(cache, { recursive: true });
  writeFileSync(join(cache, "package.json"), '{ "private": true }\n');
  const args = ["install", "--no-save", "--no-package-lock", "--ignore-scripts", "--prefix", cache];
  const { status } = spawnSync(process.execPath, [npm, ...args, `${name}@${VERSION}`], {
    cwd: cache,
    stdio: "inherit",
  });
  if (status !== 0 || installedVersion() !== `v${VERSION}`) {
    console.error(`Could not install Node ${VERSION} as ${name}@${VERSION}. Is there a build for this platform?`);
    process.exit(1);
  }
}
