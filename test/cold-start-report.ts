// Prints, once all test files are over, how many runs were replayed from a cold start, and which tests have opted out.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

interface Line {
  readonly file: string;
  readonly ms: number;
  readonly checked: number;
  readonly open: number;
  /** Those of both that other processes have made. */
  readonly ofChildren: number;
  readonly passedOver: number;
  readonly unreadable: number;
  readonly withoutCode: number;
  readonly optedOut: number;
  readonly reasons: readonly (readonly [test: string, reason: string])[];
}

export default function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), "pawl-cold-start-"));
  const path = join(folder, "report.jsonl");
  process.env["PAWL_COLD_START_REPORT"] = path;
  return () => {
    if (existsSync(path)) print(readFileSync(path, "utf8").trim().split("\n").map(parse));
    rmSync(folder, { recursive: true, force: true });
  };
}

function parse(line: string): Line {
  return JSON.parse(line) as Line;
}

function print(lines: readonly Line[]): void {
  const sum = (field: Exclude<keyof Line, "file" | "reasons">) => lines.reduce((total, line) => total + line[field], 0);
  const made = `${sum("checked")} ended and ${sum("open")} open runs, ${sum("ofChildren")} of them made by child processes`;
  const counts = `${made}, read and replayed in ${(sum("ms") / 1000).toFixed(1)} s`;
  const others = `${sum("optedOut")} opted out, ${sum("passedOver")} passed over (more of the same, or too long), ${sum("unreadable")} unreadable, ${sum("withoutCode")} in files without their code`;
  process.stdout.write(`\nCold start (I5): ${counts}; ${others}.\n`);
  for (const { file, reasons } of lines) {
    for (const reason of new Set(reasons.map(([, why]) => why))) {
      const tests = reasons.filter(([, why]) => why === reason).length;
      process.stdout.write(`  opted out: ${tests} of ${basename(file)}: ${reason}\n`);
    }
  }
}
