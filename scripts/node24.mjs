// A Node 24 binary, whatever Node runs this. It comes from npm and stays in .cache/node24.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { installPackages } from "./npm.mjs";

const VERSION = "24.21.0";

const cache = fileURLToPath(new URL("../.cache/node24", import.meta.url));
const isWindows = process.platform === "win32";
const name = `node-${isWindows ? "win" : process.platform}-${process.arch}`;
const bin = join(cache, "node_modules", name, "bin");
const node = join(bin, isWindows ? "node.exe" : "node");

/** Installs Node 24 unless it is there, and gives its path and its folder. */
export function openNode24() {
  if (installedVersion() !== `v${VERSION}`) install();
  return { node, bin };
}

function installedVersion() {
  return existsSync(node) ? spawnSync(node, ["--version"], { encoding: "utf8" }).stdout.trim() : null;
}

function install() {
  mkdirSync(cache, { recursive: true });
  writeFileSync(join(cache, "package.json"), '{ "private": true }\n');
  const status = installPackages(cache, [`${name}@${VERSION}`]);
  if (status !== 0 || installedVersion() !== `v${VERSION}`) {
    throw new Error(`Could not install Node ${VERSION} as ${name}@${VERSION}. Is there a build for this platform?`);
  }
}
