import { createRequire } from "node:module";
import { platform } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { withoutColdStart } from "./cold-start.ts";
import { begin, json, pawl, project } from "./fixtures/cli/command.ts";
import { seed } from "./fixtures/cli/seed.ts";

interface Diagnosis {
  readonly isHealthy: boolean;
  readonly findings: readonly { readonly severity: string; readonly about: string; readonly message: string }[];
  readonly journals: { readonly runs: number; readonly entries: number };
}

interface Sqlite {
  readonly DatabaseSync: new (path: string) => { exec(sql: string): void; close(): void };
}

/** Edits the store behind Pawl's back. */
function tamper(folder: string, sql: string): void {
  withoutColdStart("it damages a store");
  const { DatabaseSync } = createRequire(import.meta.url)("@photostructure/sqlite") as Sqlite;
  const db = new DatabaseSync(join(folder, ".pawl", "pawl.db"));
  db.exec(sql);
  db.close();
}

async function diagnose(folder: string): Promise<{ readonly code: number | null; readonly diagnosis: Diagnosis }> {
  const { code, stdout } = await pawl(folder, "doctor", "--json");
  return { code, diagnosis: JSON.parse(stdout) as Diagnosis };
}

describe("pawl doctor", () => {
  it("S2-66 finds a healthy store healthy", async () => {
    const folder = project();
    await seed(folder, { o1: [] });
    const { code, stdout } = await pawl(folder, "doctor");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^store +sqlite 3\.\d+\.\d+, schema \d+, \.pawl\/pawl\.db$/m);
    expect(stdout).toMatch(/^journals +1 run, 5 entries checked: all checksums match$/m);
    expect(stdout).toMatch(/Healthy\.\n$/);
    expect(await json<Diagnosis>(folder, "doctor", "--all")).toMatchObject({
      isHealthy: true,
      findings: [],
      journals: { runs: 1, entries: 5 },
    });
  });

  it.each([
    [
      "an edited value",
      "update journal set data = '4' where seq = 3",
      /Journal entry 3 \(step\.completed fetch\) of run o1 does not match its checksum/,
    ],
    ["a missing entry", "delete from journal where seq = 2", /Run o1 has no journal entry 2/],
    [
      "a missing end",
      "delete from journal where seq = 4",
      /The journal of run o1 ends after 4 entries, but 5 were acknowledged/,
    ],
  ])("E-22 names the run and the entry of %s, and ends with 1", async (_, sql, message) => {
    const folder = project();
    await seed(folder, { o1: [] });
    tamper(folder, sql);
    const { code, stdout } = await pawl(folder, "doctor");
    expect(code).toBe(1);
    expect(stdout).toMatch(message);
    expect(stdout).toMatch(/1 fault found\.\n$/);
  });

  it("tells of runs that no live worker can take, and what to start", async () => {
    const folder = project();
    await seed(folder, { o1: ["approve"] });
    const { code, diagnosis } = await diagnose(folder);
    expect(code).toBe(1);
    expect(diagnosis.findings).toMatchObject([
      {
        severity: "fault",
        about: "stranded",
        message: expect.stringMatching(/1 unfinished run of order 1\.0\.0.*later patch of 1\.0/),
      },
    ]);
    const worker = begin(folder, ["worker", "shop.ts"]);
    await worker.line(/^Working on/);
    expect(await diagnose(folder)).toMatchObject({ code: 0, diagnosis: { isHealthy: true, findings: [] } });
  });

  it("tells of a worker that has died", async () => {
    const folder = project();
    const worker = begin(folder, ["worker", "shop.ts"]);
    await worker.line(/^Working on/);
    worker.kill("SIGKILL");
    await worker.ended;
    const { code, diagnosis } = await diagnose(folder);
    expect(code).toBe(0);
    expect(diagnosis.findings).toMatchObject([
      { severity: "warning", message: expect.stringContaining(`pid ${worker.pid}) has died`) },
    ]);
  });

  // Only Linux tells whether a process is stopped.
  it.runIf(platform() === "linux")("names a stopped process that holds a run", async () => {
    const folder = project();
    const worker = begin(folder, ["run", "shop.ts", "order", '{"id":"o1","plan":["hang"]}', "--id", "o1"]);
    await worker.line(/▸ hang/);
    worker.kill("SIGSTOP");
    const { code, diagnosis } = await diagnose(folder);
    expect(code).toBe(1);
    expect(diagnosis.findings[0]).toMatchObject({
      about: "workers",
      message: expect.stringContaining(`kill -CONT ${worker.pid}`),
    });
    expect((await pawl(folder, "why", "o1")).stdout).toContain("is held by a process that is stopped");
  });
});
