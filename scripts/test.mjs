// Runs the tests once. The last line of output is the plain line `N passed, N failed`, with `, N skipped` if any were.
// Arguments are passed on to vitest: `node scripts/test.mjs test/tidy.test.ts -t layers`.

import { parseCLI, startVitest } from "vitest/node";
import { countTests, plainLine } from "./plain-line.mjs";

const { filter, options } = parseCLI(["vitest", "run", ...process.argv.slice(2)]);
const vitest = await startVitest("test", filter, { ...options, run: true, watch: false });

const unhandled = vitest.state.getUnhandledErrors();
const counts = countTests(vitest.state.getTestModules(), unhandled);
// Those that came once vitest had reported are told by nobody else.
for (const error of unhandled) console.error("Nobody handled:", error);
await vitest.close();

const failed = counts.failed > 0 || Boolean(process.exitCode);
process.stdout.write(`\n${plainLine(counts)}\n`, () => process.exit(failed ? 1 : 0));
