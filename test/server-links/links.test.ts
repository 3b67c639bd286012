import { describe, expect, it } from "vitest";
import type { LinkOptions } from "../../src/client/approval-links.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import type { Notification } from "../../src/core/notification.ts";
import type { Store } from "../../src/core/store.ts";
import { errorOf, HOUR, openWorld, STORES } from "../behaviour/harness.ts";
import { ACTION, asked } from "./approval-run.ts";

const ANN: LinkOptions = { for: "ann" };

/** Why a link does not lead anywhere. */
async function reasonOf(opened: Promise<unknown>): Promise<unknown> {
  const error = await errorOf(opened);
  expect(error["code"]).toBe("link_refused");
  return (error["fields"] as { readonly reason: unknown }).reason;
}

async function linkRuns(pawl: Pawl): Promise<string[]> {
  return (await pawl.list({ workflow: "pawl.link" })).runs.map(({ state }) => state);
}

/** All that a store has of a run, as text. */
async function textOf(store: Store, run: string): Promise<string> {
  const rows = [store.run(run), store.journal(run), store.inbox(run), store.waits({ run }), store.state(run)];
  return JSON.stringify(await Promise.all(rows), (_key, value) =>
    value instanceof Uint8Array ? Buffer.from(value).toString() : value,
  );
}

describe.each(STORES)("links to approvals on %s", (store) => {
  it("Q5 S2-54 a link outlives its engine, shows exactly what is approved, and its decision says by which link, for whom and from where", async () => {
    const world = await openWorld(store);
    const { pawl, flow, approval } = await asked(world);
    const link = await pawl.links.create(approval.id, { ...ANN, by: "olaf" });
    await world.settle();
    const again = await world.restart([flow]);
    await world.settle();
    const opened = await again.links.open(link.token);
    expect(opened).toMatchObject({ by: "ann", approval: { id: approval.id, run: "r", action: ACTION } });
    expect(opened.link).toMatchObject({ id: link.id, for: "ann", signIn: false, by: "olaf", status: "open" });
    const from = "203.0.113.7, Mozilla";
    const receipt = await again.links.decide(link.token, { decision: "approved", reason: "seen", from });
    expect(receipt).toMatchObject({ approval: approval.id, run: "r", decision: "approved", missing: 0 });
    expect(await again.get("r").result()).toMatchObject({
      decision: "approved",
      by: "ann",
      from,
      votes: [{ by: "ann", reason: "seen", from, link: { id: link.id, for: "ann" } }],
    });
    await world.settle();
    expect(await linkRuns(again)).toEqual(["succeeded"]);
    expect((await again.list()).runs.map(({ id }) => id)).toEqual(["r"]);
  });

  it("Q5 the store knows no token: only its SHA-256", async () => {
    const world = await openWorld(store);
    const { pawl, approval } = await asked(world);
    const { id, token } = await pawl.links.create(approval.id, ANN);
    await world.settle();
    expect(Buffer.from(token, "base64url")).toHaveLength(32);
    expect(await textOf(world.store, id)).not.toContain(token);
    expect(await reasonOf(pawl.links.open((await world.store.run(id))?.key ?? ""))).toBe("unknown");
  });

  it("Q5 an expired link is refused, to the moment, and its run ends", async () => {
    const world = await openWorld(store);
    const { pawl, approval } = await asked(world);
    const { token, expiresAt } = await pawl.links.create(approval.id, { ...ANN, expires: "1h" });
    await world.advance(expiresAt.getTime() - world.clock.now() - 1);
    expect((await pawl.links.open(token)).by).toBe("ann");
    await world.advance(1);
    expect(await reasonOf(pawl.links.open(token))).toBe("expired");
    expect(await reasonOf(pawl.links.decide(token, { decision: "approved" }))).toBe("expired");
    expect(await linkRuns(pawl)).toEqual(["succeeded"]);
    expect((await pawl.approvals.get(approval.id)).status).toBe("open");
  });

  it("Q5 a revoked link is refused at once, also where no worker is there to see it, and a retry does not bring it back", async () => {
    const world = await openWorld(store);
    const { pawl, approval } = await asked(world);
    const { id, token } = await pawl.links.create(approval.id, ANN);
    await world.settle();
    world.killAll();
    await world.fence();
    const client = await world.open();
    expect(await client.links.revoke(id)).toBe(true);
    expect(await reasonOf(client.links.decide(token, { decision: "approved" }))).toBe("revoked");
    expect(await client.links.revoke(id)).toBe(false);
    const { id: retried } = await client.retry(id);
    expect(retried).not.toBe(id);
    expect(await reasonOf(client.links.open(token))).toBe("revoked");
    expect((await client.links.list(approval.id)).map(({ status }) => status)).toEqual(["revoked", "revoked"]);
  });

  it("Q5 a link counts once: replayed it is refused, and of two at once one decides", async () => {
    const world = await openWorld(store);
    const { pawl, approval } = await asked(world, { quorum: 2, approvers: ["ann", "bob", "eve"] });
    const ann = await pawl.links.create(approval.id, ANN);
    const bob = await pawl.links.create(approval.id, { for: "bob" });
    await pawl.links.decide(ann.token, { decision: "approved" });
    expect(await reasonOf(pawl.links.decide(ann.token, { decision: "approved" }))).toBe("used");
    expect(await reasonOf(pawl.links.decide(ann.token, { decision: "denied" }))).toBe("used");
    const both = await Promise.allSettled(
      (["approved", "denied"] as const).map((decision) => pawl.links.decide(bob.token, { decision })),
    );
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    await world.settle();
    const { votes } = (await pawl.get("r").result()) as { readonly votes: readonly { readonly by: string }[] };
    expect(votes.map(({ by }) => by)).toEqual(["ann", "bob"]);
    expect((await world.journal("r")).filter((line) => line.startsWith("approval.decided"))).toHaveLength(1);
  });
});

describe("links to approvals", () => {
  it("Q5 B54 whoever looks a thousand times decides nothing and writes nothing", async () => {
    const world = await openWorld("memory");
    const { pawl, approval } = await asked(world);
    const { id, token } = await pawl.links.create(approval.id, ANN);
    await world.settle();
    const before = [await textOf(world.store, "r"), await textOf(world.store, id)];
    for (let n = 0; n < 1000; n++) await pawl.links.open(token);
    await world.settle();
    expect([await textOf(world.store, "r"), await textOf(world.store, id)]).toEqual(before);
  });

  it("Q5 a link with sign-in is of no use to whom it was forwarded; members of its role decide as themselves", async () => {
    const world = await openWorld("memory");
    const { pawl, approval } = await asked(world);
    const own = await pawl.links.create(approval.id, { for: "ann", signIn: true });
    const role = await pawl.links.create(approval.id, { for: "role:physician" });
    const eve = { name: "eve", roles: ["nurse"] };
    const paul = { name: "paul", roles: ["physician"] };
    for (const { token } of [own, role]) {
      expect(await reasonOf(pawl.links.open(token))).toBe("sign_in");
      expect(await reasonOf(pawl.links.decide(token, { decision: "approved" }, eve))).toBe("wrong_audience");
    }
    expect(await reasonOf(pawl.links.open(own.token, paul))).toBe("wrong_audience");
    expect(await reasonOf(pawl.links.open(role.token, { name: "role:physician", roles: [] }))).toBe("wrong_audience");
    await pawl.links.decide(role.token, { decision: "approved" }, paul);
    await world.settle();
    expect(await pawl.get("r").result()).toMatchObject({
      by: "paul",
      votes: [{ by: "paul", roles: ["physician"], link: { id: role.id, for: "role:physician" } }],
    });
    expect(await reasonOf(pawl.links.open(own.token, { name: "ann", roles: [] }))).toBe("decided");
  });

  it("Q5 somebody's session lends no role to a link of somebody else", async () => {
    const world = await openWorld("memory");
    const { pawl, approval } = await asked(world);
    const link = await pawl.links.create(approval.id, ANN);
    await pawl.links.decide(link.token, { decision: "approved" }, { name: "eve", roles: ["physician"] });
    await world.settle();
    expect(await pawl.get("r").result()).toMatchObject({ votes: [{ by: "ann", roles: [] }] });
  });

  it("Q5 Q6 a link decides about what it was made for: not what another page showed, not another run, not what was asked anew", async () => {
    const world = await openWorld("memory");
    const { pawl, flow, approval } = await asked(world);
    const { token } = await pawl.links.create(approval.id, ANN);
    const other = { decision: "approved", hash: "of something else" } as const;
    expect(await reasonOf(pawl.links.decide(token, other))).toBe("changed_action");
    await pawl.start(flow, undefined, { id: "r2" });
    await world.settle();
    // Whoever bends what is kept of an approval has a link that fits no more.
    const { approvals } = pawl;
    const bent = (change: object) => async (id: string) => ({ ...(await get(id)), ...change });
    const get = approvals.get.bind(approvals);
    approvals.get = bent({ hash: "of something else" });
    expect(await reasonOf(pawl.links.decide(token, { decision: "approved" }))).toBe("changed_action");
    approvals.get = bent({ run: "r2" });
    expect(await reasonOf(pawl.links.decide(token, { decision: "approved" }))).toBe("other_run");
    approvals.get = get;
    await pawl.cancel("r");
    expect(await reasonOf(pawl.links.decide(token, { decision: "approved" }))).toBe("closed");
    const second = (await pawl.approvals.list()).approvals[0]?.id ?? "";
    expect(await reasonOf(pawl.links.open((await pawl.links.create(second, ANN)).token.slice(1)))).toBe("unknown");
    expect((await pawl.approvals.get(second)).votes).toEqual([]);
  });

  it("Q5 allows no more than its person may: the actor, strangers and those whom an escalation has relieved are refused", async () => {
    const world = await openWorld("memory");
    const { pawl, approval } = await asked(world, {
      actor: "bob",
      fourEyes: true,
      approvers: ["ann", "bob"],
      escalate: [{ after: "1h", action: "escalate", to: ["cleo"], revoke: true }],
    });
    for (const person of ["bob", "eve", "role:nurse", "cleo"])
      expect((await errorOf(pawl.links.create(approval.id, { for: person })))["code"]).toBe("approval_mismatch");
    const { token } = await pawl.links.create(approval.id, ANN);
    await world.advance(HOUR);
    expect((await errorOf(pawl.links.decide(token, { decision: "approved" })))["code"]).toBe("approval_mismatch");
    await pawl.links.decide((await pawl.links.create(approval.id, { for: "cleo" })).token, { decision: "denied" });
    expect(await reasonOf(pawl.links.create(approval.id, { for: "cleo" }))).toBe("decided");
  });

  it("Q5 a link is made by pawl.links alone, for somebody, and never without sign-in for a role", async () => {
    const world = await openWorld("memory");
    const { pawl, approval } = await asked(world);
    const forged = { approval: approval.id, run: "r", hash: approval.hash, for: "ann", roles: [], signIn: false };
    for (const made of [
      () => pawl.start("pawl.link", forged, { key: "k" }),
      () => pawl.schedule("s", "pawl.link", { every: "1h", input: forged }),
      () => pawl.links.create(approval.id, { for: "role:physician", signIn: false }),
      () => pawl.links.create(approval.id, undefined as never),
    ])
      expect((await errorOf((async () => made())()))["code"]).toBe("invalid_argument");
    expect((await errorOf(pawl.links.create("nothing", ANN)))["code"]).toBe("approval_not_found");
    expect(await reasonOf(pawl.links.get("r"))).toBe("unknown");
    expect(await reasonOf(pawl.links.get(""))).toBe("unknown");
  });
});

describe("links in notifications", () => {
  it("Q5 X-23 each receiver who may decide gets a link of its own where there is a public address; the store has none of them", async () => {
    const world = await openWorld("memory");
    const sent: Notification[] = [];
    const { pawl, approval } = await asked(
      world,
      {},
      { publicUrl: "https://pawl.example/base/", notifiers: [{ name: "test", notify: (one) => void sent.push(one) }] },
    );
    const [notification] = sent;
    if (notification?.event !== "approval.requested") throw new Error("it was told");
    const { links = [] } = notification;
    expect(links.map((link) => link.for)).toEqual(["ann", "role:physician"]);
    const tokens = links.map(({ url }) => url.replace("https://pawl.example/base/approve/", ""));
    expect((await pawl.links.open(tokens[0] ?? "")).by).toBe("ann");
    expect(await reasonOf(pawl.links.open(tokens[1] ?? ""))).toBe("sign_in");
    for (const row of await world.store.runs({ limit: 100 }))
      for (const token of tokens) expect(await textOf(world.store, row.id)).not.toContain(token);
    await pawl.links.decide(tokens[0] ?? "", { decision: "approved" });
    await world.settle();
    expect((await pawl.approvals.get(approval.id)).decision?.by).toBe("ann");
  });

  it("has none without a public address, and refuses one that leads nowhere", async () => {
    const world = await openWorld("memory");
    const sent: Notification[] = [];
    await asked(world, {}, { notifiers: [{ name: "test", notify: (one) => void sent.push(one) }] });
    expect(sent[0]).not.toHaveProperty("links");
    for (const publicUrl of ["pawl.example", "ftp://pawl.example", "https://a:b@pawl.example", "https://x/?q=1"])
      expect((await errorOf(world.open([], { publicUrl })))["code"]).toBe("invalid_argument");
  });
});
