import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Pawl, workflow } from "pawl";
import { describe, expect, it, onTestFinished } from "vitest";
import { begin, errorOf, hosted, json, pawl, project } from "./fixtures/cli/command.ts";

const refund = workflow("refund", async (ctx, cents: number) => {
  const approved = await ctx.approve("refund", {
    action: { tool: "refunds.issue", arguments: { cents } },
    approvers: ["ann", "role:manager"],
    evidence: "paid twice",
    risk: "high",
  });
  return approved.by;
});

const WORKER = `
  import { workflow } from "pawl";
  import { fileNotifier } from "pawl/notify";
  export const notifiers = [fileNotifier("told.jsonl")];
  export const refund = workflow("refund", async (ctx, cents: number) => {
    const approved = await ctx.approve("refund", { action: { tool: "refunds.issue", arguments: { cents } }, approvers: ["ann"] });
    return approved.by;
  });
`;

/** Lets the runs of a project's store go as far as they can, in a process that ends then. */
async function goOn(folder: string): Promise<Pawl> {
  const engine = await Pawl.open(join(folder, ".pawl", "pawl.db"), { workflows: [refund], handleSignals: false });
  onTestFinished(() => engine.close());
  await engine.idle();
  return engine;
}

/** A project in which runs wait for an approval each; gives the approvals' ids. */
async function waiting(...runs: readonly string[]): Promise<{ folder: string; ids: string[] }> {
  const folder = project();
  const engine = await goOn(folder);
  for (const id of runs) await engine.start(refund, 4200, { id });
  await engine.idle();
  const { approvals } = await engine.approvals.list();
  await engine.close();
  return { folder, ids: approvals.map(({ id }) => id) };
}

describe("pawl approvals, approve, deny and request-changes", () => {
  it("S2-54 X-31 list what waits, with what, who, risk and due; approving resumes the run, and why tells of it", async () => {
    const { folder, ids } = await waiting("r");
    const [id = ""] = ids;
    const { code, stdout } = await pawl(folder, "approvals");
    const [header, row] = stdout.split("\n");
    expect([code, header]).toEqual([0, expect.stringMatching(/^APPROVAL +NAME +RISK +WAITING +LEVEL +DUE/)]);
    expect(row).toMatch(new RegExp(`^${id} +refund +high .* 0/1 +ann, role:manager +r +refunds\\.issue`));
    const one = (await pawl(folder, "approvals", id.slice(0, 6))).stdout;
    for (const part of ["paid twice", '{"cents":4200}', "ann, role:manager", "high"]) expect(one).toContain(part);
    const why = (await pawl(folder, "why", "r")).stdout;
    for (const part of [
      'waiting for approval "refund"',
      "It is up to ann, role:manager",
      `pawl approve ${id} --by <name>`,
    ])
      expect(why).toContain(part);
    const said = await pawl(folder, "approve", id.slice(0, 6), "--by", "ann", "--reason", "checked");
    expect(said).toMatchObject({ code: 0, stdout: 'Recorded for "refund" of run r: approved by ann.\n' });
    expect(said.stderr).toContain("No live worker");
    const engine = await goOn(folder);
    expect(await engine.get("r").result()).toBe("ann");
    expect((await engine.approvals.get(id)).decision).toMatchObject({
      by: "ann",
      from: expect.stringMatching(/^pawl on /),
    });
    expect((await pawl(folder, "show", "r")).stdout).toMatch(/approval +refund +.*approved by ann after .*: checked/);
    // Said again when the run has ended, it needs no worker.
    const again = await pawl(folder, "approve", id, "--by", "ann");
    expect([again.code, again.stderr]).toEqual([0, ""]);
  });

  it("X-23 E-14 tell whoever may not decide, or comes too late, why; request-changes brings the edited arguments", async () => {
    const { folder, ids } = await waiting("r", "s");
    const [id = "", other = ""] = ids;
    const wrong = await pawl(folder, "approve", id, "--by", "zoe", "--role", "clerk", "--json");
    expect([wrong.code, errorOf(wrong)]).toMatchObject([2, { code: "approval_mismatch", reason: "wrong_role" }]);
    const missing = await pawl(folder, "approve", "nothing-like-it", "--by", "ann", "--json");
    expect([missing.code, errorOf(missing)]).toMatchObject([3, { code: "approval_not_found" }]);
    const receipt = await json(folder, "deny", id, "--by", "zoe", "--role", "manager", "--reason", "no");
    expect(receipt).toEqual({ approval: id, run: "r", decision: "denied", missing: 0 });
    const late = await pawl(folder, "approve", id, "--by", "ann", "--json");
    expect([late.code, errorOf(late)]).toMatchObject([2, { code: "approval_decided", by: "zoe", decision: "denied" }]);
    await json(folder, "request-changes", other, "--by", "ann", "--arguments", '{"cents":2100}');
    const engine = await goOn(folder);
    expect((await engine.get("r").status()).stopReason).toBe("approval_denied");
    expect((await engine.get("s").status()).error).toMatchObject({
      code: "changes_requested",
      fields: { arguments: { cents: 2100 } },
    });
  });

  it("S4-34 a real worker that is killed after it asked has told people once, and the next one goes on", async () => {
    const folder = project({ "refund.ts": WORKER });
    const client = await Pawl.open(join(folder, ".pawl", "pawl.db"));
    onTestFinished(() => client.close());
    const patiently = { timeout: 20_000, interval: 100 };
    const told = () => readFileSync(join(folder, "told.jsonl"), "utf8").trimEnd().split("\n");
    const run = await client.start("refund", 4200, { id: "r", version: "1.0.0" });
    const first = begin(folder, ["worker", "refund.ts"]);
    await expect.poll(told, patiently).toHaveLength(1);
    first.kill("SIGKILL");
    await first.ended;
    const [approval] = (await client.approvals.list()).approvals;
    await client.approvals.decide(approval?.id ?? "", { decision: "approved", by: "ann" });
    const second = begin(folder, ["worker", "refund.ts"]);
    expect(await run.result()).toBe("ann");
    const sent = async () => (await client.list({ workflow: "pawl.notify" })).runs.map(({ state }) => state);
    await expect.poll(sent, patiently).toEqual(["succeeded"]);
    second.kill("SIGTERM");
    await second.ended;
    expect(new Set(told()).size).toBe(1);
    expect(JSON.parse(told()[0] ?? "")).toMatchObject({
      event: "approval.requested",
      run: "r",
      step: "refund",
      to: ["ann"],
    });
  });

  it("C-15 E-26 nobody waits for ever where only code that does not run could undo: cancel and resolve say so", async () => {
    const folder = project({
      "pay.ts": `
        import { RetryableError, workflow } from "pawl";
        export const pay = workflow("pay", async (ctx) => {
          await ctx.effect("pay", { do: () => { throw new RetryableError("lost"); }, undo: () => {} });
        });`,
    });
    for (const id of ["r", "s"]) expect((await hosted(folder, ["run", "pay.ts", "pay", "--id", id])).code).toBe(4);
    const cancelled = await pawl(folder, "cancel", "r", "--compensate");
    expect(cancelled).toMatchObject({ code: 4, stdout: "" });
    expect(cancelled.stderr).toMatch(/No live worker has pay 1\.0\.0: run r is cancelled.*pawl worker <file>/);
    const resolved = await pawl(folder, "resolve", "s", "compensate");
    expect(resolved).toMatchObject({ code: 0, stdout: "Decided for run s: compensate.\n" });
    expect(resolved.stderr).toContain("No live worker has pay 1.0.0");
    expect((await hosted(folder, ["run", "pay.ts", "pay", "--id", "r"])).code).toBe(1);
    expect(await json(folder, "effects", "r")).toMatchObject([{ effect: "pay", status: "compensated" }]);
  });
});
