// The AI SDK in version 7, which needs Node 22, beside version 6 of the development dependencies. It stays in .cache/ai7.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { installPackages } from "./npm.mjs";

const VERSION = "7.0.170";

const root = fileURLToPath(new URL("..", import.meta.url));
const cache = join(root, ".cache", "ai7");
const folder = join(cache, "node_modules", "ai");

/** Installs it unless it is there, and gives the folder of the package. */
export function openAi7() {
  if (installedVersion() === VERSION) return folder;
  mkdirSync(cache, { recursive: true });
  writeFileSync(join(cache, "package.json"), '{ "private": true }\n');
  const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const status = installPackages(cache, [`ai@${VERSION}`, `zod@${devDependencies.zod}`]);
  if (status !== 0 || installedVersion() !== VERSION) throw new Error(`Could not install ai@${VERSION}.`);
  return folder;
}

function installedVersion() {
  const manifest = join(folder, "package.json");
  return existsSync(manifest) ? JSON.parse(readFileSync(manifest, "utf8")).version : null;
}

/** A TypeScript project of what uses the SDK, in which `ai` is version 7. */
export function projectOfAi7() {
  const { compilerOptions } = JSON.parse(readFileSync(join(root, "tsconfig.json"), "utf8"));
  const paths = Object.entries(compilerOptions.paths).map(([name, [path]]) => [name, [join(root, path)]]);
  const project = {
    extends: join(root, "tsconfig.json"),
    compilerOptions: {
      paths: {
        ...Object.fromEntries(paths),
        ai: [join(folder, "dist", "index.d.ts")],
        "ai/test": [join(folder, "dist", "test", "index.d.ts")],
      },
    },
    include: [
      join(root, "src", "ai"),
      join(root, "test", "types", "ai.ts"),
      join(root, "examples", "08-research-agent"),
    ],
    exclude: [],
  };
  writeFileSync(join(cache, "tsconfig.json"), `${JSON.stringify(project, null, 2)}\n`);
  return join(cache, "tsconfig.json");
}
