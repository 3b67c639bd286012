// Documents of a `file:` store that were edited with an editor, or damaged, and what becomes of their runs.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import type { Continued } from "../src/core/journal.ts";
import { fileStore, Pawl, type PawlOptions, type PhasesWorkflow, phases, workflow } from "../src/index.ts";
import { FileFault } from "./file-fault.ts";
import { pawl as command, json } from "./fixtures/cli/command.ts";

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const WHO = { by: "ann", reason: "phase_2 was done by hand" };

interface Outputs {
  readonly intake: { readonly title: string };
  readonly fix: { readonly a: string; readonly b: { readonly patch: string } };
}

/** Calls that were made, in order, and what stops a step from being done. */
interface Stage {
  readonly called: string[];
  readonly broken: Set<string>;
}

function bugfix({ called, broken }: Stage): PhasesWorkflow<{ key: string }, unknown> {
  const call = (name: string, value: unknown = null) => {
    called.push(name);
    if (broken.has(name)) throw new Error(`${name} is broken`);
    return value;
  };
  const input = z.object({ key: z.string() });
  return phases<{ key: string }, Outputs>({ name: "bugfix", version: "1.3.0", retry: false, input }, [
    { name: "intake", output: "bug.json", run: () => call("intake", { title: "it crashes" }) },
    {
      name: "fix",
      steps: [
        { name: "a", run: () => call("a", "patch a") },
        { name: "b", output: "b.json", run: ({ outputs }) => call("b", { patch: `b: ${outputs.intake.title}` }) },
      ],
    },
    { name: "commit", effect: { do: () => call("commit"), idempotent: true } },
    { name: "tell", run: ({ outputs, input: { key } }) => call("tell", `${key} ${outputs.fix.b.patch}`) },
  ]);
}

class Scene {
  readonly folder: string = mkdtempSync(join(tmpdir(), "pawl-edited-"));
  readonly stage: Stage = { called: [], broken: new Set() };
  readonly path: string = join(this.folder, "state");
  readonly #open: Pawl[] = [];

  constructor() {
    onTestFinished(async () => {
      for (const pawl of this.#open) await pawl.close();
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  get made(): PhasesWorkflow<{ key: string }, unknown> {
    return bugfix(this.stage);
  }

  async open(options: PawlOptions = {}, fault?: FileFault): Promise<Pawl> {
    const store = fileStore(this.path, { durability: "process", ...(fault && { fault: fault.hit }) });
    const pawl = await Pawl.open(store, { workflows: [this.made], logger: quiet, handleSignals: false, ...options });
    this.#open.push(pawl);
    return pawl;
  }

  /** A run that stands where this step is broken, and nobody at work on it. */
  async blocked(at: string): Promise<void> {
    this.stage.broken.add(at);
    const pawl = await this.open();
    await pawl.start(this.made, { key: "AE-1" }, { id: "r1", key: "AE-1" });
    await pawl.idle();
    await pawl.close();
    this.stage.broken.clear();
    this.stage.called.length = 0;
  }

  get file(): string {
    return join(this.path, "runs", "r1", "state.json");
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests change it where they like.
  edit(change: (document: any) => void): void {
    const document = this.document();
    change(document);
    writeFileSync(this.file, JSON.stringify(document, null, 1));
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests look where they like.
  document(): any {
    return JSON.parse(readFileSync(this.file, "utf8"));
  }

  output(name: string, text: string): void {
    writeFileSync(join(this.path, "runs", "r1", "outputs", name), text);
  }
}

async function refusal(promise: Promise<unknown>): Promise<{ code: string; message: string; fields: object }> {
  return promise.then(
    () => expect.fail("it was accepted"),
    (error) => error,
  );
}

it("F-2 F-3 F-5 F-10 journal, effects, approvals, timers and keys of a run are in its document, and nowhere else in the directory", async () => {
  const scene = new Scene();
  const made = phases({ name: "all", version: "1.0.0" }, [
    { name: "act", effect: { do: () => 1, idempotent: true } },
    { name: "ask", approve: { approvers: ["ann"], timeout: "2 days", action: { tool: "t", arguments: 1 } } },
  ]);
  const pawl = await scene.open({ workflows: [made] });
  await pawl.start(made, null, { id: "r1", key: "K" });
  await pawl.idle();
  await pawl.close();
  const files = readdirSync(scene.path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  expect(
    files
      .map(({ name }) => name)
      .filter((name) => !name.startsWith("lock"))
      .sort(),
  ).toEqual(["lease.json", "state.json", "store.json"]);
  const document = scene.document();
  expect(document).toMatchObject({
    effects: [{ effect: "act", status: "executed" }],
    approvals: [{ status: "requested" }],
    waiting_for: [{ kind: "approval", due: expect.any(String) }],
    engine: { keys: [{ space: "start:all", key: "K" }, { space: "approval" }] },
  });
  expect(document.engine.journal.map(({ seq, hash }: { seq: number; hash: string }) => [seq, hash.length])).toEqual(
    document.engine.journal.map((_: unknown, seq: number) => [seq, 22]),
  );
  expect(document.sequence).toBe(document.engine.journal.length);
});

describe("an edited document that is accepted", () => {
  it("C-23 S0-43 S0-9 T-20 decides by its statuses: what it calls done is not executed, what it calls pending is, with who and why in the journal", async () => {
    const scene = new Scene();
    await scene.blocked("b");
    scene.edit(({ phases }) => {
      phases.intake.status = "pending";
      phases.fix.status = "in_progress";
      phases.fix.steps.b = { status: "done", output_file: "b.json" };
    });
    scene.output("b.json", '{ "patch": "by hand" }');
    const pawl = await scene.open();
    await pawl.idle();
    expect(scene.stage.called).toEqual([]);
    const { edits, warnings } = await pawl.documents.accept("r1", WHO);
    expect(edits).toContain("phases.fix.steps.b.status");
    expect(warnings).toEqual([expect.stringMatching(/^phases\.fix\.steps\.b has no hash for b\.json\./)]);
    const result = await pawl.get("r1").result();
    expect(result).toMatchObject({ tell: "AE-1 by hand" });
    expect(scene.stage.called).toEqual(["intake", "commit", "tell"]);
    const continued = (await pawl.get("r1").journal()).filter(({ type }) => type === "run.continued");
    expect(continued.map(({ payload }) => payload as Continued)).toMatchObject([
      { generation: 1, cause: "accept", ...WHO, adopted: { phases: { fix: { steps: { a: { status: "done" } } } } } },
    ]);
    await pawl.close();
    expect(scene.document().engine.accepted).toMatchObject([WHO]);
  });

  it("C-23 S0-15 takes over run state, input, skips and failures; the key of an interrupted step stays the same", async () => {
    const scene = new Scene();
    await scene.blocked("b");
    scene.edit((document) => {
      document.input.key = "AE-2";
      document.state.note = { $date: "2026-01-01T00:00:00.000Z" };
      document.phases.fix.steps.b = { status: "failed", error: "no compiler" };
      document.phases.commit = { status: "done", skipped: "nothing to commit" };
      document.phase = "tell";
    });
    const pawl = await scene.open();
    const { warnings } = await pawl.documents.accept("r1", WHO);
    expect(warnings).toEqual(["phase follows from the rest."]);
    await pawl.idle();
    expect(await pawl.get("r1").status()).toMatchObject({
      data: { note: new Date("2026-01-01") },
      parked: { reason: "phase_blocked", message: expect.stringContaining("no compiler") },
    });
    await pawl.resolve("r1", "retry");
    expect(await pawl.get("r1").result()).toMatchObject({ tell: "AE-2 b: it crashes" });
    expect(scene.stage.called).toEqual(["b", "tell"]);
    expect((await pawl.get("r1").document()).phases["commit"]).toMatchObject({ skipped: "nothing to commit" });
  });

  it("C-23 C-24 of a run that goes phase by phase waits at the gate that its statuses lead to", async () => {
    const scene = new Scene();
    const first = await scene.open();
    await first.start(scene.made, { key: "AE-1" }, { id: "r1", advance: true });
    await first.advance("r1");
    await first.close();
    scene.edit(
      ({ phases }) => (phases.fix = { status: "done", steps: { b: { status: "done", output: { patch: "x" } } } }),
    );
    const pawl = await scene.open({ workflows: [] });
    await pawl.documents.accept("r1", WHO);
    await pawl.close();
    const second = await scene.open();
    expect(await second.advance("r1")).toMatchObject({ phase: "commit", isEnded: false });
    expect(await second.advance("r1", { to: "end" })).toMatchObject({ isEnded: true });
    expect(scene.stage.called).toEqual(["intake", "commit", "tell"]);
  });

  it("C-23 HD1 killed at any write while it is accepted, the document is held as before or the run goes on from it", async () => {
    let points = 0;
    for (let n = 1; ; n++) {
      const scene = new Scene();
      await scene.blocked("b");
      scene.edit(({ phases }) => {
        phases.fix.status = "in_progress";
        phases.fix.steps.b = { status: "done", output: { patch: "by hand" } };
      });
      const edited = readFileSync(scene.file, "utf8");
      const fault = new FileFault();
      const dying = await scene.open({ workflows: [] }, fault);
      fault.arm(n);
      const isDone = await dying.documents.accept("r1", WHO).then(
        () => true,
        () => false,
      );
      fault.disarm();
      await dying.close();
      const isHeld = readFileSync(scene.file, "utf8") === edited;
      const pawl = await scene.open();
      if (isHeld) await pawl.documents.accept("r1", WHO);
      expect(await pawl.get("r1").result()).toMatchObject({ tell: "AE-1 by hand" });
      expect(scene.stage.called).toEqual(["commit", "tell"]);
      if (isDone) break;
      points = n;
    }
    expect(points).toBeGreaterThan(2);
  });

  it("E-3 C-23 is refused with the path: words that are no status, names that the workflow has not, what has happened, lost files", async () => {
    const scene = new Scene();
    await scene.blocked("b");
    const good = readFileSync(scene.file, "utf8");
    const refused = async (change: (document: ReturnType<Scene["document"]>) => void) => {
      writeFileSync(scene.file, good);
      scene.edit(change);
      const bad = readFileSync(scene.file, "utf8");
      const pawl = await scene.open({ workflows: [] });
      const error = await refusal(pawl.documents.accept("r1", WHO));
      await pawl.close();
      expect(readFileSync(scene.file, "utf8")).toBe(bad);
      return error;
    };
    const word = await refused(({ phases }) => (phases.fix.steps.b.status = "finished"));
    expect(word).toMatchObject({ code: "invalid_state_document", fields: { path: "phases.fix.steps.b.status" } });
    expect(word.message).toContain("pending, in_progress, done, failed");
    const name = await refused(({ phases }) => (phases.fixes = { status: "done" }));
    expect(name).toMatchObject({ code: "invalid_state_document", fields: { path: "phases.fixes" } });
    const time = await refused(({ phases }) => (phases.intake.completed_at = "yesterday"));
    expect(time).toMatchObject({ fields: { path: "phases.intake.completed_at" } });
    for (const path of ["status", "workflow_version", "started_at", "effects"]) {
      const past = await refused(
        (document) => (document[path] = path === "effects" ? [] : path === "status" ? "done" : "2"),
      );
      expect(past, path).toMatchObject({ code: "invalid_state_document", fields: { path } });
    }
    const lost = await refused(({ phases }) => (phases.fix.steps.b = { status: "done", output_file: "b.json" }));
    expect(lost).toMatchObject({ code: "output_missing", fields: { at: "fix.b", file: "b.json" } });
    const chain = await refused(({ engine }) => (engine.journal[2].at += 1));
    expect(chain).toMatchObject({ code: "corrupted_journal", fields: { path: "engine.journal[2]" } });
    const both = await refused(({ engine, phases }) => {
      engine.journal.pop();
      phases.intake.status = "pending";
    });
    expect(both).toMatchObject({ code: "corrupted_journal" });
    const unsaid = await scene.open({ workflows: [] });
    expect(await refusal(unsaid.documents.accept("r1", { by: "ann", reason: "" }))).toMatchObject({
      fields: { field: "reason" },
    });
  });

  it("C-23 of a run that is not made of phases, only its engine's part can be taken over; stores without documents say so", async () => {
    const scene = new Scene();
    const plain = workflow("plain", async (ctx) => [await ctx.step("one", () => 1), await ctx.waitFor("go")]);
    const first = await scene.open({ workflows: [plain] });
    await first.start(plain, undefined, { id: "r1" });
    await first.idle();
    await first.close();
    scene.edit(({ phases }) => (phases.run.steps.one.status = "pending"));
    const second = await scene.open({ workflows: [plain] });
    expect(await refusal(second.documents.accept("r1", WHO))).toMatchObject({
      code: "invalid_state_document",
      message: expect.stringContaining("not made with phases"),
    });
    await second.documents.rebuild("r1", WHO);
    await second.signal("r1", "go", 2);
    expect(await second.get("r1").result()).toEqual([1, 2]);
    const memory = await Pawl.open("memory:", { logger: quiet });
    onTestFinished(() => memory.close());
    expect(await memory.documents.held()).toEqual([]);
    expect(await refusal(memory.documents.accept("r1", WHO))).toMatchObject({ code: "invalid_argument" });
  });
});

describe("the ladder of C-1", () => {
  it("C-1 C-6 C-17 D-8 damaged readable fields are written again from the journal; what stood there is in quarantine", async () => {
    const scene = new Scene();
    await scene.blocked("b");
    const good = scene.document();
    for (const damage of [
      (document: ReturnType<Scene["document"]>) => (document.phases = 7),
      (document: ReturnType<Scene["document"]>) => (document.phases.fix.status = "d\u0000ne"),
      (document: ReturnType<Scene["document"]>) => (document.phases.intake.status = "pending"),
    ]) {
      scene.edit(damage);
      const bad = readFileSync(scene.file, "utf8");
      const pawl = await scene.open({ workflows: [] });
      await pawl.documents.rebuild("r1", { by: "ann", reason: "a bad disk" });
      await pawl.close();
      const { engine, checksum: _, ...readable } = scene.document();
      const { engine: before, checksum: __, ...expected } = good;
      expect(readable).toEqual(expected);
      expect(engine.journal).toEqual(before.journal);
      const kept = join(scene.path, "quarantine");
      expect(readdirSync(kept).some((name) => readFileSync(join(kept, name), "utf8") === bad)).toBe(true);
    }
    const pawl = await scene.open();
    await pawl.resolve("r1", "retry");
    expect(await pawl.get("r1").result()).toMatchObject({ tell: "AE-1 b: it crashes" });
    expect(scene.stage.called).toEqual(["b", "commit", "tell"]);
  });

  it("S4-18 C-17 an older readable part over a newer journal: steps that were finished since then are not repeated", async () => {
    const scene = new Scene();
    await scene.blocked("a");
    const { engine: _engine, checksum: _checksum, ...older } = scene.document();
    const between = await scene.open();
    scene.stage.broken.add("tell");
    await between.resolve("r1", "retry");
    await between.idle();
    await between.close();
    scene.stage.broken.clear();
    expect(scene.stage.called.splice(0)).toEqual(["a", "b", "commit", "tell"]);
    const { engine, checksum } = scene.document();
    writeFileSync(scene.file, JSON.stringify({ ...older, engine, checksum }));
    const pawl = await scene.open();
    expect((await pawl.documents.held()).map(({ run }) => run)).toEqual(["r1"]);
    await pawl.documents.rebuild("r1", WHO);
    await pawl.resolve("r1", "retry");
    expect(await pawl.get("r1").result()).toMatchObject({ tell: "AE-1 b: it crashes" });
    expect(scene.stage.called).toEqual(["tell"]);
  });

  it("C-1 C-20 D-8 a damaged journal holds the run; before any effect it is started afresh, with its key, and archived byte for byte", async () => {
    const scene = new Scene();
    await scene.blocked("b");
    scene.edit(({ engine }) => engine.journal.splice(-2));
    const bad = readFileSync(scene.file, "utf8");
    const pawl = await scene.open();
    expect(await refusal(pawl.documents.rebuild("r1", WHO))).toMatchObject({ code: "corrupted_journal" });
    const id = await pawl.documents.fresh("r1", WHO);
    expect(id).not.toBe("r1");
    expect(await pawl.get(id).result()).toMatchObject({ tell: "AE-1 b: it crashes" });
    expect((await pawl.find(scene.made, "AE-1"))?.id).toBe(id);
    expect(existsSync(scene.file)).toBe(false);
    expect(readFileSync(join(scene.path, "archive", "r1", "state.json"), "utf8")).toBe(bad);
    const reasons = readdirSync(join(scene.path, "quarantine")).filter((name) => name.endsWith("reason.txt"));
    const said = reasons.map((name) => readFileSync(join(scene.path, "quarantine", name), "utf8")).join("");
    expect(said).toContain(`Set aside by ann: ${WHO.reason} (goes on as run ${id})`);
  });

  it("C-1 HD4 killed at any write while a run is started afresh, there is one run of it, and repeating that finds it", async () => {
    let points = 0;
    for (let n = 1; ; n++) {
      const scene = new Scene();
      await scene.blocked("b");
      scene.edit(({ engine }) => engine.journal.splice(-2));
      const fault = new FileFault();
      const dying = await scene.open({ workflows: [] }, fault);
      fault.arm(n);
      const fresh = dying.documents.fresh("r1", WHO).then(
        () => true,
        () => false,
      );
      const isDone = await Promise.race([fresh, fault.struck.then(() => false)]);
      await dying.close({ drain: 1 });
      fault.disarm();
      const pawl = await scene.open();
      if (existsSync(scene.file)) await pawl.documents.fresh("r1", WHO);
      const { runs } = await pawl.list();
      expect(runs.map(({ key }) => key)).toEqual(["AE-1"]);
      expect((await pawl.find(scene.made, "AE-1"))?.id).toBe(runs[0]?.id);
      expect(await pawl.get(runs[0]?.id ?? "").result()).toMatchObject({ tell: "AE-1 b: it crashes" });
      expect(scene.stage.called).toEqual(["intake", "a", "b", "commit", "tell"]);
      expect(existsSync(join(scene.path, "archive", "r1", "state.json"))).toBe(true);
      if (isDone) break;
      points = n;
    }
    expect(points).toBeGreaterThan(2);
  });

  it("C-1 D-8 after an effect a fresh start is refused, whichever part of the document knows of it, unless it is forced", async () => {
    const scene = new Scene();
    await scene.blocked("tell");
    const good = readFileSync(scene.file, "utf8");
    for (const hide of [
      () => {},
      (document: ReturnType<Scene["document"]>) => delete document.effects,
      ({ engine }: ReturnType<Scene["document"]>) => (engine.journal = []),
    ]) {
      writeFileSync(scene.file, good);
      scene.edit(({ engine }) => engine.journal.pop());
      scene.edit(hide);
      const client = await scene.open({ workflows: [] });
      expect(await refusal(client.documents.fresh("r1", WHO))).toMatchObject({
        code: "unsafe_retry",
        fields: { effects: ["commit"] },
      });
      await client.close();
      expect(existsSync(scene.file)).toBe(true);
    }
    const pawl = await scene.open();
    const id = await pawl.documents.fresh("r1", { ...WHO, force: true });
    expect(await pawl.get(id).result()).toMatchObject({ tell: "AE-1 b: it crashes" });
  });
});

it("X-17 C-23 D-8 pawl state accept, rebuild and fresh, on the command line", async () => {
  const scene = new Scene();
  await scene.blocked("b");
  const url = `file:${scene.path}`;
  const say = ["--store", url, "--by", "ann", "--reason", "by hand"];
  const state = (act: string, ...more: string[]) => command(scene.folder, "state", act, "r1", ...say, ...more);
  expect(await state("accept")).toMatchObject({ code: 2, stderr: expect.stringContaining("nothing to decide") });
  const unsaid = await command(scene.folder, "state", "accept", "r1", "--store", url, "--by", "ann");
  expect(unsaid).toMatchObject({ code: 2, stderr: expect.stringContaining("--reason") });
  scene.edit(({ phases }) => (phases.intake.status = "fine"));
  expect(await state("accept")).toMatchObject({ code: 2, stderr: expect.stringContaining("phases.intake.status") });
  expect((await state("rebuild")).stdout).toContain("written again from its journal");
  scene.edit(({ phases }) => (phases.fix.steps.b = { status: "done", output: { patch: "x" } }));
  const accepted = await state("accept");
  expect(accepted.stdout).toMatch(/^Run r1 goes on from its document: phases\.fix\.steps\.b/);
  expect(accepted.stderr).toContain("phases.fix is failed, though none of its steps is.");
  const journal = await json<{ payload: object }[]>(scene.folder, "journal", "r1", "--store", url);
  expect(journal.at(-1)?.payload).toMatchObject({ cause: "accept", by: "ann", reason: "by hand" });
  scene.edit(({ engine }) => engine.journal.pop());
  expect((await state("fresh")).stdout).toMatch(/^Run r1 is in archive\/\. It begins afresh as run \S+\.\n/);
});
