// `pawl test --effects`: the listing of operations with their classes, what is found, and the exit codes.
import { expect, it, vi } from "vitest";
import { errorOf, pawl, project } from "./fixtures/cli/command.ts";

vi.setConfig({ testTimeout: 60_000 });

const lint = (folder: string, ...args: readonly string[]) => pawl(folder, "test", "--effects", ...args);

const TESTS = `
  import { workflow } from "pawl";
  import { crashTest, recorder } from "pawl/testing";

  const bank = recorder();
  const has = (key: string) => bank.effects.some((one) => one.key === key);

  const sound = workflow("sound", async (ctx, isLate: boolean) => {
    await ctx.effect("charge", {
      class: "execute",
      do: ({ key }) => bank.record("charge", 42, key),
      detect: ({ key }) => (has(key) ? { found: true, value: undefined } : { found: false }),
    });
    if (isLate) await ctx.effect("fine", { class: "write", idempotent: true, do: ({ key }) => bank.record("fine", 1, key) });
    return await ctx.step("thank", () => "thanks");
  });

  const careless = workflow("careless", async (ctx) => {
    await ctx.step("mail", () => bank.record("mail"));
    await ctx.effect("post", { do: () => bank.record("post") });
  });

  export const early = crashTest({ workflow: sound, input: false, recorder: bank });
  export const late = crashTest({ workflow: sound, input: true, recorder: bank });
  export const bad = crashTest({ workflow: careless, input: undefined, recorder: bank });
`;

const PLAIN = `
  import { workflow } from "pawl";

  export const notify = workflow("notify", async (ctx, to: string) => {
    await ctx.effect("send", { class: "execute", do: () => fetch("http://127.0.0.1:64999/" + to).then(() => 1) });
  });
`;

it("S0-25 S0-35 X-33 lists the class of every operation, joins the tests of a workflow, and ends with 1 if something was found", async () => {
  const folder = project({ "shop.crash.ts": TESTS });
  const { code, stdout } = await lint(folder, "shop.crash.ts");
  expect(code).toBe(1);
  const [careless = "", sound] = stdout.split(/(?=^sound$)/m);
  expect(sound).toBe(
    [
      "sound",
      "  OPERATION  KIND    CLASS    IDEMPOTENCY  SECOND RUN         DETECTED BY  DETECTION",
      "  charge     effect  execute  detection    effects, declared  detect       only looks",
      "  thank      step    -        -            none, seen         -            -",
      "  fine       effect  write    conditional  none, seen         key          -",
      "",
      "  Played \"early\": the run succeeded with 'thanks'.",
      "  Played \"late\": the run succeeded with 'thanks'.",
      "  Only what these plays came to is judged.",
      "",
      "  No finding.",
      "",
      "",
    ].join("\n"),
  );
  expect(careless).toContain("  post       effect  -      not idempotent  effects, declared  person       -\n");
  expect(careless).toContain(
    '\n  finding  Step "mail" did "mail" outside and has no class; run again, it did "mail" again.',
  );
  expect(careless).toContain('\n           Unanswered: (2) how is "already executed" detected?\n');
  expect(careless).toMatch(/\n {2}3 findings\.\n\n$/);
});

it("S0-35 one test by its name ends with 0, and programs get the answers as JSON", async () => {
  const folder = project({ "shop.crash.ts": TESTS });
  const { code, stdout } = await lint(folder, "shop.crash.ts", "early", "--json");
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    ok: true,
    workflows: [
      {
        workflow: "sound",
        ok: true,
        operations: [
          { name: "charge", class: "execute", detectedBy: "detect", detection: "only looks" },
          { name: "thank" },
        ],
        unseen: [{ workflow: "sound", name: "fine" }],
      },
    ],
  });
});

it("S0-35 a workflow without a test is played with the input of the command line, and kept from the network", async () => {
  const folder = project({ "notify.ts": PLAIN });
  const refused = await lint(folder, "notify.ts", "--input", '"ada"', "--json");
  expect([refused.code, errorOf(refused).message]).toEqual([2, expect.stringContaining("wants to use the network")]);
  const { code, stdout } = await lint(folder, "notify.ts", "--input", '"ada"', "--allow-net");
  expect(code).toBe(1);
  expect(stdout).toContain("Without a `recorder` nobody sees what steps do outside");
  expect(stdout).toContain('finding  Effect "send" of class "execute" has nothing that keeps it from happening twice');
});
