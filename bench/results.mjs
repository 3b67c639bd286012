// RESULTS.md holds what several benches have found, each in a section of its own that the others leave alone.
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const FILE = new URL("./RESULTS.md", import.meta.url);
const ORDER = ["engine", "postgres", "peers"];

/** Replaces one section of RESULTS.md. */
export function writeSection(name, text) {
  const sections = readSections();
  sections.set(name, text.trim());
  const names = [...sections.keys()].toSorted((a, b) => ORDER.indexOf(a) - ORDER.indexOf(b));
  const parts = names.map((each) => `<!-- ${each} -->\n\n${sections.get(each)}\n`);
  writeFileSync(FILE, parts.join("\n"));
}

function readSections() {
  if (!existsSync(FILE)) return new Map();
  const [, ...parts] = readFileSync(FILE, "utf8").split(/^<!-- (\w+) -->$/m);
  return new Map(parts.flatMap((name, i) => (i % 2 === 0 ? [[name, parts[i + 1].trim()]] : [])));
}
