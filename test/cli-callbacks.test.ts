import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Pawl, workflow } from "pawl";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { begin, errorOf, json, pawl, project } from "./fixtures/cli/command.ts";

const SECRET = "a secret that has enough characters";

const tokens = new Map<string, string>();

const paying = workflow("paying", async (ctx) => {
  const reply = ctx.callback("payment", { timeout: "2d" });
  await ctx.step("tell the bank", () => void tokens.set(ctx.run.id, reply.token));
  return reply.value();
});

const WORKER = `
  import { writeFileSync } from "node:fs";
  import { workflow } from "pawl";
  export const paying = workflow("paying", async (ctx) => {
    const reply = ctx.callback("payment");
    await ctx.step("tell the bank", () => writeFileSync("token.json", JSON.stringify(reply.token)));
    return reply.value();
  });
`;

/** Lets the runs of a project's store go as far as they can. */
async function goOn(folder: string): Promise<Pawl> {
  const options = { workflows: [paying], handleSignals: false, secret: SECRET };
  const engine = await Pawl.open(join(folder, ".pawl", "pawl.db"), options);
  onTestFinished(() => engine.close());
  await engine.idle();
  return engine;
}

async function waiting(...runs: readonly string[]): Promise<string> {
  const folder = project();
  const engine = await goOn(folder);
  for (const id of runs) await engine.start(paying, undefined, { id });
  await engine.idle();
  await engine.close();
  return folder;
}

function withSecret(secret: string): void {
  vi.stubEnv("PAWL_SECRET", secret);
  onTestFinished(() => void vi.unstubAllEnvs());
}

describe("pawl answer and revoke", () => {
  it("Q5 B48 why names what a run waits for; an answer resumes it, once; show and the timeline tell of it", async () => {
    withSecret(`a newer one that is as long as that, ${SECRET}`);
    const folder = await waiting("r");
    const [wait] = (await json<{ waits: { name: string }[] }>(folder, "why", "r")).waits;
    const why = (await pawl(folder, "why", "r")).stdout;
    for (const part of ['waiting for callback "payment"', "pawl answer <token>", `pawl revoke ${wait?.name}`])
      expect(why).toContain(part);
    expect((await pawl(folder, "show", "r")).stdout).toMatch(/callback +payment +.*waiting until/);
    const token = tokens.get("r") ?? "";
    const said = await pawl(folder, "answer", token, '{"paid":true}');
    expect(said).toMatchObject({ code: 0, stdout: 'Callback "payment" of run r is answered.\n' });
    expect(said.stderr).toContain("No live worker");
    expect((await pawl(folder, "answer", token, '{"paid":true}')).stdout).toContain("was answered like that before");
    const other = await pawl(folder, "answer", token, '{"paid":false}', "--json");
    expect([other.code, errorOf(other)]).toMatchObject([2, { code: "callback_answered", reason: "answered" }]);
    const engine = await goOn(folder);
    expect(await engine.get("r").result()).toEqual({ paid: true });
    expect((await pawl(folder, "show", "r")).stdout).toMatch(/callback +payment +.*answered {"paid":true}/);
    expect((await pawl(folder, "why", "r")).stdout).toContain('Received: an answer to callback "payment"');
  });

  it("Q5 tell whoever has no token or no secret why; a failure and a revocation close the callback", async () => {
    const folder = await waiting("r", "s");
    const token = tokens.get("r") ?? "";
    const without = await pawl(folder, "answer", token, "1", "--json");
    expect([without.code, errorOf(without)]).toMatchObject([2, { code: "secret_missing" }]);
    withSecret(SECRET);
    const wrong = await pawl(folder, "answer", `${token}A`, "1", "--json");
    expect([wrong.code, errorOf(wrong)]).toMatchObject([3, { code: "callback_not_found", reason: "unknown" }]);
    expect((await pawl(folder, "answer", token, "--fail", "declined")).code).toBe(0);
    const { waits } = await json<{ waits: { name: string }[] }>(folder, "why", "s");
    const revoked = await pawl(folder, "revoke", waits[0]?.name ?? "", "--reason", "the token has leaked");
    expect(revoked).toMatchObject({ code: 0, stdout: 'Callback "payment" of run s is closed.\n' });
    const engine = await goOn(folder);
    for (const [run, reason] of [
      ["r", "declined"],
      ["s", "the token has leaked"],
    ] as const) {
      await expect(engine.get(run).result()).rejects.toMatchObject({ code: "callback_failed", fields: { reason } });
      expect((await pawl(folder, "show", run)).stdout).toMatch(new RegExp(`callback +payment +.*failed: ${reason}`));
    }
  });

  it("B48 a real worker that is killed while it waits goes on with an answer that came meanwhile", async () => {
    withSecret(SECRET);
    const folder = project({ "flow.ts": WORKER });
    const first = begin(folder, ["run", "flow.ts", "paying", "--id", "r"]);
    await first.line(/callback payment.*waiting for an answer/);
    first.kill("SIGKILL");
    await first.ended;
    expect((await pawl(folder, "answer", tokenIn(folder), '"paid"')).code).toBe(0);
    const second = await begin(folder, ["run", "flow.ts", "paying", "--id", "r"]).ended;
    expect(second).toMatchObject({ code: 0, stdout: '"paid"\n' });
  });
});

function tokenIn(folder: string): string {
  return JSON.parse(readFileSync(join(folder, "token.json"), "utf8")) as string;
}
