// Calls npm from a script, whether or not npm has started that script.

import { spawnSync } from "node:child_process";

/** Runs npm in a folder and gives its exit code; what it prints goes to standard error, where progress belongs. */
export function runNpm(args, cwd) {
  const npm = process.env.npm_execpath;
  const [command, ...first] = npm?.endsWith("js") ? [process.execPath, npm] : ["npm"];
  const { status, error } = spawnSync(command, [...first, ...args], {
    cwd,
    stdio: ["ignore", 2, 2],
    shell: command === "npm" && process.platform === "win32",
  });
  if (error !== undefined) throw new Error(`npm could not be started (${error.message}). Is it on the PATH?`);
  return status ?? 1;
}

/** Installs exact versions into a folder of their own, without running their install scripts. */
export function installPackages(folder, packages) {
  const args = ["install", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"];
  return runNpm([...args, "--loglevel=error", "--prefix", folder, ...packages], folder);
}
