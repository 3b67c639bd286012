// Webhooks and events over HTTP: each delivery is one run, durable before it is answered.
import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { signWebhook } from "pawl/notify";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { type Workflow, workflow } from "../../src/core/workflow.ts";
import { createApp } from "../../src/server/app.ts";
import type { Hook } from "../../src/server/webhooks.ts";
import { serverWorld, type World } from "../server/world.ts";

const SECRET = `whsec_${Buffer.from("a secret of thirty-two bytes, yes").toString("base64")}`;
const OTHER = `whsec_${Buffer.from("another one, which will replace it").toString("base64")}`;
const HOOKS: Record<string, Hook> = { shop: { workflow: "order", secret: [OTHER, SECRET] } };
const TEXT = '{"type":"order.paid","data":{"order":17}}';

const order = workflow({ name: "order", on: { event: "order.paid" } }, async (_ctx, body: unknown) => body);
const ENGINE = { workflows: [order as Workflow<never>] };

interface Sent {
  readonly id?: string;
  readonly text?: string;
  readonly at?: number;
  readonly secrets?: readonly string[];
  readonly headers?: Record<string, string>;
}

function deliver(
  world: World,
  { id = "msg_1", text = TEXT, at = Date.now(), secrets = [SECRET], headers = {} }: Sent = {},
) {
  const timestamp = Math.floor(at / 1000);
  return world.ask("POST /api/hooks/shop", {
    as: "nobody",
    body: text,
    headers: {
      "webhook-id": id,
      "webhook-timestamp": String(timestamp),
      "webhook-signature": signWebhook(secrets, { id, timestamp, body: text }),
      ...headers,
    },
  });
}

function storeUrl(kind: "memory" | "sqlite" | "postgres"): string {
  if (kind === "memory") return "memory:";
  if (kind === "postgres") return withSchema(inject("postgresUrl"), `${inject("postgresSchemas")}${process.pid}_hooks`);
  const folder = mkdtempSync(join(tmpdir(), "pawl-hooks-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "pawl.db");
}

/** It goes with those of all tests. */
function withSchema(url: string, schema: string): string {
  const address = new URL(url);
  address.searchParams.set("schema", schema);
  return address.href;
}

describe("webhooks in", () => {
  it("Q12 a delivery of GitHub that somebody sends again under another id starts nothing more, and neither does an honest redelivery", async () => {
    const git = (dedupe?: "body" | "delivery"): Hook => ({
      workflow: "order",
      secret: ["new", "old"],
      scheme: "github",
      ...(dedupe !== undefined && { dedupe }),
    });
    const world = await serverWorld({ engine: ENGINE, hooks: { git: git(), dispatches: git("delivery") } });
    const send = async (hook: string, id: string, { text = TEXT, secret = "old" } = {}) => {
      const headers = {
        "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(text).digest("hex")}`,
        "x-github-delivery": id,
        "x-github-event": "push",
      };
      return world.json<{ id: string }>(`POST /api/hooks/${hook}`, { as: "nobody", body: text, headers });
    };
    const first = await send("git", "d-1");
    expect(first).toEqual({ id: expect.any(String) });
    expect(await send("git", "d-1")).toEqual(first);
    expect(await send("git", "d-2")).toEqual(first);
    expect(await send("git", "d-1", { secret: "new" })).toEqual(first);
    const second = await send("git", "d-1", { text: '{"order":18}' });
    expect(second).not.toEqual(first);
    expect((await world.pawl.list()).runs).toHaveLength(2);
    // Where a sender says the same twice and means it, its ids tell.
    const dispatched = await send("dispatches", "d-1");
    expect(await send("dispatches", "d-1")).toEqual(dispatched);
    expect(await send("dispatches", "d-2")).not.toEqual(dispatched);
    const other = { hooks: { git: { ...git("body"), scheme: "stripe" } as Hook } };
    await expect(serverWorld(other)).rejects.toThrow("hooks.git.dedupe");
  });

  it.each(["memory", "sqlite", "postgres"] as const)(
    "Q12 S2-12 S2-51 S2-52 X-22 a delivery on %s starts one run, however often it comes; the same id with another body is a conflict",
    async (kind) => {
      const stores = { default: storeUrl(kind) };
      const world = await serverWorld({ engine: ENGINE, hooks: HOOKS, stores });
      const answers = await Promise.all([deliver(world), deliver(world), deliver(world, { secrets: [OTHER] })]);
      expect(answers.map(({ status }) => status)).toEqual([202, 202, 202]);
      const [first, ...others] = (await Promise.all(answers.map((one) => one.json()))) as { id: string }[];
      for (const other of others) expect(other).toEqual(first);
      const id = first?.id ?? "";
      expect(await world.pawl.get(id).result()).toEqual(JSON.parse(TEXT));
      expect(await world.pawl.get(id).status()).toMatchObject({
        key: "hook:shop:msg_1",
        tags: ["hook:shop", "event:order.paid"],
      });
      const changed = await deliver(world, { text: TEXT.replace("17", "18") });
      expect([changed.status, await changed.json()]).toMatchObject([
        409,
        { error: { code: "idempotency_conflict", fields: { run: id } } },
      ]);
      // After a restart it is known as well; memory has none.
      const again = kind === "memory" ? world : await serverWorld({ engine: ENGINE, hooks: HOOKS, stores });
      expect(await (await deliver(again)).json()).toEqual(first);
      expect((await again.pawl.list()).runs).toHaveLength(1);
    },
  );

  it("Q12 starts nothing for what is tampered with, old, unsigned, or for a hook that is not there", async () => {
    const world = await serverWorld({ engine: ENGINE, hooks: HOOKS });
    const refusals: [Promise<Response>, number, string | undefined][] = [
      [deliver(world, { headers: { "webhook-id": "msg_2" } }), 401, "signature"],
      [deliver(world, { headers: { "webhook-signature": "v1,AAAA" } }), 401, "signature"],
      [deliver(world, { headers: { "webhook-signature": "" } }), 401, "missing"],
      [deliver(world, { at: Date.now() - 301_000 }), 401, "old"],
      [deliver(world, { at: Date.now() + 302_000 }), 401, "old"],
      [deliver(world, { text: "{" }), 401, "malformed"],
      [deliver(world, { text: `"${"x".repeat(2_000_000)}"` }), 413, undefined],
      [world.ask("POST /api/hooks/constructor", { as: "nobody", body: "{}" }), 404, undefined],
    ];
    for (const [answer, status, reason] of refusals) {
      const response = await answer;
      const { error } = (await response.json()) as { error: { fields?: { reason?: string } } };
      expect([response.status, error.fields?.reason]).toEqual([status, reason]);
    }
    expect((await world.pawl.list()).runs).toEqual([]);
  });

  it("Q12 a hook with a mistake is refused when the server is made", async () => {
    const { pawl } = await serverWorld();
    const mistakes: unknown[] = [
      [],
      { shop: null },
      { shop: { secret: SECRET } },
      { shop: { workflow: "order" } },
      { shop: { workflow: "order", secret: [] } },
      { shop: { workflow: "order", secret: "weak" } },
      { shop: { workflow: "order", secret: SECRET, scheme: "md5" } },
      { shop: { workflow: "order", secret: SECRET, store: "elsewhere" } },
      { shop: { workflow: "order", secret: SECRET, secrets: [] } },
      { "a/b": { workflow: "order", secret: SECRET } },
    ];
    for (const hooks of mistakes) expect(() => createApp({ pawl, hooks: hooks as never, web: null })).toThrow();
    createApp({ pawl, hooks: { git: { workflow: "order", secret: "any text", scheme: "github" } }, web: null });
  });
});

describe("events over the API", () => {
  it("S2-12 S2-51 X-22 an event starts one run of each workflow that it fits; the same again starts nothing", async () => {
    const world = await serverWorld({ engine: ENGINE });
    const body = { type: "order.paid", id: "evt-1", data: { order: 17 } };
    const send = (as: "operator" | "viewer" | "nobody", event: object = body) =>
      world.ask("POST /api/events", { as, body: event });
    expect((await send("viewer")).status).toBe(403);
    expect((await send("nobody")).status).toBe(401);
    const answers = await Promise.all([send("operator"), send("operator"), send("operator")]);
    const [first, ...others] = (await Promise.all(answers.map((one) => one.json()))) as { runs: string[] }[];
    expect(first?.runs).toHaveLength(1);
    for (const other of others) expect(other).toEqual(first);
    expect((await send("operator", { ...body, data: {} })).status).toBe(409);
    expect(await (await send("operator", { type: "order.lost", id: "evt-1" })).json()).toEqual({ runs: [] });
    expect((await send("operator", { type: "order.paid" })).status).toBe(400);
    expect((await world.pawl.list()).runs).toHaveLength(1);
  });
});
