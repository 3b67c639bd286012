// What is taken out before it is recorded: by rules, and as the value of a secret.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Redacted } from "../../src/base/redacted.ts";
import { secret } from "../../src/base/secret.ts";
import { callbackSecrets } from "../../src/client/callback-secrets.ts";
import type { PawlOptions } from "../../src/client/pawl-options.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, openWorld, STORES, type World } from "../behaviour/harness.ts";

const CARD = "4111 1111 1111 1111";
const TOKEN = "canary-token-77aa";
const RULES = { fields: ["pass-word"], patterns: ["card", "bearer", "key"] as const };
const SECRETS: PawlOptions = { secrets: (name) => (name === "TOKEN" ? TOKEN : null) };

/** Everything that the store keeps of all runs. */
async function everythingIn({ store, lines }: World): Promise<string> {
  const rows = await store.runs({ limit: 100 });
  const parts = await Promise.all(
    rows.map(({ id }) => Promise.all([store.journal(id), store.inbox(id), store.state(id), store.waits({ run: id })])),
  );
  return JSON.stringify([rows, parts, lines]);
}

describe("redaction before the journal", () => {
  const seen: unknown[] = [];
  const pay = workflow("pay", async (ctx, input: { card: string; Password: string; note: string }) => {
    seen.push(input);
    const paid = await ctx.step("pay", () => ({
      id: 7,
      text: `paid with ${CARD}`,
      auth: "Bearer abcdefghijkl",
      n: 4111111111111111,
    }));
    seen.push(paid);
    seen.push(await ctx.step("line", () => CARD));
    ctx.set("password", "hunter2");
    ctx.note(`with ${CARD}`);
    ctx.log.warn(`paid with ${CARD}`, { password: "hunter2", nested: { text: CARD } });
    seen.push(ctx.get("password"));
    const told = await ctx.waitFor("told");
    seen.push(told);
    const failed = await ctx
      .step("fail", () => Promise.reject(Object.assign(new Error(`refused ${CARD}`), { password: "hunter2" })))
      .catch((error: Error) => [error.message, (error as unknown as { password: unknown }).password]);
    seen.push(failed);
    return { text: `done with ${CARD}`, failed };
  });

  it.each(STORES)(
    "Q13 what the rules name is in no record on %s, and a body sees live what replay shows it",
    async (kind) => {
      seen.length = 0;
      const world = await openWorld(kind);
      const first = await world.open([pay], { redact: RULES });
      const input = { card: CARD, Password: "hunter2", note: "from 1763395200000 on" };
      const run = await first.start(pay, input, { key: "p" });
      await world.settle();
      const live = seen.splice(0);
      const second = await world.restart([pay], { redact: RULES });
      await second.signal(run.id, "told", { password: "hunter2", by: `the owner of ${CARD}` });
      const output = await second.get<{ text: string; failed: unknown }>(run.id).result();
      expect(seen.slice(0, live.length)).toEqual(live);
      expect(live).toEqual([
        { card: "[redacted]", Password: new Redacted("string"), note: "from 1763395200000 on" },
        { id: 7, text: "paid with [redacted]", auth: "Bearer [redacted]", n: new Redacted("number") },
        "[redacted]",
        new Redacted("string"),
      ]);
      expect(seen.slice(4)).toEqual([
        { password: new Redacted("string"), by: "the owner of [redacted]" },
        ["refused [redacted]", new Redacted("string")],
      ]);
      expect(output.text).toBe("done with [redacted]");
      // The same start again is the same start.
      expect((await second.start(pay, input, { key: "p" })).id).toBe(run.id);
      const kept = await everythingIn(world);
      for (const word of ["4111", "hunter2", "abcdefghijkl"]) expect(kept).not.toContain(word);
      const [started] = await second.get(run.id).journal();
      expect(JSON.stringify((await world.store.journal(run.id))[0]?.data)).toContain("$redacted");
      expect(started?.payload).toMatchObject({ input: { Password: new Redacted("string") } });
    },
  );

  it("Q13 a workflow has rules of its own, also a function; children get those of theirs", async () => {
    const world = await openWorld("memory");
    const text = (value: string, field: string | null) => (field === "name" ? "somebody" : value);
    const child = workflow(
      { name: "child", redact: [{ text }, { patterns: ["card"] }] },
      async (ctx, input: { name: string }) => {
        ctx.note(`with ${CARD}`);
        return input.name;
      },
    );
    const parent = workflow("parent", async (ctx, name: string) => [name, await ctx.call(child, { name })]);
    const pawl = await world.open([parent, child]);
    expect(await pawl.run(parent, "ann")).toEqual(["ann", "somebody"]);
    expect(await everythingIn(world)).not.toContain("4111");
  });

  it("Q13 reasons of cancels and parks are redacted as well", async () => {
    const world = await openWorld("memory");
    const ask = workflow({ name: "ask", retry: { on: "any" } }, async (ctx) => {
      await ctx.effect("act", { do: () => Promise.reject(new Error(`timeout at ${CARD}`)) }, { recovery: "ask" });
    });
    const wait = workflow("wait", async (ctx) => void (await ctx.sleep("1h")));
    const pawl = await world.open([ask, wait], { redact: RULES });
    await pawl.start(ask, undefined, { id: "asks" });
    await pawl.start(wait, undefined, { id: "waits" });
    await world.settle();
    expect((await pawl.get("asks").status()).parked?.message).toContain("timeout at [redacted]");
    await pawl.cancel("waits", { reason: `the card ${CARD} was stolen` });
    const kept = await everythingIn(world);
    expect(kept).not.toContain("4111");
    expect(kept).toContain("was stolen");
  });

  it("Q13 what comes on a way of its own is redacted as well: the input of a schedule, a vote's reason, an answer", async () => {
    const world = await openWorld("memory");
    const asks = workflow("asks", async (ctx) => {
      await ctx.approve("go", { action: { tool: "go", arguments: {} }, approvers: ["ann"], timeout: "1h" });
      return ctx.callback("reply", { timeout: "1h" }).value();
    });
    const pawl = await world.open([asks], { redact: RULES, secret: "x".repeat(32) });
    await pawl.schedule("daily", "asks", { every: "1 day", input: { card: CARD } });
    const run = await pawl.start(asks);
    await world.settle();
    const [approval] = (await pawl.approvals.list()).approvals;
    await pawl.approvals.decide(approval?.id ?? "", { decision: "approved", by: "ann", reason: `as ${CARD} says` });
    await world.settle();
    const opened = (await run.journal()).find(({ type }) => type === "callback.opened")?.payload as { id: string };
    const secrets = callbackSecrets("x".repeat(32));
    await pawl.callbacks.answer(`${opened.id}.${secrets?.proof(secrets.current, opened.id)}`, {
      password: "hunter2",
      text: CARD,
    });
    expect(await run.result()).toEqual({ password: new Redacted("string"), text: "[redacted]" });
    const kept = await everythingIn(world);
    for (const word of ["4111", "hunter2"]) expect(kept).not.toContain(word);
    await pawl.unschedule("daily");
  });

  it("Q13 Q8 rules that are none are refused where they are given", async () => {
    const world = await openWorld("memory");
    for (const redact of [{ fields: "x" }, { patterns: ["iban"] }, { text: 1 }, 7])
      expect(await errorOf(world.open([], { redact: redact as never }))).toMatchObject({ code: "invalid_argument" });
    expect(() => workflow({ name: "x", redact: { fields: [""] } }, async () => 1)).toThrow(/redact/);
  });
});

describe("secrets", () => {
  const use = workflow("use", async (ctx, input: { token: ReturnType<typeof secret> }) => {
    const length = await ctx.step("use", async (info) => {
      const token = await info.secret(input.token);
      info.heartbeat({ with: token });
      info.emit(`chunk ${token}`);
      await info.save({ token });
      ctx.log.info(`used ${token}`);
      return {
        length: token.length,
        echo: `Authorization: ${token}`,
        url: encodeURIComponent(token),
        at: new Map([[token, 1]]),
        raw: Buffer.from(token),
      };
    });
    const failed = await ctx
      .step("fail", async (info) => {
        throw new Error(`401 for ${await info.secret("TOKEN")}`, { cause: new Error(await info.secret("TOKEN")) });
      })
      .catch((error: Error) => `${error.message}, ${(error.cause as Error).message}`);
    return { input, length, failed };
  });

  it.each(STORES)(
    "Q13 a handle is recorded as its name on %s, and its value nowhere: results, errors, logs, progress, checkpoints, streams",
    async (kind) => {
      const world = await openWorld(kind);
      const pawl = await world.open([use], SECRETS);
      const run = await pawl.start(use, { token: secret("TOKEN") });
      const output = await run.result();
      expect(output).toMatchObject({
        input: { token: secret("TOKEN") },
        length: {
          length: TOKEN.length,
          echo: "Authorization: [redacted]",
          at: new Map([["[redacted]", 1]]),
          raw: new Redacted("bytes"),
        },
        failed: "401 for [redacted], [redacted]",
      });
      const streamed: unknown[] = [];
      for await (const event of run.stream()) streamed.push(event);
      const kept = (await everythingIn(world)) + JSON.stringify(streamed);
      expect(kept).toContain("chunk [redacted]");
      expect(kept).toContain("$secret");
      expect(kept).not.toContain(TOKEN);
      expect(kept).not.toContain(Buffer.from(TOKEN).toString("base64").slice(0, 20));
      expect((await run.journal())[0]?.payload).toMatchObject({ input: { token: secret("TOKEN") } });
    },
  );

  it("Q13 one that is not ASCII is in no record either, however its step passes it on", async () => {
    const token = 'pä ss"w/ö+rd-é';
    const world = await openWorld("memory");
    const call = workflow("call", async (ctx) =>
      ctx.step("call", async (info) => {
        const password = await info.secret("TOKEN");
        const basic = `Basic ${Buffer.from(`ann:${password}`).toString("base64")}`;
        ctx.log.info(`sent ${basic}`);
        return {
          headers: { basic },
          form: new URLSearchParams({ password }).toString(),
          hex: Buffer.from(password).toString("hex").toUpperCase(),
          raw: Buffer.from(`${password}!`),
          [JSON.stringify({ password })]: 1,
        };
      }),
    );
    const pawl = await world.open([call], { secrets: () => token });
    expect(await pawl.run(call, undefined)).toEqual({
      headers: { basic: "Basic YW5uO[redacted]" },
      form: "password=[redacted]",
      hex: "[redacted]",
      raw: new Redacted("bytes"),
      '{"password":"[redacted]"}': 1,
    });
    const kept = await everythingIn(world);
    expect(kept).toContain("sent Basic YW5uO[redacted]");
    for (const part of ["rd-", "73732277", "K3JkL"]) expect(kept).not.toContain(part);
  });

  it("Q13 come from the environment by name, from a folder, and from functions, the first that has it", async () => {
    const folder = mkdtempSync(join(tmpdir(), "pawl-secrets-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    onTestFinished(() => void vi.unstubAllEnvs());
    writeFileSync(join(folder, "FROM_FILE"), "from the file\n");
    vi.stubEnv("FROM_ENV", "from the environment");
    vi.stubEnv("NOT_NAMED", "not for steps");
    const world = await openWorld("memory");
    const get = workflow("get", async (ctx, name: string) =>
      ctx.step("get", async ({ secret: ask }) => (await ask(name)).length),
    );
    const secrets = [
      { environment: ["FROM_ENV"] },
      { folder },
      async (name: string) => (name === "OTHER" ? "by a function" : null),
    ];
    const pawl = await world.open([get], { secrets });
    expect(await pawl.run(get, "FROM_ENV")).toBe("from the environment".length);
    expect(await pawl.run(get, "FROM_FILE")).toBe("from the file".length);
    expect(await pawl.run(get, "OTHER")).toBe("by a function".length);
    expect(await errorOf(pawl.run(get, "NOT_NAMED"))).toMatchObject({
      code: "secret_missing",
      fields: { secret: "NOT_NAMED" },
    });
    expect(await errorOf(pawl.run(get, "../x"))).toMatchObject({ code: "invalid_argument" });
  });

  it("Q13 a secret too short to be found again is refused, and so is what has no name or no provider", async () => {
    const world = await openWorld("memory");
    const get = workflow("get", async (ctx, name: string) =>
      ctx.step("get", async (info) => (await info.secret(name)).length),
    );
    const short = await world.open([get], { secrets: () => "abc" });
    expect(await errorOf(short.run(get, "X"))).toMatchObject({ code: "invalid_argument" });
    await short.close();
    const none = await world.open([get]);
    expect(await errorOf(none.run(get, "X"))).toMatchObject({ code: "secret_missing" });
    expect(await errorOf(world.open([], { secrets: {} as never }))).toMatchObject({ code: "invalid_argument" });
    expect(() => secret("a b")).toThrow(/cannot be called/);
  });
});
