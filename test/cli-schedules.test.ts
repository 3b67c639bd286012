import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Pawl } from "../src/client/pawl.ts";
import { errorOf, json, pawl, project } from "./fixtures/cli/command.ts";

/** A project whose store has two schedules. */
async function withSchedules(): Promise<string> {
  const folder = project();
  const client = await Pawl.open(join(folder, ".pawl", "pawl.db"));
  await client.schedule("nightly", "order", { cron: "0 2 * * *", zone: "Europe/Berlin", overlap: "skip" });
  await client.schedule("often", "order", { every: "90 seconds", input: { id: "o1" } });
  await client.close();
  return folder;
}

describe("pawl schedules", () => {
  it("X-17 X-22 lists schedules with their next slot, for people and for programs", async () => {
    const folder = await withSchedules();
    const { code, stdout } = await pawl(folder, "schedules");
    const [header, nightly, often] = stdout.split("\n");
    expect([code, header]).toEqual([0, expect.stringMatching(/^SCHEDULE +WORKFLOW +WHEN +NEXT/)]);
    expect(nightly).toMatch(/^nightly +order +0 2 \* \* \* Europe\/Berlin +.*, in /);
    expect(often).toMatch(/^often +order +every 1m 30s +.*, in 1m/);
    const { schedules } = await json<{ schedules: { name: string; next: string }[] }>(folder, "schedules", "often");
    expect(schedules).toMatchObject([{ name: "often", everyMs: 90_000, input: { id: "o1" }, skipped: 0 }]);
    expect(new Date(schedules[0]?.next ?? "").getTime()).toBeGreaterThan(0);
  });

  it("X-17 pauses, resumes and removes one, and says so", async () => {
    const folder = await withSchedules();
    expect((await pawl(folder, "schedules", "often", "--pause")).stdout).toBe('Schedule "often" is paused.\n');
    expect((await pawl(folder, "schedules", "often")).stdout).toContain("paused");
    expect(await json(folder, "schedules", "often", "--resume")).toEqual({ schedule: "often", done: "resume" });
    expect((await pawl(folder, "schedules", "often", "--remove")).code).toBe(0);
    const gone = await pawl(folder, "schedules", "often", "--remove", "--json");
    expect([gone.code, errorOf(gone).message]).toEqual([2, expect.stringContaining('no schedule "often"')]);
    expect((await pawl(folder, "schedules", "--pause")).code).toBe(2);
  });
});
