// The sources, joined for tests
// Module by module, vitest takes a second or two to load the engine into each process, and every call from one of its modules into another goes through
// a getter. So the sources are joined into a few files that Node loads by itself, with one more for each module that has its exports: whatever a
// test imports of `src`, there is one copy of it. What replaces modules needs them one by one (`SOURCES` in vitest.config.ts).
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import type { Plugin } from "vite";

const SRC = fileURLToPath(new URL("../src", import.meta.url));
/** As far below the root as `dist`: what is found from there is found from here. */
const JOINED = fileURLToPath(new URL("../.joined", import.meta.url));
const STAMP = "stamp";

/** What few tests need, and what other packages are loaded for, is apart; so is what knows the engine's lines in a stack by its own name. */
const GROUPS = [
  { name: "call-site", test: /[/\\]core[/\\]call-site\.ts$/ },
  { name: "ai", test: /[/\\]src[/\\](ai|otel)[/\\]/ },
  { name: "commands", test: /[/\\]src[/\\](cli|server)[/\\]/ },
  { name: "engine", test: /[/\\]src[/\\]/ },
];

/** Joins the sources, unless they are as they were the last time; the plugin leads every import of them there. */
export async function joinedSources(): Promise<Plugin> {
  const modules = sourceModules();
  const stamp = stampOf(modules);
  const known = join(JOINED, STAMP);
  if (!existsSync(known) || readFileSync(known, "utf8") !== stamp) await joinModules(modules, stamp);
  const joined = new Map([...modules.keys()].map((name) => [join(SRC, `${name}.ts`), join(JOINED, `${name}.js`)]));
  return {
    name: "joined-sources",
    enforce: "pre",
    async resolveId(source, importer) {
      const found = await this.resolve(source, importer, { skipSelf: true });
      const id = joined.get(found?.id ?? "");
      return id === undefined ? found : { id, external: true };
    },
  };
}

/** Texts by name, of modules that export a value. Those without do something when they are loaded, or are types and nothing else. */
function sourceModules(): Map<string, string> {
  const names = readdirSync(SRC, { recursive: true, encoding: "utf8" });
  const files = names.filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"));
  const texts = files.map((name) => [name.slice(0, -".ts".length), readFileSync(join(SRC, name), "utf8")] as const);
  return new Map(texts.filter(([, text]) => /^export (?!type |interface )/m.test(text)));
}

function stampOf(modules: ReadonlyMap<string, string>): string {
  const hash = createHash("sha256").update(readFileSync(fileURLToPath(import.meta.url)));
  for (const [name, text] of modules) hash.update(`${name}\0${text}\0`);
  return hash.digest("hex");
}

async function joinModules(modules: ReadonlyMap<string, string>, stamp: string): Promise<void> {
  // Made beside it and put in its place at once: another run of tests may be loading what is there.
  const draft = `${JOINED}-${process.pid}`;
  const input = Object.fromEntries([...modules.keys()].map((name) => [name, join(SRC, `${name}.ts`)]));
  const bundle = await rolldown({ input, platform: "node", external: /^[^./]/ });
  const chunkFileNames = "shared/[name].js";
  await bundle.write({ dir: draft, format: "esm", chunkFileNames, codeSplitting: { groups: GROUPS } });
  await bundle.close();
  writeFileSync(join(draft, STAMP), stamp);
  rmSync(JOINED, { recursive: true, force: true });
  renameSync(draft, JOINED);
}
