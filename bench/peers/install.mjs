// Installs a peer into its own folder, the exact versions of its lock file, when it is first needed.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { openNode24 } from "../../scripts/node24.mjs";
import { runNpm } from "../../scripts/npm.mjs";

const NEEDED_MAJOR = 24;

/** Throws with the reason if the peer cannot be installed. */
export function install({ folder, main }) {
  if (main === null) return;
  const here = fileURLToPath(new URL(`./${folder}/`, import.meta.url));
  const lock = readFileSync(`${here}package-lock.json`, "utf8");
  const stamp = `${here}node_modules/.bench-lock`;
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === lock) return;
  console.error(`installing ${main} …`);
  const status = runNpm(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], here);
  if (status !== 0) throw new Error(`npm ci in bench/peers/${folder} ended with ${status}`);
  writeFileSync(stamp, lock);
}

export function versionOf({ folder, main }) {
  const path = main === null ? "../../package.json" : `./${folder}/node_modules/${main}/package.json`;
  return JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8")).version;
}

/** All peers run on one Node, the newest that one of them needs. */
export function benchNode() {
  return Number(process.versions.node.split(".")[0]) >= NEEDED_MAJOR ? process.execPath : openNode24().node;
}
