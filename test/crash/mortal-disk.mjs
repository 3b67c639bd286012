// The disk of lives that end in one process, see kill-point.mjs. Whoever has come to the point neither changes nor reads anything there any more: an access
// that would be waited for is never over, so whoever made it does not go on, nor cleans up behind a failure.
import fs from "node:fs";
import promises from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { isHalted } from "./kill-point.mjs";

const WAITED_FOR = ["mkdir", "open", "readdir", "readFile", "readlink", "realpath", "rename", "rm", "stat"];
const AT_ONCE = [
  "mkdirSync",
  "openSync",
  "renameSync",
  "rmdirSync",
  "rmSync",
  "unlinkSync",
  "writeFileSync",
  "writeSync",
];

for (const name of WAITED_FOR) {
  const access = promises[name];
  promises[name] = (...args) => (isHalted() ? new Promise(() => {}) : access(...args));
}
for (const name of AT_ONCE) {
  const access = fs[name];
  fs[name] = (...args) => {
    if (isHalted()) throw new Error("This life has come to its point.");
    return access(...args);
  };
}
syncBuiltinESMExports();
