// Canaries: the examples of the repository with values in them that must not be found, wherever somebody looks who has no key.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crashEverywhere } from "pawl/testing";
import { afterAll, beforeAll, beforeEach, expect, inject, it, vi } from "vitest";
import { checkout } from "../../examples/01-checkout/workflow.ts";
import { invoices } from "../../examples/02-batch/workflow.ts";
import { report as reporting } from "../../examples/03-report/workflow.ts";
import { refund } from "../../examples/04-refund/workflow.ts";
import { patientReport } from "../../examples/05-patient-report/workflow.ts";
import { bugfix } from "../../examples/06-bugfix/workflow.ts";
import { planner } from "../../examples/07-planning-agent/workflow.ts";
import { research } from "../../examples/08-research-agent/workflow.ts";
import { wayBack } from "../../examples/fakes.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import { createApp } from "../../src/server/app.ts";
import { newCredential } from "../../src/server/credentials.ts";
import { loadDriver } from "../../src/stores/postgres/driver.ts";
import { exportRun } from "../../src/testing/index.ts";
import { DAY, HOUR, openWorld, type StoreKind, type World } from "../behaviour/harness.ts";
import { Repository } from "../guards/repository.ts";
import { ENCRYPTION } from "./keys.ts";

/** In inputs, signals, reasons and names; what the fakes answer is made of them. */
const CANARY = "canary7f3e91c2";
/** What fakes and models say by themselves. */
const SAID = ["it crashes on start", "the smallest change", "Thank you"];
const CARD = "4111111111111111";

const folder = mkdtempSync(join(tmpdir(), "pawl-canaries-"));
const { travel } = wayBack;
let ledgers = 0;

beforeAll(() => {
  wayBack.travel = async () => {};
});

beforeEach(() => {
  vi.stubEnv("LEDGER", join(folder, `${++ledgers}.jsonl`));
});

afterAll(() => {
  wayBack.travel = travel;
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

const WORKFLOWS = [checkout, invoices, reporting, refund, patientReport, bugfix, planner, research];

/** All eight, each to its end; `pawl` has the keys. */
async function playAll(world: World, pawl: Pawl): Promise<string[]> {
  const to = `${CANARY}@example.org`;
  const named = { key: CANARY, tags: [CANARY] };
  const runs = [
    await pawl.start(checkout, { id: `order-${CANARY}`, cents: 4200, email: to }, named),
    await pawl.start(invoices, { month: CANARY, customers: 3 }),
    await pawl.start(reporting, { topic: CANARY, to }),
    await pawl.start(refund, { order: CANARY, cents: 4200, email: to, agent: "bot-1" }),
    await pawl.start(patientReport, { id: CANARY, physician: "dr-bell" }),
    await pawl.start(bugfix, { jira_key: "AE-1", repository: new Repository().cwd }),
    await pawl.start(planner, { topic: CANARY }),
    await pawl.start(research, `What is ${CANARY}, and who pays with ${CARD}?`),
  ];
  // Git takes its time, whatever the clock says.
  await runs[5]?.result();
  await world.settle();
  for (let days = 0; days < 14; days++) {
    for (const { id } of (await pawl.approvals.list()).approvals) await decide(pawl, id);
    for (const { id } of runs)
      if ((await pawl.get(id).status()).waits.some(({ name }) => name === "review"))
        await pawl.signal(id, "review", { by: CANARY, ok: true }, { id: "review" });
    await world.advance(days < 2 ? HOUR : DAY);
    const states = await Promise.all(runs.map(async ({ id }) => (await pawl.get(id).status()).status));
    if (states.every((status) => status === "succeeded")) break;
  }
  return Promise.all(
    runs.map(async ({ id }) => `${(await pawl.get(id).status()).workflow} ${(await pawl.get(id).status()).status}`),
  );
}

/** By whoever may; nobody may yet, if it is not their turn. */
async function decide(pawl: Pawl, id: string): Promise<void> {
  const roles = ["support-lead", "editor", "department-head", "physician"];
  for (const by of ["dr-bell", "grace"]) {
    const decided = await pawl.approvals.decide(id, { decision: "approved", by, roles, reason: CANARY }).then(
      () => true,
      () => false,
    );
    if (decided) return;
  }
}

/** Every byte that the store has left. */
async function bytesOf(kind: StoreKind, world: World): Promise<string> {
  if (kind === "postgres") return tablesOf();
  const files = readdirSync(world.folder ?? "", { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  return files.map((one) => `${one.name}\n${readFileSync(join(one.parentPath, one.name), "latin1")}`).join("\n");
}

/** All columns of all tables of all schemas that this process has made. */
async function tablesOf(): Promise<string> {
  const client = (await loadDriver()).client({ connectionString: inject("postgresUrl") });
  await client.connect();
  const texts: string[] = [];
  const ask = async (text: string) => (await client.query({ text })).rows;
  const tables = await ask(
    `select table_schema as schema, table_name as name from information_schema.tables where table_schema like '${inject("postgresSchemas")}${process.pid}%'`,
  );
  for (const { schema, name } of tables)
    for (const { line } of await ask(`select t::text as line from "${schema}"."${name}" t`)) texts.push(String(line));
  await client.end();
  return texts.join("\n");
}

/** What somebody learns who can open the store and has no key. */
async function toldWithoutKey(world: World): Promise<string> {
  const reader = await world.open([]);
  const { runs } = await reader.list({ limit: 100 });
  const told: unknown[] = [runs];
  const say = (error: unknown) => void told.push(String(error), error);
  for (const { id } of runs) {
    const run = reader.get(id);
    await run.status().then((status) => told.push(status), say);
    await run.journal().then((journal) => told.push(journal), say);
    await run.document().then((document) => told.push(document), say);
    await exportRun(reader, id).then((exported) => told.push(exported), say);
  }
  expect(runs.length).toBeGreaterThanOrEqual(8);
  return JSON.stringify(told);
}

const HOST = "127.0.0.1:7295";
const VIEWS = ["", "/timeline", "/journal", "/effects", "/document", "/why", "/export"];

/** Everything that the API answers about the runs of a store to somebody who may see all of it. */
async function answersOf(pawl: Pawl): Promise<string> {
  const { token, credential } = newCredential("admin", ["admin"]);
  const app = createApp({ web: null, pawl, credentials: [credential] });
  const ask = async (path: string) => {
    const headers = { host: HOST, authorization: `Bearer ${token}` };
    return (await app.fetch(new Request(`http://${HOST}${path}`, { headers }))).text();
  };
  const runs = await ask("/api/runs?limit=100");
  const ids = (JSON.parse(runs) as { runs: { id: string }[] }).runs.map(({ id }) => id);
  expect(ids.length).toBeGreaterThanOrEqual(8);
  const paths = [
    ...["approvals", "alerts", "metrics", "audit", "workers", "workflows"].map((name) => `/api/${name}`),
    "/metrics",
    ...ids.flatMap((id) => VIEWS.map((view) => `/api/runs/${id}${view}`)),
  ];
  const answers: string[] = [runs];
  for (const path of paths) answers.push(await ask(path));
  await app.stop();
  return answers.join("\n");
}

it.each(["sqlite", "postgres", "file"] as const)(
  "Q13 Q14 I25 examples 01 to 08 leave no canary on %s: in no file, log, column or answer of the API, nor in what is told to whoever has no key",
  async (kind) => {
    const world = await openWorld(kind);
    const encryption = { ...ENCRYPTION, names: "k1" };
    const pawl = await world.open(WORKFLOWS, { encryption, redact: { patterns: ["card"] } });
    const ends = await playAll(world, pawl);
    expect(ends).toEqual(WORKFLOWS.map(({ name }) => `${name} succeeded`));
    // With the key, a card number is gone all the same.
    expect(
      JSON.stringify(await Promise.all((await pawl.list({ limit: 100 })).runs.map(({ id }) => pawl.get(id).journal()))),
    ).not.toContain(CARD);
    expect(await answersOf(pawl)).not.toContain(CARD);
    const texts = [
      await bytesOf(kind, world),
      await toldWithoutKey(world),
      await answersOf(await world.open([])),
      JSON.stringify(world.lines),
    ];
    expect(texts[0]?.length).toBeGreaterThan(10_000);
    for (const text of texts)
      for (const canary of [CANARY, Buffer.from(CANARY).toString("base64").slice(0, 16), CARD, ...SAID])
        expect(
          text.includes(canary),
          `${canary} in ${text.slice(Math.max(0, text.indexOf(canary) - 200), text.indexOf(canary) + 100)}`,
        ).toBe(false);
  },
);

it("Q14 I6 example 01 survives every point in all modes while everything is sealed", async () => {
  const order = { id: "order-1", cents: 4200, email: "ann@example.com" };
  const fresh = () => void vi.stubEnv("LEDGER", join(folder, `${++ledgers}.jsonl`));
  const report = await crashEverywhere(checkout, order, { encryption: ENCRYPTION, fresh });
  expect(report.toString()).toMatch(/^ok: /);
  expect(report.outcome).toMatch(/^succeeded/);
  expect(report.isComplete).toBe(true);
});
