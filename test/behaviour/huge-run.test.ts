import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { jsonCodec } from "../../src/base/envelope.ts";
import { Pawl } from "../../src/client/pawl.ts";
import { Draft } from "../../src/core/draft.ts";
import type { StoredEntry } from "../../src/core/journal.ts";
import { LIMITS } from "../../src/core/limits.ts";
import { workflow } from "../../src/core/workflow.ts";
import { nodeHost } from "../../src/worker/node-host.ts";
import { pawl as command, json, project } from "../fixtures/cli/command.ts";

// Other work may slow the machine down.
vi.setConfig({ testTimeout: 600_000 });

const ENTRIES = 20_000;
const hugeInput = "input ".repeat(10 * 2 ** 20);
const quiet = { debug() {}, info() {}, warn() {}, error() {} };

/** Adds steps to a run that waits, so many that they fill several commits. */
async function grow(pawl: Pawl, id: string): Promise<void> {
  const { store } = pawl;
  const process = { pid: 1, startedAt: null, boot: "b", pidNamespace: null };
  await store.register({ id: "planter", name: "planter", leaseMs: 60_000, process, handles: [] });
  const taken = await store.take("planter", id);
  const last = taken?.journal.at(-1) as StoredEntry;
  const draft = new Draft(id, { head: last.seq + 1, hash: last.hash, at: last.at }, nodeHost, jsonCodec);
  for (let i = 0; draft.chain.head < ENTRIES; i++) {
    draft.append(last.at, "step.started", `s#${i + 2}`, null);
    draft.appendText(last.at, "step.completed", `s#${i + 2}`, `"${"result ".repeat(20)}"`);
    if (draft.size < LIMITS.commitEntries - 2 && draft.chain.head < ENTRIES) continue;
    expect(await store.commit({ worker: "planter", runs: [draft.take().commit] })).toMatchObject([{ kind: "applied" }]);
  }
  await store.retire("planter");
}

it("I20 B65 a run with an input of 60 MiB and 20,000 entries is listed, shown in short, cancelled and deleted", async () => {
  const folder = project();
  const file = join(folder, ".pawl", "pawl.db");
  const waiting = workflow("waiting", async (ctx, _input: string) => {
    await ctx.waitFor("go");
    for (;;) await ctx.step("s", () => 1);
  });
  const first = await Pawl.open(file, { workflows: [waiting], handleSignals: false, logger: quiet });
  await first.start(waiting, hugeInput, { id: "huge" });
  await first.idle();
  await first.close();

  const pawl = await Pawl.open(file, { logger: quiet });
  await grow(pawl, "huge");
  expect((await pawl.list()).runs).toMatchObject([{ id: "huge" }]);
  expect(await pawl.get("huge").status()).toMatchObject({ state: "waiting", waits: [{ kind: "signal" }] });
  for (const args of [["show", "huge"], ["why", "huge"], ["ls"]]) {
    const shown = await command(folder, ...args);
    expect(shown.code, `${args[0]}: ${shown.stderr.slice(0, 500)}`).toBe(0);
    expect(shown.stdout, args[0]).toContain("huge");
    expect(shown.stdout.length, args[0]).toBeLessThan(100_000);
  }
  expect((await command(folder, "show", "huge")).stdout).toMatch(/… +\d+ more; pawl journal huge lists them/);
  expect(await json(folder, "cancel", "huge")).toMatchObject({ outcome: "cancelled" });
  const now = Date.now();
  expect(await pawl.store.purge({ succeededBefore: now + 1e9, failedBefore: now + 1e9, limit: 10 })).toBe(1);
  expect((await pawl.list()).runs).toEqual([]);
  expect(await pawl.store.journal("huge")).toEqual([]);
  await pawl.close();
});
