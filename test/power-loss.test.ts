// Power cuts at a few moments of a recorded run; `npm run powerloss` tries many.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { countColdStarts } from "./cold-start.ts";

const SCRIPT = fileURLToPath(new URL("../scripts/power-loss.mjs", import.meta.url));
const canTrace = spawnSync("strace", ["-f", "--seccomp-bpf", "-e", "trace=fsync", "true"]).status === 0;

interface Row {
  readonly durability: "power" | "process";
  readonly cuts: number;
  readonly lost: number;
  readonly corrupt: number;
  readonly repeated: number;
  readonly runs: number;
  readonly right: number;
  readonly replayed: number;
}

function cut(...options: string[]): { readonly rows: Row[]; readonly story: string; readonly status: number | null } {
  const args = [SCRIPT, "--json", "--seed", "3", ...options];
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect(stdout, stderr).not.toBe("");
  return { rows: (JSON.parse(stdout) as { rows: Row[] }).rows, story: stderr, status };
}

// Needs strace, and a kernel that allows it.
it.skipIf(!canTrace)(
  "I1 I4 I5 I6 a power cut takes nothing that was acknowledged, unless that was asked for, and never spoils the file or a run",
  () => {
    const { rows, story, status } = cut("--cuts", "4", "--rounds", "2", "--cold-start");
    for (const { replayed } of rows) countColdStarts(replayed);
    expect(rows.length).toBe(6);
    for (const row of rows) {
      expect(row, story).toMatchObject({ cuts: 4, corrupt: 0, right: row.runs });
      expect(row.replayed, story).toBeGreaterThanOrEqual(row.runs);
      if (row.durability === "power") expect(row, story).toMatchObject({ lost: 0, repeated: 0 });
    }
    // Without a sync for each commit there is something to lose: the comparison sees it.
    expect(rows.filter(({ durability }) => durability === "process").some(({ lost }) => lost > 0)).toBe(true);
    expect(status).toBe(0);
  },
  120_000,
);

// Needs strace, and a kernel that allows it.
it.skipIf(!canTrace)(
  "I1 a disk that only says it has synced is found out by the same cuts",
  () => {
    const { rows, status } = cut("--cuts", "2", "--rounds", "1", "--durability", "power", "--lying-disk");
    expect(rows.some(({ lost }) => lost > 0)).toBe(true);
    expect(status).toBe(1);
  },
  120_000,
);
