// The ledger of the test workflows, of the same form as that of the examples.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { reach } from "./kill-point.mjs";

/** Books an effect; one whose key is known changes nothing, as with any service that knows idempotency keys. */
export function book(action, { key, attempt }, { about = action, what } = {}) {
  const did = !known().some((line) => line.action === action && line.key === key);
  const line = { action, about, key, attempt, did, what, pid: process.pid };
  appendFileSync(process.env.LEDGER, `${JSON.stringify(line)}\n`);
  reach("effect");
}

function known() {
  if (!existsSync(process.env.LEDGER)) return [];
  const lines = readFileSync(process.env.LEDGER, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line));
}
