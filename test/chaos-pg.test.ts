// A short trial of `npm run chaos:pg`: a small fleet on a server of its own, killed, frozen and crashed, and everything judged.

import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { Program } from "./child.ts";

const SCRIPT = fileURLToPath(new URL("../scripts/chaos-pg.mjs", import.meta.url));

interface Report {
  readonly injected: Readonly<Record<string, number>>;
  readonly reached: Readonly<Record<string, number>>;
  readonly judged: Readonly<Record<string, number>>;
  readonly figures: { readonly started: number; readonly ended: number };
  readonly violations: readonly object[];
}

async function chaos(options: string): Promise<{ code: number | null; report: Report }> {
  const program = new Program([process.execPath, SCRIPT, "--json", ...options.split(" ")]);
  const { code } = await program.exited;
  const json = program.lines.findLast((line) => line.startsWith("{"));
  if (json === undefined) throw new Error(program.report());
  return { code, report: JSON.parse(json) as Report };
}

// A server that somebody else has given is not ours to stop.
it.skipIf(process.env["TEST_PG_URL"] !== undefined)(
  "B1 B16 B20 B32 I1 I2 I3 I4 I6 I8 I9 I10 I17 P15 P17 P20 P37 workers are killed and frozen and the server is stopped at once, with runs under way: all end rightly, nothing recorded runs again, nothing acknowledged is lost",
  async () => {
    const { code, report } = await chaos("--runs 150 --workers 2 --kills 2 --freezes 1 --crashes 1");
    expect(report.violations).toEqual([]);
    expect(code).toBe(0);
    expect(report.injected).toEqual({
      "SIGKILL of a worker": 2,
      "SIGSTOP of a worker for 1.5 to 3 leases": 1,
      "immediate stop and start of the server": 1,
    });
    expect(report.figures.ended).toBe(report.figures.started);
    expect(report.figures.started).toBeGreaterThan(150);
    expect(report.reached["looks for orphans"]).toBeGreaterThan(0);
    expect(report.reached["SIGKILLs that cut off steps"]).toBeGreaterThan(0);
    expect(report.judged["I6 P13 a body starts once for each mark in the journal, never without"]).toBeGreaterThan(
      1500,
    );
  },
  120_000,
);
