// The options of a script. Its help is the comment at its top: one text for whoever reads it and whoever calls it.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

/** Gives the values; `--help`, and an option that there is not, end the process with that text. */
export function readOptions(script, options) {
  try {
    const { values } = parseArgs({ options: { ...options, help: { type: "boolean", default: false } } });
    if (!values.help) return values;
    console.log(commentOf(script));
    process.exit(0);
  } catch (error) {
    console.error(`${error.message}\n\n${commentOf(script)}`);
    process.exit(2);
  }
}

function commentOf(script) {
  const lines = readFileSync(fileURLToPath(script), "utf8").split("\n");
  const end = lines.findIndex((line) => !line.startsWith("//"));
  return lines
    .slice(0, end)
    .map((line) => line.replace(/^\/\/ ?/, ""))
    .join("\n");
}
