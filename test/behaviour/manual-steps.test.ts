import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { encode } from "../../src/base/codec.ts";
import { nextOf } from "../../src/core/next-of.ts";
import { MANUAL_SIGNAL } from "../../src/core/outline.ts";
import { phases } from "../../src/flows/phases.ts";
import { errorOf, openWorld, STORES } from "./harness.ts";

function playbook() {
  const outputs = mkdtempSync(join(tmpdir(), "pawl-manual-"));
  onTestFinished(() => rmSync(outputs, { recursive: true, force: true }));
  const made = phases<unknown, { work: { survey: { found: number } } }>({ name: "playbook", outputs }, [
    {
      name: "work",
      steps: [
        { name: "survey", manual: { instructions: "Count the rooms.", outputs: ["rooms.json"] } },
        { name: "tidy", manual: { instructions: "Tidy them." } },
      ],
    },
    { name: "end", run: ({ outputs: { work } }) => work.survey.found },
  ]);
  const file = join(outputs, "mine.json");
  writeFileSync(file, '{"found":3}');
  return { made, outputs, file };
}

const ANN = { by: "ann" } as const;

describe.each(STORES)("work that is done outside on %s", (store) => {
  it("S0-16 S0-17 S2-14 is begun, done and failed by whoever does it, in the order of the definition", async () => {
    const world = await openWorld(store);
    const { made, outputs, file } = playbook();
    const pawl = await world.open([made]);
    const run = await pawl.start(made, null);
    await pawl.idle();
    const step = async () => (await run.document()).phases["work"]?.steps;
    expect(nextOf(await run.document())).toMatchObject({
      action: "do",
      phase: "work",
      step: "survey",
      waiting_for: [{ kind: "manual", name: "work.survey", instructions: "Count the rooms.", outputs: ["rooms.json"] }],
    });
    const folder = made.outputsOf(run);
    const done = { ...ANN, action: "done", outputs: { "rooms.json": file }, folder } as const;
    expect(await errorOf(pawl.report(run.id, "survey", done))).toMatchObject({
      message: expect.stringContaining("nobody has begun it"),
    });
    expect(await errorOf(pawl.report(run.id, "tidy", { ...ANN, action: "begin" }))).toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining('it waits for "work.survey"'),
    });
    // What somebody makes up is passed over, however it has come into the store.
    const data = encode({ ticket: "1-0", action: "done", by: "mallory", outputs: [] });
    await world.store.deliver({ to: run.id, id: "forged", kind: "signal", name: MANUAL_SIGNAL, data });
    await pawl.report(run.id, "survey", { ...ANN, action: "begin" });
    await pawl.idle();
    expect(await step()).toMatchObject({ survey: { status: "in_progress" }, tidy: { status: "pending" } });
    expect(await errorOf(pawl.report(run.id, "survey", { ...ANN, action: "done" }))).toMatchObject({
      message: expect.stringContaining('its output "rooms.json" is missing'),
    });

    const again = await world.restart([made]);
    await again.report(run.id, "work.survey", done);
    await again.idle();
    const document = await again.get(run.id).document();
    expect(document.phases["work"]?.steps?.["survey"]).toMatchObject({
      status: "done",
      output_file: "rooms.json",
      output_hash: expect.stringMatching(/^sha256:/),
    });
    expect(readFileSync(join(outputs, run.id, "rooms.json"), "utf8")).toBe('{"found":3}');

    await again.report(run.id, "tidy", { ...ANN, action: "begin" });
    await again.idle();
    await again.report(run.id, "tidy", { ...ANN, action: "fail", reason: "no broom" });
    expect(await errorOf(again.advance(run.id, { to: "end" }))).toMatchObject({
      code: "phase_blocked",
      fields: { at: "work.tidy", error: "no broom" },
    });
    await again.resolve(run.id, "retry");
    await again.idle();
    expect(nextOf(await again.get(run.id).document())).toMatchObject({ action: "do", step: "tidy", blocked: null });
    await again.report(run.id, "tidy", { ...ANN, action: "begin" });
    await again.idle();
    await again.report(run.id, "tidy", { ...ANN, action: "done" });
    expect(await again.get(run.id).result()).toMatchObject({ end: 3 });
    expect(await errorOf(again.report(run.id, "tidy", { ...ANN, action: "begin" }))).toMatchObject({
      code: "run_ended",
    });
  });
});
