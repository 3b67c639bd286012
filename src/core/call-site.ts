/** The engine's own lines may be more than the ten that a stack has by itself. */
const MOST_LINES = 50;

/** The line of user code that is calling into the engine, from a fresh stack: "src/checkout.ts:12:9". */
export function callSite(): string {
  const lines = freshStack();
  const own = lines.findIndex((line) => line.includes("call-site"));
  const folder = engineFolder(lines[own] ?? "");
  const line = lines.find((one) => !one.includes("node:") && (folder === null || !one.includes(folder)));
  return line?.replace(/^\s*at (async )?/, "").trim() ?? "an unknown line";
}

function freshStack(): string[] {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = MOST_LINES;
  const { stack = "" } = new Error();
  Error.stackTraceLimit = stackTraceLimit;
  return stack.split("\n").slice(1);
}

/** The folder that holds this package's code, taken from this file's own line in the stack. */
function engineFolder(line: string): string | null {
  const match = /\(?((?:file:\/\/)?[^()\s]*)(?:core|shared)[/\\]call-site\.[jt]s/.exec(line);
  return match?.[1] ? match[1].replace("file://", "") : null;
}
