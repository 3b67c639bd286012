import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import {
  changeIncidents,
  INCIDENTS_FILE,
  type Incident,
  nextIncidentId,
  readIncidents,
} from "../../src/observe/incidents.ts";

const FACTS: Omit<Incident, "id"> = {
  title: "refunded twice",
  run: "r",
  workflow: "refund",
  status: "draft",
  openedAt: "2026-11-17T00:00:00.000Z",
  owner: null,
  expires: null,
  case: null,
  fingerprint: "f",
  recurrenceOf: null,
};

it("X-30 a change of incidents waits for the one before it, and goes on from what that has left", async () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-incidents-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const lock = join(folder, `${INCIDENTS_FILE}.lock`);
  writeFileSync(lock, "");
  const changing = changeIncidents(folder, (incidents) => {
    const answer = { ...FACTS, id: nextIncidentId(incidents) };
    return { incidents: [...incidents, answer], answer };
  });
  await new Promise((resolve) => setImmediate(resolve));
  const other = { ...FACTS, id: "incident-7" };
  writeFileSync(join(folder, INCIDENTS_FILE), JSON.stringify({ incidents: [other] }));
  rmSync(lock);
  expect((await changing).id).toBe("incident-8");
  expect(readIncidents(folder).map(({ id }) => id)).toEqual(["incident-7", "incident-8"]);
  expect(existsSync(lock)).toBe(false);
});
