// Phases of every kind of step, killed at every point at which a process can die: the same result, the same files, the same outside effects.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DocumentWait, phases, type Run, workflow } from "pawl";
import { crashEverywhere, recorder, type TestEngine } from "pawl/testing";
import { expect, it, onTestFinished } from "vitest";

it("S0-1 S4-16 S0-19 T-21 I6 a workflow with each kind of step, crashed everywhere, ends as if nothing had happened", async () => {
  const outputs = mkdtempSync(join(tmpdir(), "pawl-crash-"));
  onTestFinished(() => rmSync(outputs, { recursive: true, force: true }));
  const outside = recorder();
  const child = workflow("child", async (ctx, name: string) => ctx.step("name", () => `child of ${name}`));
  const made = phases<{ to: string }, { write: { to: string }; rest: { mail: unknown; sub: string } }>(
    { name: "every-kind", outputs, retry: false },
    [
      { name: "write", output: "letter.json", run: ({ input }) => ({ to: input.to, at: new Date(0) }) },
      { name: "detour", when: ({ outputs: { write } }) => write.to === "eve", run: () => "never" },
      {
        name: "rest",
        steps: [
          { name: "there", satisfied: ({ outputs: { write } }) => write.to === "bob", run: () => "never" },
          {
            name: "mail",
            effect: ({ outputs: { write } }) => ({
              do: ({ key }) => outside.record("mail", { to: write.to }, key),
              idempotent: true,
            }),
          },
          { name: "gate", approve: { approvers: ["ann"], action: { tool: "t", arguments: 1 } } },
          { name: "later", sleep: "2h" },
          { name: "answer", waitFor: "answer" },
          { name: "sub", call: child, input: ({ input }) => input.to },
          { name: "hand", manual: { instructions: "Look." } },
        ],
      },
      { name: "end", run: ({ outputs: { write, rest } }) => `${write.to} ${rest.sub}` },
    ],
  );
  const files = () =>
    readdirSync(outputs).flatMap((run) =>
      readdirSync(join(outputs, run)).map((file) => readFileSync(join(outputs, run, file), "utf8")),
    );
  const report = await crashEverywhere(
    made,
    { to: "bob" },
    {
      workflows: [child],
      recorder: outside,
      modes: ["kill"],
      fresh: () => {
        for (const run of readdirSync(outputs)) rmSync(join(outputs, run), { recursive: true });
      },
      observe: files,
      script: async (run, engine) => {
        await run.signal("answer", "yes");
        await engine.decide(run.id, "rest.gate", { decision: "approved", by: "ann" });
        for (;;) {
          const work = await nextWork(run, engine);
          if (work === null) return;
          const action = work.begun_by === undefined ? "begin" : "done";
          await engine.report(run.id, work.name, { action, by: "ann" });
          const before = JSON.stringify(work);
          await engine.until(async () => JSON.stringify(await openWork(run)) !== before || (await isOver(run)));
        }
      },
    },
  );
  expect(report.toString()).toMatch(/^ok: /);
  expect(report.points.length).toBeGreaterThan(40);
});

it("S0-15 C-4 I6 a phase that fails once and is tried again on a person's word, crashed everywhere, is done once", async () => {
  const outside = recorder();
  let isBroken = true;
  const made = phases({ name: "broken", retry: false }, [
    { name: "one", run: ({ key }) => void outside.record("one", {}, key) },
    {
      name: "two",
      run: ({ key }) => {
        if (isBroken) throw new Error("broken");
        outside.record("two", {}, key);
      },
    },
  ]);
  const report = await crashEverywhere(made, undefined, {
    recorder: outside,
    fresh: () => {
      isBroken = true;
    },
    script: async (run, engine) => {
      await engine.until(async () => (await run.status()).parked !== undefined || (await isOver(run)));
      isBroken = false;
      if ((await run.status()).parked !== undefined) await engine.resolve(run.id, "retry");
    },
  });
  expect(report.toString()).toMatch(/^ok: /);
});

async function nextWork(run: Run, engine: TestEngine): Promise<DocumentWait | null> {
  await engine.until(async () => (await openWork(run)) !== null || (await isOver(run)));
  return openWork(run);
}

async function openWork(run: Run): Promise<DocumentWait | null> {
  return (await run.document()).waiting_for?.find(({ kind }) => kind === "manual") ?? null;
}

async function isOver(run: Run): Promise<boolean> {
  return (await run.status()).endedAt !== null;
}

it("S4-16 a phase's function that leaves its key unused is told from one that reads it", async () => {
  const made = phases<null, { loose: string; keyed: string }>({ name: "keys" }, [
    { name: "loose", run: () => "loose" },
    { name: "keyed", run: ({ key }) => key.slice(0, 0) },
  ]);
  const { repeats } = await crashEverywhere(made, null, { modes: ["kill"] });
  expect(repeats.map(({ step, usedKey }) => [step, usedKey])).toEqual([
    ["loose", false],
    ["keyed", true],
  ]);
});
