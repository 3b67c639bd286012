import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Pawl } from "../../src/client/pawl.ts";
import { nextOf } from "../../src/core/next-of.ts";
import { workflow } from "../../src/core/workflow.ts";
import { sha256 } from "../../src/files/atomic-file.ts";
import type { Phase, PhasesOptions, PhaseWork } from "../../src/flows/phase-spec.ts";
import { phases } from "../../src/flows/phases.ts";
import { errorOf, gate, HOUR, nextRound, openWorld, STORES } from "./harness.ts";

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "pawl-phases-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** Three phases, the last of two steps; `done` has what was executed, in order. */
function report(done: string[], options: Partial<PhasesOptions<unknown, Outputs>> = {}, broken: string[] = []) {
  const work = (name: string, value: (work: Work) => unknown) => ({
    name,
    run: (given: Work) => {
      done.push(name);
      if (broken.includes(name)) throw new Error(`${name} is broken`);
      return value(given);
    },
  });
  return phases<unknown, Outputs>({ name: "report", retry: false, outputs: folder(), ...options }, [
    { ...work("gather", ({ input }) => ({ input, at: new Date(0) })), output: "facts.json" },
    work("weigh", ({ outputs }) => `${String(outputs.gather.input)} weighed`),
    {
      name: "write",
      steps: [
        { ...work("draft", ({ outputs }) => `${outputs.weigh}, drafted`), output: "draft.txt" },
        work("polish", ({ outputs }) => `${outputs.write.draft}, polished`),
      ],
    },
  ]);
}

interface Outputs {
  readonly gather: { readonly input: unknown; readonly at: Date };
  readonly weigh: string;
  readonly write: { readonly draft: string; readonly polish: string };
}
type Work = PhaseWork<unknown, Outputs>;

/** Goes round the event loop until something is true: files take their time. */
async function until(check: () => boolean): Promise<void> {
  while (!check()) await nextRound();
}

/** What the document says of a run, in short. */
async function standing(pawl: Pawl, run: string): Promise<unknown> {
  const { phases: all } = await pawl.get(run).document();
  return Object.fromEntries(
    Object.entries(all).map(([name, { status, steps }]) => [
      name,
      steps === undefined ? status : Object.values(steps).map((step) => step.status),
    ]),
  );
}

describe.each(STORES)("phases on %s", (store) => {
  it("F-4 output files are in a folder of their own run, whatever its id, and the document has the hash and size of each", async () => {
    const world = await openWorld(store);
    const outputs = store === "memory" || store === "postgres" ? { outputs: folder() } : {};
    const made = phases({ name: "files", ...outputs }, [
      { name: "one", output: "one.json", run: ({ input }) => input },
      { name: "two", steps: [{ name: "text", output: "two.txt", run: ({ run }) => `of ${run.id}` }] },
    ]);
    const pawl = await world.open([made]);
    const folders = new Set<string>();
    // Names that some file systems take for one another.
    for (const id of ["a:b", "a_b", "a-1", "A-1", "con"]) {
      const run = await pawl.start(made, id, { id });
      await run.result();
      const own = world.store.files?.outputs(id);
      const path = made.outputsOf({ id, ...(own !== undefined && { outputs: own }) });
      folders.add(path.toLowerCase());
      const document = await run.document();
      for (const [record, content] of [
        [document.phases["one"], `"${id}"\n`],
        [document.phases["two"]?.steps?.["text"], `of ${id}`],
      ] as const) {
        expect(readFileSync(join(path, record?.output_file ?? ""), "utf8")).toBe(content);
        expect(record).toMatchObject({ output_hash: `sha256:${sha256(content)}`, output_size: content.length });
      }
    }
    expect(folders.size).toBe(5);
    if (store === "file")
      expect([...folders].filter((path) => path.endsWith(join("runs", "a-1", "outputs")))).toHaveLength(1);
  });

  it("S0-5 S0-19 S0-23 S4-15 S4-22 run in their order, write their files, and say where they stand", async () => {
    const world = await openWorld(store);
    const done: string[] = [];
    const outputs = folder();
    const made = report(done, { outputs });
    const pawl = await world.open([made]);
    const run = await pawl.start(made, "tea");
    expect(await run.result()).toEqual({
      gather: { file: "facts.json", sha256: expect.stringMatching(/^[0-9a-f]{64}$/), bytes: 76, as: "json" },
      weigh: "tea weighed",
      write: {
        draft: expect.objectContaining({ file: "draft.txt", as: "text" }),
        polish: "tea weighed, drafted, polished",
      },
    });
    expect(done).toEqual(["gather", "weigh", "draft", "polish"]);
    expect(readFileSync(join(outputs, run.id, "draft.txt"), "utf8")).toBe("tea weighed, drafted");
    const document = await run.document();
    expect(document).toMatchObject({ status: "done", phase: "write", phase_order: ["gather", "weigh", "write"] });
    expect(document.phases["gather"]).toMatchObject({ status: "done", output_file: "facts.json", output_size: 76 });
    expect(await standing(pawl, run.id)).toEqual({ gather: "done", weigh: "done", write: ["done", "done"] });
  });

  it("S0-11 S0-12 S0-13 S0-18 S0-21 S4-21 after a crash what is done is not executed again, what was in progress is", async () => {
    const world = await openWorld(store);
    const done: string[] = [];
    const outputs = folder();
    const made = (hold: Promise<void>) =>
      phases({ name: "held", outputs }, [
        { name: "gather", output: "facts.json", run: () => void done.push("gather") },
        {
          name: "write",
          steps: [
            { name: "draft", run: () => void done.push("draft") },
            {
              name: "polish",
              run: async () => {
                done.push("polish");
                await hold;
              },
            },
            { name: "send", run: () => void done.push("send") },
          ],
        },
      ]);
    const never = gate();
    const first = await world.open([made(never.passed)]);
    const run = await first.start("held", null);
    await until(() => done.includes("polish"));
    expect(await standing(first, run.id)).toEqual({ gather: "done", write: ["done", "in_progress", "pending"] });
    const second = await world.restart([made(Promise.resolve())]);
    await second.get(run.id).result();
    expect(done).toEqual(["gather", "draft", "polish", "polish", "send"]);
    expect((await second.get(run.id).document()).phases["write"]?.steps?.["polish"]).toMatchObject({ attempts: 2 });
  });

  it("S0-15 S0-20 C-4 E-5 T-1 a failed phase blocks; retry, skip with a reason and abort go on from there", async () => {
    const world = await openWorld(store);
    const done: string[] = [];
    const broken = ["weigh", "polish"];
    const made = report(done, {}, broken);
    const pawl = await world.open([made]);
    const run = await pawl.start(made, "tea");
    const blocked = await errorOf(pawl.advance(run.id, { to: "end" }));
    expect(blocked).toMatchObject({
      code: "phase_blocked",
      message: expect.stringContaining("weigh is broken"),
      fields: { phase: "weigh", choices: ["retry", "skip", "abort"] },
    });
    expect(done).toEqual(["gather", "weigh"]);
    const document = await run.document();
    expect(document.phases["weigh"]).toMatchObject({ status: "failed", error: "weigh is broken" });
    expect(nextOf(document)).toMatchObject({ action: "decide", phase: "weigh", blocked: { error: "weigh is broken" } });
    expect(await run.status()).toMatchObject({
      status: "waiting",
      parked: { reason: "phase_blocked", choices: ["retry", "skip", "abort"] },
      data: {},
    });

    broken.shift();
    await pawl.resolve(run.id, "retry");
    await errorOf(pawl.advance(run.id, { to: "end" }));
    expect(done).toEqual(["gather", "weigh", "weigh", "draft", "polish"]);

    expect(await errorOf(pawl.resolve(run.id, "skip"))).toMatchObject({ code: "invalid_argument" });
    expect(await errorOf(pawl.resolve(run.id, "rerun"))).toMatchObject({ code: "invalid_argument" });
    await pawl.resolve(run.id, { choice: "skip", value: { reason: "ann polishes by hand" } });
    expect(await run.result()).toMatchObject({ weigh: "tea weighed" });
    expect((await run.document()).phases["write"]?.steps?.["polish"]).toMatchObject({
      status: "done",
      skipped: "ann polishes by hand",
    });
    expect((await run.status()).parked).toBeUndefined();
    expect(await errorOf(pawl.resolve(run.id, "retry"))).toMatchObject({ code: "invalid_argument" });
  });

  it("S0-15 abort ends the run; a decision survives a crash, and the second one of two is told", async () => {
    const world = await openWorld(store);
    const made = report([], {}, ["weigh"]);
    const pawl = await world.open([made]);
    const run = await pawl.start(made, "tea");
    await pawl.idle();
    const again = await world.restart([made]);
    await again.resolve(run.id, "abort");
    await errorOf(again.get(run.id).result());
    expect(await again.get(run.id).document()).toMatchObject({ status: "failed", cancelled: true });

    const other = await again.start(made, "tea");
    await again.idle();
    world.killAll();
    const client = await world.open([]);
    await client.resolve(other.id, "retry");
    await client.resolve(other.id, "retry");
    const late = await errorOf(client.resolve(other.id, { choice: "skip", value: "late" }));
    expect(late).toMatchObject({ code: "idempotency_conflict" });
  });

  it("C-12 C-23 S0-43 another generation does not repeat what was done; an edit says what it does again", async () => {
    const world = await openWorld(store);
    const done: string[] = [];
    const made = report(done, {}, ["polish"]);
    const pawl = await world.open([made]);
    const run = await pawl.start(made, "tea");
    await pawl.idle();
    const { phases: saved } = await run.document();
    const who = { cause: "edit", by: "ann", reason: "the draft is bad" } as const;
    await pawl.rewrite(run.id, { ...who, input: "coffee" });
    await pawl.idle();
    expect(done).toEqual(["gather", "weigh", "draft", "polish"]);
    expect(await standing(pawl, run.id)).toEqual({ gather: "done", weigh: "done", write: ["done", "failed"] });
    await pawl.rewrite(run.id, { ...who, adopted: { phases: { ...saved, write: { status: "pending" } } } });
    await pawl.idle();
    expect(done.slice(4)).toEqual(["draft", "polish"]);
    await pawl.resolve(run.id, { choice: "skip", value: "good enough" });
    expect(await run.result()).toMatchObject({ weigh: "tea weighed" });
  });

  it("S4-20 with onFailed: fail the run ends with the error of its step", async () => {
    const world = await openWorld(store);
    const made = report([], { onFailed: "fail" }, ["weigh"]);
    const pawl = await world.open([made]);
    expect(await errorOf(pawl.run(made, "tea"))).toMatchObject({ message: "weigh is broken" });
  });

  it("S0-14 C-24 advance executes exactly one phase and returns; to the end needs one call", async () => {
    const world = await openWorld(store);
    const done: string[] = [];
    const made = report(done);
    const pawl = await world.open([made]);
    const run = await pawl.start(made, "tea", { advance: true });
    await world.settle();
    expect(done).toEqual([]);
    expect(nextOf(await run.document())).toMatchObject({ action: "run", phase: "gather" });
    expect(await pawl.advance(run.id)).toMatchObject({ phase: "gather", isEnded: false, document: { phase: "weigh" } });
    expect(done).toEqual(["gather"]);
    expect(await pawl.advance(run.id)).toMatchObject({ phase: "weigh", isEnded: false });
    expect(done).toEqual(["gather", "weigh"]);
    const again = await world.restart([made]);
    expect(await again.advance(run.id)).toMatchObject({ phase: "write", isEnded: true, document: { status: "done" } });
    expect(done).toEqual(["gather", "weigh", "draft", "polish"]);
    expect(await again.advance(run.id)).toMatchObject({ phase: null, isEnded: true });

    const other = await again.start(made, "tea", { advance: true });
    await again.advance(other.id);
    expect(await again.advance(other.id, { to: "end" })).toMatchObject({ phase: "write", isEnded: true });
    const plain = await again.start(made, "tea");
    expect(await errorOf(again.advance(plain.id))).toMatchObject({ code: "invalid_argument" });
    expect(await again.advance(plain.id, { to: "end" })).toMatchObject({ isEnded: true });
    const none = workflow("none", async () => 1);
    expect(await errorOf(again.start(none, undefined, { advance: true }))).toMatchObject({ code: "invalid_argument" });
  });

  it("S0-10 S4-19 routing skips, what is satisfied is not executed; both are asked once and recorded", async () => {
    const world = await openWorld(store);
    const done: string[] = [];
    let asked = 0;
    const made = phases<{ small: boolean }>({ name: "routed" }, [
      { name: "one", run: () => void done.push("one") },
      { name: "two", when: ({ input }) => ++asked > 0 && !input.small, run: () => void done.push("two") },
      { name: "three", satisfied: async () => ++asked > 0, run: () => void done.push("three") },
      { name: "four", sleep: "1h" },
      { name: "five", run: ({ outputs }) => Object.keys(outputs) },
    ]);
    const pawl = await world.open([made]);
    const run = await pawl.start(made, { small: true }, { advance: true });
    await pawl.advance(run.id);
    // What is routed around is no phase that was executed: the next one is.
    expect(await pawl.advance(run.id)).toMatchObject({ phase: "three" });
    expect((await run.document()).phases).toMatchObject({
      two: { status: "done", skipped: "not on this run's way" },
      three: { status: "done", skipped: "already satisfied" },
      four: { status: "pending" },
    });
    const again = await world.restart([made]);
    const rest = again.advance(run.id, { to: "end" });
    await world.advance(HOUR / 2);
    expect((await again.get(run.id).document()).phases["four"]).toMatchObject({ status: "in_progress" });
    await world.advance(HOUR / 2);
    expect(await rest).toMatchObject({ isEnded: true });
    expect(await again.get(run.id).result()).toMatchObject({ five: ["one"] });
    expect(done).toEqual(["one"]);
    expect(asked).toBe(2);
  });

  it("S0-24 E-4 a lost or altered output file is noticed; the phase is named and can be run again", async () => {
    const world = await openWorld(store);
    const done: string[] = [];
    const outputs = folder();
    const made = report(done, { outputs });
    const pawl = await world.open([made]);
    const run = await pawl.start(made, "tea", { advance: true });
    await pawl.advance(run.id);
    const file = join(outputs, run.id, "facts.json");
    rmSync(file);
    const missing = await errorOf(pawl.advance(run.id));
    expect(missing).toMatchObject({
      code: "output_missing",
      message: expect.stringContaining("facts.json"),
      fields: { phase: "gather", choices: ["rerun", "retry", "abort"] },
    });
    expect(done).toEqual(["gather"]);
    await pawl.resolve(run.id, "rerun");
    await world.settle();
    await pawl.idle();
    expect(existsSync(file)).toBe(true);
    expect(done).toEqual(["gather", "gather", "weigh"]);

    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.replace("tea", "pea"));
    expect(await errorOf(pawl.advance(run.id))).toMatchObject({ code: "output_missing", fields: { phase: "gather" } });
    writeFileSync(file, text);
    await pawl.resolve(run.id, "retry");
    expect(await run.result()).toMatchObject({ weigh: "tea weighed" });
    expect(done).toEqual(["gather", "gather", "weigh", "draft", "polish"]);
  });

  it("S0-4 ids of runs tell what they are about, and never take another run's place", async () => {
    const world = await openWorld(store);
    const made = phases<{ jira_key?: string }>({ name: "bug-e2e", version: "1.3.0", correlation: "jira_key" }, [
      { name: "one", run: () => 1 },
    ]);
    const own = phases({ name: "own", runId: ({ key }) => `order-${key}` }, [{ name: "one", run: () => 1 }]);
    const pawl = await world.open([made, own]);
    const day = new Date(world.clock.now()).toISOString().slice(0, 10).replaceAll("-", "");
    const run = await pawl.start(made, {}, { key: "AE-33995" });
    expect(run.id).toBe(`wf-bug-e2e-AE-33995-${day}`);
    expect((await pawl.start(made, {}, { key: "AE-33995" })).id).toBe(run.id);
    expect(await errorOf(pawl.start(made, { jira_key: "x" }, { key: "AE-33995" }))).toMatchObject({
      code: "idempotency_conflict",
    });
    const unkeyed = await Promise.all([1, 2, 3].map(() => pawl.start(made, { jira_key: "AE-1" })));
    expect(unkeyed.map(({ id }) => id).sort()).toEqual(
      ["", "-2", "-3"].map((suffix) => `wf-bug-e2e-AE-1-${day}${suffix}`),
    );
    expect((await pawl.start(own, null, { key: "a/b" }).catch((error) => error)).code).toBe("invalid_name");
    expect((await pawl.start(own, null, { key: "7" })).id).toBe("order-7");
    expect((await pawl.start(made, {})).id).not.toContain("wf-");
    await pawl.idle();
    expect(await run.document()).toMatchObject({ jira_key: "AE-33995", correlation_field: "jira_key" });
    expect(await unkeyed[0]?.document()).toMatchObject({ jira_key: "AE-1" });
  });

  it("S2-14 S4-14 T-16 every kind of step leaves its record, and its result for those after it", async () => {
    const world = await openWorld(store);
    const sent: string[] = [];
    const { made, child } = everyKind(sent);
    const pawl = await world.open([made, child]);
    const run = await pawl.start(made, { to: "bob" });
    await pawl.idle();
    const [asked] = (await pawl.approvals.list()).approvals;
    expect((await run.document()).waiting_for).toMatchObject([{ kind: "approval", name: "all.gate" }]);
    await pawl.approvals.decide(asked?.id ?? "", { decision: "approved", by: "ann" });
    await pawl.idle();
    await run.signal("answer", "yes");
    await pawl.idle();
    expect((await run.document()).waiting_for).toMatchObject([{ kind: "timer" }]);
    await world.advance(2 * HOUR);
    expect(await run.result()).toEqual({ summary: "letter to bob / ann / yes / child of bob" });
    expect(sent).toEqual(["letter to bob"]);
    const { phases: all, effects, approvals } = await run.document();
    expect(all["all"]?.status).toBe("done");
    expect(Object.values(all["all"]?.steps ?? {}).map(({ status }) => status)).toEqual(Array(6).fill("done"));
    expect(effects).toMatchObject([{ effect: "all.send", status: "executed" }]);
    expect(approvals).toMatchObject([{ name: "all.gate", status: "approved", decided_by: "ann" }]);
  });

  it("S2-14 whoever is asked and says no ends the run: a gate is not skipped", async () => {
    const world = await openWorld(store);
    const made = phases({ name: "gated" }, [
      { name: "gate", approve: { action: { tool: "t", arguments: 1 }, approvers: ["ann"] } },
      { name: "act", run: () => 1 },
    ]);
    const pawl = await world.open([made]);
    const run = await pawl.start(made, null);
    await pawl.idle();
    const [asked] = (await pawl.approvals.list()).approvals;
    await pawl.approvals.decide(asked?.id ?? "", { decision: "denied", by: "ann", reason: "no" });
    expect(await errorOf(run.result())).toMatchObject({ code: "approval_denied" });
    expect((await run.document()).phases).toMatchObject({
      gate: { status: "failed", error: "denied by ann: no" },
      act: { status: "pending" },
    });
  });
});

/** One phase of six steps, each of another kind. */
function everyKind(sent: string[]) {
  const child = workflow("child", async (ctx, name: string) => ctx.step("name", () => `child of ${name}`));
  interface Given {
    readonly all: {
      readonly write: string;
      readonly gate: { readonly by: string };
      readonly answer: string;
      readonly sub: string;
    };
  }
  const list: Phase<{ to: string }, Given>[] = [
    {
      name: "all",
      steps: [
        { name: "write", kind: "model", output: "letter.txt", run: ({ input }) => `letter to ${input.to}` },
        {
          name: "gate",
          approve: {
            approvers: ["ann"],
            action: ({ outputs }) => ({ tool: "mail", arguments: { text: outputs.all.write } }),
          },
        },
        {
          name: "send",
          effect: ({ outputs }) => ({
            do: () => {
              sent.push(outputs.all.write);
            },
            detect: () => (sent.includes(outputs.all.write) ? { found: true, value: undefined } : { found: false }),
          }),
        },
        { name: "answer", waitFor: "answer" },
        { name: "later", sleep: "2h" },
        { name: "sub", call: child, input: ({ input }) => input.to },
      ],
    },
    {
      name: "summary",
      run: ({ outputs: { all } }) => `${all.write} / ${all.gate.by} / ${all.answer} / ${all.sub}`,
    },
  ];
  const made = phases<{ to: string }, Given, { summary: unknown }>(
    { name: "every-kind", outputs: folder(), result: ({ outputs }) => ({ summary: (outputs as never)["summary"] }) },
    list,
  );
  return { made, child };
}
