// PATCH, MINOR and MAJOR deployed in real processes on one SQLite file: the process with the old code is killed while one run of each workflow waits and
// another is inside a step, and one with the new code comes up. Every body and step that runs is a line in the ledger, with the version of its code.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { Pawl } from "../src/client/pawl.ts";
import { built, type Child, startChild } from "./child.ts";

const KINDS = ["patch", "minor", "major"] as const;
const SITUATIONS = ["waits", "works"] as const;

/** A worker with these versions, by workflow. The step of a run that "works" never ends in its first attempt. */
function startWorker(url: string, ledger: string, versions: Readonly<Record<string, readonly string[]>>): Child {
  return startChild(`
    import { appendFileSync } from "node:fs";
    import { Pawl, workflow } from "${built("index.js")}";
    const note = (...words) => appendFileSync(${JSON.stringify(ledger)}, words.join(" ") + "\\n");
    const make = (name, version) => workflow({ name, version }, async (ctx, situation) => {
      note(ctx.run.id, version, "body");
      await ctx.step("work", ({ attempt }) => {
        note(ctx.run.id, version, "step");
        if (situation === "works" && attempt === 1) return new Promise(() => say("hangs"));
      });
      await ctx.waitFor("go");
      return version;
    });
    const versions = ${JSON.stringify(versions)};
    const workflows = Object.entries(versions).flatMap(([name, all]) => all.map((version) => make(name, version)));
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    const pawl = await Pawl.open(${JSON.stringify(url)}, { workflows, logger, versionGrace: 0, poll: "50ms" });
    say("up");
    for (let line = await heard(); line !== "stop"; line = await heard()) {
      const [what, name, situation] = line.split(" ");
      if (what === "start") await pawl.start(name, situation, { id: name + "-" + situation });
      if (what === "new") await pawl.start(name, "waits", { id: name + "-new" });
      say("done");
    }
    await pawl.close({ drain: 0 });`);
}

async function told(child: Child, line: string): Promise<void> {
  child.tell(line);
  while ((await child.line()) !== "done");
}

it("D-7 S2-61 S0-44 S0-45 S0-46 PATCH goes on, MINOR finishes on its old version, MAJOR asks: during a wait and during a step, no wrong code is called", async () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-deploy-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [url, ledger] = [join(folder, "pawl.db"), join(folder, "ledger")];
  writeFileSync(ledger, "");
  const before = startWorker(url, ledger, { patch: ["1.3.0"], minor: ["1.3.0"], major: ["1.3.0"] });
  expect(await before.line()).toBe("up");
  for (const kind of KINDS) for (const situation of SITUATIONS) await told(before, `start ${kind} ${situation}`);
  const called = () => readFileSync(ledger, "utf8").trim().split("\n");
  const client = await Pawl.open(url);
  onTestFinished(() => client.close());
  // All are where they are to be killed: half of them wait, half of them hang in their step.
  await expect.poll(() => called().filter((line) => line.endsWith("step")).length).toBe(6);
  for (const kind of KINDS)
    await expect.poll(async () => (await client.get(`${kind}-waits`).status()).state).toBe("waiting");
  await before.kill();
  const old = called().length;

  const after = startWorker(url, ledger, { patch: ["1.3.1"], minor: ["1.3.0", "1.4.0"], major: ["2.0.0"] });
  expect(await after.line()).toBe("up");
  await told(after, "new minor");
  for (const kind of KINDS) for (const situation of SITUATIONS) await client.signal(`${kind}-${situation}`, "go");
  await client.signal("minor-new", "go");
  const versions = await Promise.all(
    ["patch-waits", "patch-works", "minor-waits", "minor-works", "minor-new"].map((id) => client.get(id).result()),
  );
  expect(versions).toEqual(["1.3.1", "1.3.1", "1.3.0", "1.3.0", "1.4.0"]);
  for (const situation of SITUATIONS) {
    const run = client.get(`major-${situation}`);
    await expect.poll(async () => (await run.status()).parked?.reason).toBe("version_mismatch");
    expect((await run.status()).parked?.detail).toMatchObject({ saved: "1.3.0", current: "2.0.0" });
  }
  const wrong = called()
    .slice(old)
    .filter((line) => !/^(patch-\w+ 1\.3\.1|minor-w\w+ 1\.3\.0|minor-new 1\.4\.0) /.test(line));
  expect(wrong).toEqual([]);
  await after.kill();

  // The old definition is back: it takes its runs up by itself.
  const back = startWorker(url, ledger, { major: ["1.3.0"] });
  expect(await back.line()).toBe("up");
  for (const situation of SITUATIONS) expect(await client.get(`major-${situation}`).result()).toBe("1.3.0");
  expect(called().filter((line) => line.startsWith("major") && !line.includes(" 1.3.0 "))).toEqual([]);
  await back.kill();
});
