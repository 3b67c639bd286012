// Runs `npm test` on Node 24, whatever Node runs this script.

import { spawnSync } from "node:child_process";
import { delimiter } from "node:path";
import { fileURLToPath } from "node:url";
import { openNode24 } from "./node24.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const npm = process.env.npm_execpath;

if (!npm) {
  console.error("Run this script by npm: npm run test:node24");
  process.exit(1);
}
const { node, bin } = openNode24();
const { status } = spawnSync(node, [npm, "test", ...process.argv.slice(2)], {
  cwd: root,
  stdio: "inherit",
  env: { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}`, npm_node_execpath: node, NODE: node },
});
process.exitCode = status ?? 1;
