// The linter of effects: one small bad workflow for everything that it finds, and the examples, which pass.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Context, type EffectSpec, type Run, type StepInfo, workflow } from "pawl";
import { repeatable, writeFile } from "pawl/guards";
import { fakeModel, type LintOptions, type LintReport, lintEffects, recorder, type TestEngine } from "pawl/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { refund } from "../../examples/04-refund/workflow.ts";
import { patientReport } from "../../examples/05-patient-report/workflow.ts";
import { wayBack } from "../../examples/fakes.ts";

const bank = recorder();
const charge = (key?: string) => bank.record("charge", { cents: 4200 }, key);
const hasCharge = (key: string) => bank.effects.some((one) => one.name === "charge" && one.key === key);
const found = (is: boolean) => (is ? { found: true as const, value: undefined } : { found: false as const });

/** A report over a workflow with this body. */
function lint(body: (ctx: Context) => Promise<unknown>, options: LintOptions<unknown, unknown> = {}) {
  return lintEffects(workflow("order", body), undefined, { recorder: bank, ...options });
}

const effect = (spec: EffectSpec<unknown>) => lint((ctx) => ctx.effect("charge", spec));

/** What was found, with the questions that are open. */
const findings = ({ findings: all }: LintReport) => all.map((one) => [one.kind, one.questions, one.message]);

/** The answers of the only operation. */
function answers({ operations }: LintReport) {
  expect(operations).toHaveLength(1);
  const {
    class: level,
    idempotency,
    secondRun,
    isSeen,
    detectedBy,
    detection,
  } = operations[0] as (typeof operations)[0];
  return { level, idempotency, secondRun: [secondRun, isSeen], detectedBy, detection };
}

describe("what is fine", () => {
  it("S0-25 S0-35 a detector, a key, an overwrite and a read are told apart, and what they say is seen to be so", async () => {
    const detected = await effect({
      class: "execute",
      do: ({ key }) => charge(key),
      detect: ({ key }) => found(hasCharge(key)),
    });
    expect(findings(detected)).toEqual([]);
    expect(answers(detected)).toEqual({
      level: "execute",
      idempotency: "detection",
      secondRun: ["effects", false],
      detectedBy: "detect",
      detection: "only looks",
    });
    const keyed = await effect({ class: "write", idempotent: true, do: ({ key }) => charge(key) });
    expect(findings(keyed)).toEqual([]);
    expect(answers(keyed)).toMatchObject({
      idempotency: "conditional",
      secondRun: ["none", true],
      detectedBy: "key",
      detection: null,
    });
    const natural = { idempotency: "natural", secondRun: ["none", false], detectedBy: "overwrite" };
    expect(answers(await effect({ class: "write", idempotent: "natural", do: () => 1 }))).toMatchObject(natural);
    expect(answers(await effect(repeatable(() => 1)))).toMatchObject(natural);
    const read = await effect({ class: "read", do: () => 1 });
    expect(answers(read)).toMatchObject({ idempotency: "natural", secondRun: ["none", false], detectedBy: null });
    expect(findings(read)).toEqual([]);
  });

  it("S0-25 a file that is overwritten is natural, although its guard uses the key for its drafts", async () => {
    const folder = mkdtempSync(join(tmpdir(), "pawl-lint-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const report = await effect(writeFile(join(folder, "report.txt"), "all well"));
    expect(report.ok).toBe(true);
    expect(answers(report)).toMatchObject({ level: "write", idempotency: "natural", detectedBy: "overwrite" });
  });

  it("X-33 a write without a guard passes with an undo or an approval: after a crash a person is asked", async () => {
    const undone = await effect({ class: "write", do: () => charge(), undo: () => {} });
    expect(findings(undone)).toEqual([]);
    expect(answers(undone)).toMatchObject({ idempotency: "not idempotent", detectedBy: "person" });
    const action = { tool: "charge", arguments: {} };
    const approved = await lint(
      async (ctx) => {
        const approval = await ctx.approve("pay", { action, approvers: ["ada"] });
        await ctx.effect("charge", { class: "execute", needs: { approval, action }, do: () => charge() });
      },
      { script: (run, engine) => engine.decide(run.id, "pay", { decision: "approved", by: "ada" }) },
    );
    expect(findings(approved)).toEqual([]);
    expect(approved.operations[0]).toMatchObject({ hasApproval: true, did: ["charge"] });
  });

  it("S0-35 steps that do nothing outside are run once: scripted answers are not used up, and replay is no second time", async () => {
    const model = fakeModel(["one", "two"]);
    const report = await lint(async (ctx) => {
      const first = await ctx.step("ask", () => model("?"));
      await ctx.sleep("3 days");
      return [
        first,
        await ctx.step(async function again(text: string) {
          return `${text}, ${await model(text)}`;
        }, "!"),
      ];
    });
    expect(report.plays).toEqual([{ name: "first", outcome: "succeeded with [ 'one', '!, two' ]", isWatched: true }]);
    expect(report.operations.map(({ name, times, secondRun }) => [name, times, secondRun])).toEqual([
      ["ask", 1, "none"],
      ["again", 1, "none"],
    ]);
    expect(report.ok).toBe(true);
  });

  it("S0-37 a detector that is keyed by an order number is not blamed for finding what another run has done", async () => {
    const body = async (ctx: Context) =>
      ctx.effect("charge", {
        class: "write",
        key: "order-17",
        do: ({ key }) => charge(key),
        detect: ({ key }) => found(hasCharge(key)),
      });
    const child = workflow("child", body);
    const report = await lint(
      async (ctx) => {
        await ctx.call(child);
        await body(ctx);
      },
      { workflows: [child] },
    );
    expect(findings(report)).toEqual([]);
    expect(report.operations.map(({ workflow: of, name }) => `${of}: ${name}`)).toEqual([
      "child: charge",
      "order: charge",
    ]);
    expect(report.toString()).toContain("child: charge  effect  write  detection    effects");
  });
});

describe("what is found", () => {
  it("S0-25 S0-35 a plain step that acts outside has no class, and leaves two questions open", async () => {
    const message = (seen: string, how: string) =>
      `Step "pay" did "charge" outside and has no class; run again, it ${seen}. Make it an effect that says what it may change and how a repetition is noticed: ctx.effect("pay", { class: "write", ${how}, do: … }).`;
    const twice = await lint((ctx) => ctx.step("pay", () => charge()));
    expect(findings(twice)).toEqual([["no_class", [1, 2], message('did "charge" again', "detect: …")]]);
    expect(twice.ok).toBe(false);
    expect(twice.toString()).toContain(
      '\n  Unanswered: (1) does a second run have effects outside? (2) how is "already executed" detected?',
    );
    const keyed = await lint((ctx) => ctx.step("pay", ({ key }) => charge(key)));
    expect(findings(keyed)).toEqual([["no_class", [1, 2], message("changed nothing", "idempotent: true")]]);
    const named = await lint((ctx) =>
      ctx.step(function pay(_: string) {
        charge();
      }, "order-17"),
    );
    expect(findings(named)).toEqual(findings(twice));
  });

  it("S0-35 the step that acted is told from one that runs beside it", async () => {
    const report = await lint((ctx) =>
      ctx.map(["a", "b"], (name) => ctx.step(name, () => (name === "b" ? charge() : 1))),
    );
    expect(report.findings.map(({ operation }) => operation)).toEqual(["b"]);
  });

  it("S0-25 an effect without a class is refused", async () => {
    expect(findings(await effect({ idempotent: true, do: ({ key }) => charge(key) }))).toEqual([
      [
        "no_class",
        [1],
        'Effect "charge" has no class. Say what it may change: class "read", "draft", "write" or "execute". Without one it counts as "write".',
      ],
    ]);
  });

  it("S0-25 an effect of class read must not act", async () => {
    expect(findings(await effect({ class: "read", do: () => charge() }))).toEqual([
      [
        "wrong_class",
        [1],
        'Effect "charge" has class "read", and did "charge" outside. Give it the class "draft", "write" or "execute".',
      ],
    ]);
  });

  it.each(["write", "execute"] as const)(
    "X-33 S2-72 an effect of class %s needs a key, a compensation or an approval",
    async (level) => {
      expect(findings(await effect({ class: level, do: ({ key }) => charge(key) }))).toEqual([
        [
          "unguarded",
          [2],
          `Effect "charge" of class "${level}" has nothing that keeps it from happening twice, takes it back, or lets somebody approve it. Give it a \`detect\`, \`idempotent: true\` if the outside recognises its key, an \`undo\`, or an approval it \`needs\`.`,
        ],
      ]);
    },
  );

  it("S0-35 what says that a second run has no effects is run a second time, and must be right", async () => {
    const next = "Pass its `key` on to the outside, or give it a `detect`.";
    expect(findings(await effect({ class: "write", idempotent: true, do: () => charge() }))).toEqual([
      ["acts_again", [1], `Effect "charge" says \`idempotent: true\`, and run again, it did "charge" again. ${next}`],
    ]);
    expect(findings(await effect({ class: "write", idempotent: "natural", do: () => charge() }))).toEqual([
      [
        "acts_again",
        [1],
        `Effect "charge" says \`idempotent: "natural"\`, and run again, it did "charge" again. ${next}`,
      ],
    ]);
    expect(findings(await effect({ class: "draft", do: () => charge() }))).toEqual([
      [
        "acts_again",
        [1],
        `Effect "charge" is repeated after a crash, as class "draft" is, and run again, it did "charge" again. ${next}`,
      ],
    ]);
    const strict = (attempts: number) => {
      if (attempts > 1) throw new Error("exists already");
      charge();
    };
    expect(findings(await effect({ class: "write", idempotent: true, do: ({ attempt }) => strict(attempt) }))).toEqual([
      [
        "acts_again",
        [1],
        `Effect "charge" says \`idempotent: true\`, and run again, it failed: exists already. ${next}`,
      ],
    ]);
  });

  it("S0-35 S0-36 a detector that writes, or does not find what was done", async () => {
    const writing = await effect({
      class: "write",
      do: ({ key }) => charge(key),
      detect: ({ key }) => {
        bank.record("look");
        return found(hasCharge(key));
      },
    });
    expect(findings(writing)).toEqual([
      [
        "detector",
        [3],
        'Effect "charge": The detector wrote: "look" undefined. It may only look, because it is asked again and again.',
      ],
    ]);
    expect(answers(writing).detection).toBe("writes");
    const blind = await effect({ class: "write", do: ({ key }) => charge(key), detect: () => found(false) });
    expect(findings(blind)).toEqual([
      [
        "detector",
        [2],
        'Effect "charge": The detector does not find what was done. Let it look outside, by the key that it is given, and not in what a process remembers.',
      ],
    ]);
    const eager = await effect({ class: "write", do: ({ key }) => charge(key), detect: () => found(true) });
    expect(eager.findings.map(({ message }) => message)).toEqual([
      'Effect "charge": The detector says that it happened before anything was done. Let it look for this effect\'s key, and begin with fakes that are empty.',
    ]);
  });

  it("S0-35 a detector that nobody watched leaves the third question open", async () => {
    const spec: EffectSpec<unknown> = {
      class: "write",
      do: () => undefined,
      detect: () => found(true),
    };
    const body = (ctx: Context) => ctx.effect("charge", spec);
    const report = await lintEffects(workflow("order", body), undefined);
    expect(findings(report).at(-1)).toEqual([
      "detector_not_watched",
      [3],
      'Nobody can tell whether the detector of effect "charge" only looks. No recorder watched it. Give `recorder`, and let your fakes call its `record`.',
    ]);
    const failing = await lint((ctx) =>
      ctx.effect("charge", { ...spec, do: () => Promise.reject(new TypeError("no")) }),
    );
    expect(findings(failing)).toEqual([
      [
        "detector_not_watched",
        [3],
        'Nobody can tell whether the detector of effect "charge" only looks. Its effect was not made in any play. Give a play in which it is.',
      ],
    ]);
  });

  it("S0-35 X-33 a step with an undo changes something: that a crash runs it again must be harmless", async () => {
    const step = (fn: (key: string) => void, recovery?: "ask") =>
      lint((ctx) => ctx.step("pay", ({ key }) => fn(key), { undo: () => {}, ...(recovery && { recovery }) }));
    const next =
      'Make it ctx.effect with a `detect`, or with `idempotent: true` if the outside recognises its key; or give it recovery "ask".';
    const text = (seen: string) =>
      `Step "pay" can be undone, so it changes something, and a crash runs it again${seen}. ${next}`;
    expect(findings(await step(() => charge()))).toEqual([
      ["unguarded", [2], text('; run again, it did "charge" again')],
    ]);
    expect(findings(await step(() => {}))).toEqual([["unguarded", [2], text("")]]);
    const keyed = await step((key) => charge(key));
    expect([keyed.ok, answers(keyed).detectedBy]).toEqual([true, "key"]);
    const asked = await step(() => charge(), "ask");
    expect([asked.ok, answers(asked).detectedBy]).toEqual([true, "person"]);
  });

  it("S0-35 an undo that acts again in a second run", async () => {
    const body = async (ctx: Context) => {
      await ctx.effect("charge", {
        class: "write",
        idempotent: true,
        do: ({ key }) => charge(key),
        undo: () => bank.record("pay back"),
      });
      throw new Error("out of stock");
    };
    const report = await lint(body);
    expect(findings(report)).toEqual([
      [
        "undo_acts_again",
        [1],
        'The undo of "charge", run a second time, did "pay back" again. A crash may run it twice: pass its `key` on to the outside, or let it look first.',
      ],
    ]);
    expect(report.operations[0]).toMatchObject({ undo: "played" });
    expect(report.plays[0]?.outcome).toBe('failed with "out of stock"');
  });

  it("S0-35 a body that acts by itself", async () => {
    const report = await lint(async () => charge());
    expect(report.findings).toHaveLength(1);
    expect(report.findings[0]?.message).toMatch(
      /^The body of workflow "order" did "charge" outside of any step, and does it again whenever the run is replayed: .*lint-effects\.test\.ts.*\. Put it into ctx\.effect\.$/,
    );
  });

  it("a class of idempotency that does not exist is refused", async () => {
    const report = await effect({ class: "write", idempotent: "naturally" as "natural", do: () => 1 });
    expect(report.plays[0]?.outcome).toBe(
      'failed with "ctx.effect("charge"): `idempotent` is "naturally". Give true, false or "natural"."',
    );
  });
});

describe("what was played", () => {
  it("S0-25 a transaction happens with its record; a play on the store in memory ends there, and says so", async () => {
    const report = await lint((ctx) => ctx.transaction("book", () => 1));
    expect(answers(report)).toMatchObject({ idempotency: "conditional", detectedBy: "transaction" });
    expect(report.plays[0]?.outcome).toMatch(/^failed with ".*transaction/);
  });

  it("S0-35 what succeeds at its second attempt is asked and repeated then", async () => {
    const flaky = (attempt: number) => {
      if (attempt === 1) throw Object.assign(new Error("busy"), { code: "ECONNREFUSED" });
    };
    const report = await lint(async (ctx) => {
      await ctx.effect("charge", {
        class: "write",
        idempotent: true,
        do: ({ attempt }) => {
          flaky(attempt);
          charge();
        },
      });
      await ctx.effect("look", {
        class: "write",
        do: ({ attempt }) => flaky(attempt),
        detect: ({ key }) => found(hasCharge(key)),
      });
    });
    expect(report.findings.map(({ operation, kind }) => [operation, kind])).toEqual([
      ["charge", "acts_again"],
      ["look", "detector"],
    ]);
  });

  it("S0-35 an effect whose methods use fields of a class of its own is played as it is", async () => {
    class Payment implements EffectSpec<unknown> {
      readonly class = "execute";
      readonly #charged = new Set<string>();
      do({ key }: StepInfo) {
        this.#charged.add(key);
        charge(key);
      }
      detect({ key }: StepInfo) {
        return found(this.#charged.has(key));
      }
      undo() {
        this.#charged.clear();
      }
    }
    const report = await lint(async (ctx) => {
      await ctx.effect("charge", Object.freeze(new Payment()));
      throw new Error("sold out");
    });
    expect([report.ok, report.plays[0]?.outcome]).toEqual([true, 'failed with "sold out"']);
    expect(report.operations[0]).toMatchObject({ class: "execute", detection: "only looks", undo: "played" });
  });

  const branching = workflow("branching", async (ctx, isPaid: boolean) => {
    if (isPaid) return await ctx.effect("thank", { class: "write", idempotent: true, do: ({ key }) => charge(key) });
    return await ctx.effect("remind", { class: "write", do: () => charge() });
  });

  it("S0-35 only what a play came to is judged, and what is left out is named", async () => {
    const one = await lintEffects(branching, true, { recorder: bank });
    expect([one.ok, one.unseen]).toEqual([true, [{ workflow: "branching", name: "remind" }]]);
    expect(one.toString()).toContain(
      'In the text of the workflow, but not played: "remind" of branching. Give plays that come to them.',
    );
    const both = await lintEffects(branching, true, { recorder: bank, plays: { unpaid: { input: false } } });
    expect([both.unseen, both.findings.map(({ operation }) => operation)]).toEqual([[], ["remind"]]);
    expect(both.plays.map(({ name }) => name)).toEqual(["first", "unpaid"]);
  });

  it("says how a run ended that nobody answered, and that nobody watched", async () => {
    const waiting = workflow("waiting", async (ctx) => ctx.waitFor("paid", { timeout: "7 days" }));
    const report = await lintEffects(waiting, undefined);
    expect(report.toString()).toContain('Played "first": the run failed with "');
    expect(report.toString()).toContain(
      "Without a `recorder` nobody sees what steps do outside: only what effects say of themselves is judged.",
    );
    const asking = workflow("asking", (ctx) => {
      const lost = Object.assign(new Error("no answer"), { code: "ECONNRESET" });
      return ctx.effect("charge", { class: "write", undo: () => {}, do: () => Promise.reject(lost) });
    });
    const [asked] = (await lintEffects(asking, undefined, { recorder: bank })).plays;
    expect(asked?.outcome).toMatch(/^was parked: .*nobody can tell whether it took effect/);
  });
});

describe("the examples", () => {
  const CHANGES = ["draft", "withdraw", "issue", "reverse", "mail", "deliver"];

  /** What is never answered. */
  let lost: string | null = null;

  /** What the services of the examples change; what they only say is no effect. */
  function watched() {
    const outside = recorder();
    lost = null;
    const folder = mkdtempSync(join(tmpdir(), "pawl-lint-"));
    vi.stubEnv("LEDGER", join(folder, "ledger.jsonl"));
    vi.spyOn(wayBack, "travel").mockImplementation(async ({ action, about, key }) => {
      if (CHANGES.includes(action)) outside.record(action, about, key);
      if (action === lost) await new Promise(() => {});
    });
    onTestFinished(() => {
      vi.unstubAllEnvs();
      vi.restoreAllMocks();
      rmSync(folder, { recursive: true, force: true });
    });
    return outside;
  }

  it("S0-25 S0-35 X-33 D-3 the refund answers all three questions, approved, denied and reversed", async () => {
    const request = { order: "order-7", cents: 4200, email: "ada@example.org", agent: "bot-1" };
    const grace = { by: "grace", roles: ["support-lead"], reason: "checked" };
    const decide = (decision: "approved" | "denied") => (run: Run, engine: TestEngine) =>
      engine.decide(run.id, "issue", { ...grace, decision });
    const report = await lintEffects(refund, request, {
      recorder: watched(),
      script: decide("approved"),
      plays: {
        denied: { script: decide("denied") },
        "found to be fraud": {
          async script(run, engine) {
            lost = "mail";
            await decide("approved")(run, engine);
            await engine.until(async () => (await run.effects()).some((one) => one.effect === "tell"));
            await run.cancel({ compensate: true });
          },
        },
      },
    });
    expect(report.ok, report.toString()).toBe(true);
    const lines = report.operations.map((one) => [one.name, one.class, one.idempotency, one.secondRun, one.undo]);
    expect(lines).toEqual([
      ["draft", "draft", "conditional", "none", "played"],
      ["review", null, null, "none", "none"],
      ["issue", "execute", "conditional", "none", "played"],
      ["tell", "write", "conditional", "none", "none"],
    ]);
    expect(report.operations.map(({ did }) => did)).toEqual([["draft"], [], ["issue"], ["mail"]]);
    expect(report.unseen).toEqual([]);
  });

  it("S0-25 S0-35 X-33 D-5 the patient's report answers all three questions", async () => {
    const report = await lintEffects(
      patientReport,
      { id: "patient-3", physician: "dr-bell" },
      {
        recorder: watched(),
        script: (run, engine) => engine.decide(run.id, "report", { decision: "approved", by: "dr-bell" }),
      },
    );
    expect(report.ok, report.toString()).toBe(true);
    expect(report.operations.map(({ name, times }) => [name, times])).toEqual([
      ["gather", 4],
      ["analyse", 1],
      ["write findings", 1],
      ["write assessment", 1],
      ["write plan", 1],
      ["deliver", 1],
    ]);
    expect(report.operations.at(-1)).toMatchObject({
      class: "execute",
      idempotency: "detection",
      detectedBy: "detect",
      detection: "only looks",
      hasApproval: true,
      did: ["deliver"],
    });
  });
});
