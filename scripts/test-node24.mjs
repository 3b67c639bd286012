// Runs `npm test` on Node 24, whatever Node runs this script, and the tests of pawl/ai again with version 7 of the AI SDK, which needs such a
// Node. Arguments go to the first: `npm run test:node24 -- test/ai.test.ts`. With --ai7 first, only the second is run.

import { spawnSync } from "node:child_process";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openAi7, projectOfAi7 } from "./ai7.mjs";
import { openNode24 } from "./node24.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const npm = process.env.npm_execpath;

if (!npm) {
  console.error("Run this script by npm: npm run test:node24");
  process.exit(1);
}
const { node, bin } = openNode24();
const [first, ...rest] = process.argv.slice(2);
const isAi7Only = first === "--ai7";

const status = isAi7Only ? 0 : run([npm, "test", ...process.argv.slice(2)]);
process.exitCode = status || withAi7(isAi7Only ? rest : []);

function withAi7(args) {
  const env = { PAWL_TEST_AI: openAi7() };
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const filter = args.length > 0 ? args : ["test/ai", "src/ai"];
  return run([tsc, "-p", projectOfAi7()], env) || run([join(root, "scripts", "test.mjs"), ...filter], env);
}

function run(args, env = {}) {
  const PATH = `${bin}${delimiter}${process.env.PATH}`;
  const { status } = spawnSync(node, args, {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, PATH, npm_node_execpath: node, NODE: node, ...env },
  });
  return status ?? 1;
}
