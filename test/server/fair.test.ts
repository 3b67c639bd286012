// What one sender asks for is not at the cost of the others: of the audit log, of the streams, of another store.
import { describe, expect, it, onTestFinished } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { workflow } from "../../src/core/workflow.ts";
import { networkOf } from "../../src/server/network.ts";
import { Refusals } from "../../src/server/refusals.ts";
import { SERVER_LIMITS } from "../../src/server/server-limits.ts";
import { memoryStore } from "../../src/stores/memory/memory-store.ts";
import { serverWorld, type World } from "./world.ts";

const waiting = workflow("waiting", (ctx) => ctx.waitFor("go"));

describe("refusals of nobody", () => {
  const DEED = { action: "POST /api/runs", subject: null, from: null, payload: null };
  const log = { debug() {}, info() {}, warn() {}, error: (message: string) => expect.fail(message) };
  const open = async () => {
    const clock = manualClock();
    const store = memoryStore();
    await store.open();
    onTestFinished(() => store.close());
    const refusals = new Refusals(clock, SERVER_LIMITS, log);
    const refuse = async (address: string, times: number) => {
      for (let n = 0; n < times; n++) await refusals.add(store, address, DEED, new Error("Sign in first."));
    };
    const records = async () =>
      (await store.audits({ after: 0, limit: 1000 })).map(({ action, detail }) => [action, JSON.parse(detail ?? "")]);
    return { clock, refusals, refuse, records };
  };

  it("Q16 Q20 RF1 RF2 a few of an address are recorded, and the rest as one line a minute, from however many addresses they come", async () => {
    const { clock, refusals, refuse, records } = await open();
    await refuse("192.0.2.1", 1000);
    await refuse("192.0.2.2", 1);
    expect(await records()).toHaveLength(6);
    const [since] = [new Date(clock.now()).toISOString()];
    clock.advance(60_000);
    await expect.poll(records).toHaveLength(7);
    const error = "995 more were refused.";
    expect((await records()).at(-1)).toEqual([
      "refused requests",
      { more: 995, since, addresses: ["192.0.2.1"], error },
    ]);
    clock.advance(600_000);
    expect(await records()).toHaveLength(7);
    for (let n = 0; n < 1000; n++) await refuse(`198.51.${n % 100}.${n % 250}`, 1);
    expect((await records()).length).toBeLessThanOrEqual(7 + SERVER_LIMITS.refusals.burst);
    await refusals.stop();
    const [action, detail] = (await records()).at(-1) as [string, { more: number; addresses: string[] }];
    expect([action, detail.more, detail.addresses.length]).toEqual(["refused requests", 900, 20]);
    // Nothing is left to wait for.
    expect(clock.nextDue()).toBe(Number.POSITIVE_INFINITY);
  });

  it("Q16 Q20 over HTTP strangers do not fill the audit log, and whoever is known is recorded each time", async () => {
    const { ask, app, pawl } = await serverWorld();
    const statuses = new Set<number>();
    for (let n = 0; n < 30; n++) {
      statuses.add((await ask("POST /api/runs", { as: "nobody", body: {} })).status);
      statuses.add((await ask("POST /api/session", { as: "nobody", body: { token: "wrong" } })).status);
    }
    for (let n = 0; n < 10; n++) statuses.add((await ask("POST /api/runs", { as: "viewer", body: {} })).status);
    expect([...statuses].toSorted()).toEqual([401, 403]);
    await app.stop();
    const records = await pawl.store.audits({ after: 0, limit: 1000 });
    expect(records.filter(({ who }) => who === "viewer-of-default")).toHaveLength(10);
    const nobody = records.filter(({ who }) => who === "nobody");
    expect(nobody).toHaveLength(6);
    expect(JSON.parse(nobody.at(-1)?.detail ?? "")).toMatchObject({ more: 55 });
  });

  it("Q16 addresses of one holder count as one: the first half of IPv6, and IPv4 however it is written", async () => {
    const networks = ["2001:db8:1:2::1", "2001:DB8:1:2:ffff:0:0:9", "2001:db8:1:3::1", "::ffff:192.0.2.7", "192.0.2.7"];
    expect(networks.map(networkOf)).toEqual([
      "2001:db8:1:2::/64",
      "2001:db8:1:2::/64",
      "2001:db8:1:3::/64",
      "192.0.2.7",
      "192.0.2.7",
    ]);
    expect(["::1", "fe80::1%eth0", "unknown", "1.2.3.4, x", "::ffff:1", "[::1]"].map(networkOf)).toEqual([
      "0:0:0:0::/64",
      "fe80:0:0:0::/64",
      "unknown",
      "1.2.3.4, x",
      "0:0:0:0::/64",
      "[::1]",
    ]);
    const { ask } = await serverWorld({ trustProxy: true, limits: { perAddress: { burst: 1, perSecond: 0.001 } } });
    const from = async (forwarded: string) =>
      (await ask("GET /api/health", { as: "nobody", headers: { "x-forwarded-for": forwarded } })).status;
    expect([await from("2001:db8::1"), await from("2001:db8::2"), await from("2001:db8:0:1::2")]).toEqual([
      200, 429, 200,
    ]);
  });
});

describe("two stores of one server", () => {
  const LIMITS = {
    perCredential: { burst: 30, perSecond: 0.001 },
    perTenant: { burst: 60, perSecond: 0.001 },
    streams: 8,
    streamsPerTenant: 4,
    streamsPerCredential: 3,
    bodyBytes: 10_000,
  };

  const statusOf = async (made: World, what: string, as: "viewer" | "operator" | "admin", store = "", body?: unknown) =>
    (await made.ask(what, { as: store === "" ? as : `${as}@${store}`, ...(body !== undefined && { body }) })).status;

  it("Q16 Q4 one that is at all of its limits holds up nobody of the other: requests, bodies, streams", async () => {
    const made = await serverWorld({ engine: { workflows: [waiting] }, others: ["loud"], limits: LIMITS });
    const loud = made.tenants["loud"];
    await loud?.start(waiting, undefined, { id: "w" });
    await made.pawl.start(waiting, undefined, { id: "w" });
    const follow = (as: "viewer" | "operator" | "admin", store = "") =>
      statusOf(made, "GET /api/runs/w/events", as, store);
    // Streams: three of one credential, four of the store.
    for (const status of [200, 200, 200, 429]) expect(await follow("viewer", "loud")).toBe(status);
    for (const status of [200, 429]) expect(await follow("operator", "loud")).toBe(status);
    expect([await follow("viewer"), await follow("operator"), made.app.parts.streams.count]).toEqual([200, 200, 6]);
    // Bodies and requests, until there is nothing left of either bucket.
    const large = { workflow: "waiting", input: "x".repeat(20_000) };
    const loudly: number[] = [];
    for (let n = 0; n < 40; n++) loudly.push(await statusOf(made, "POST /api/runs", "operator", "loud", large));
    for (let n = 0; n < 40; n++) loudly.push(await statusOf(made, "GET /api/runs", "viewer", "loud"));
    expect([...new Set(loudly)].toSorted()).toEqual([200, 413, 429]);
    expect(await statusOf(made, "GET /api/runs", "admin", "loud")).toBe(429);
    const quietly: number[] = [];
    for (let n = 0; n < 10; n++) quietly.push(await statusOf(made, "GET /api/runs", "viewer"));
    quietly.push(await statusOf(made, "POST /api/runs", "operator", "", { workflow: "waiting" }));
    quietly.push(await follow("admin"));
    expect(new Set(quietly)).toEqual(new Set([200, 201]));
    const logged = await made.pawl.store.audits({ after: 0, limit: 100 });
    expect(logged.map(({ who }) => who)).toEqual(["operator-of-default", "operator-of-default"]);
  });

  it("Q16 Q4 one whose store does not answer holds up nobody of the other", async () => {
    const slow = memoryStore();
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { runs } = slow;
    slow.runs = async (query) => {
      await held;
      return runs.call(slow, query);
    };
    const made = await serverWorld({ engine: { workflows: [waiting] }, others: ["slow"], stores: { slow } });
    const asked = Array.from({ length: 50 }, () => statusOf(made, "GET /api/runs", "viewer", "slow"));
    expect(await statusOf(made, "GET /api/runs", "viewer")).toBe(200);
    expect(await statusOf(made, "POST /api/runs", "operator", "", { workflow: "waiting" })).toBe(201);
    expect(await Promise.race([...asked, Promise.resolve("nothing yet")])).toBe("nothing yet");
    release();
    expect(new Set(await Promise.all(asked))).toEqual(new Set([200]));
  });
});
