import { describe, expect, it } from "vitest";
import { fires, type PawlEvent, type Trigger } from "../../src/core/trigger.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, openWorld, STORES, type Workflows } from "../behaviour/harness.ts";

const PAID = { type: "order.paid", id: "evt-1", data: { order: 17, cents: 4200, customer: { country: "NO" } } };

const book = workflow({ name: "book", on: { event: "order.paid" } }, async (_ctx, order: unknown) => order);
const large = workflow(
  { name: "large", on: [{ event: "order.paid", where: { cents: { gte: 4000 } }, input: "event" }] },
  async (_ctx, event: PawlEvent) => event.id,
);
const small = workflow({ name: "small", on: { event: "order.paid", where: { cents: { lt: 4000 } } } }, async () => {});
const FLOWS: Workflows = [book, large, small];

describe.each(STORES)("events on %s", (store) => {
  it("S2-12 S2-51 X-22 three duplicates of an event, at once, later and after a restart: one run of each workflow that it fits", async () => {
    const world = await openWorld(store);
    const pawl = await world.open(FLOWS);
    const first = await Promise.all([pawl.emit(PAID), pawl.emit(PAID), pawl.emit(PAID)]);
    await world.settle();
    const later = await pawl.emit(PAID);
    const again = await world.restart(FLOWS);
    const restarted = await again.emit(PAID);
    for (const answer of [...first, later]) expect(answer).toEqual(restarted);
    expect(restarted.runs.map((one) => one.workflow)).toEqual(["book", "large"]);
    const { runs } = await again.list();
    expect(runs.map(({ workflow: name, key, tags }) => [name, key, tags]).sort()).toEqual([
      ["book", "event:evt-1", ["event:order.paid"]],
      ["large", "event:evt-1", ["event:order.paid"]],
    ]);
    expect(await again.get(restarted.runs[0]?.run ?? "").result()).toEqual(PAID.data);
    expect(await again.get(restarted.runs[1]?.run ?? "").result()).toBe("evt-1");
  });

  it("S2-52 the same id with other content is a conflict that names the run; another id is another event", async () => {
    const world = await openWorld(store);
    const pawl = await world.open([book]);
    const [run] = (await pawl.emit(PAID)).runs;
    const error = await errorOf(pawl.emit({ ...PAID, data: { order: 18 } }));
    expect(error).toMatchObject({ code: "idempotency_conflict", fields: { run: run?.run } });
    expect((await pawl.emit({ ...PAID, id: "evt-2" })).runs[0]?.run).not.toBe(run?.run);
    await world.settle();
    expect((await pawl.list()).runs).toHaveLength(2);
  });

  it("X-22 whoever has only the store knows what its workers' workflows are started by", async () => {
    const world = await openWorld(store);
    const worker = await world.open(FLOWS);
    const client = await world.open([], { triggers: [{ workflow: "small", event: "order.refunded" }] });
    expect((await client.emit(PAID)).runs.map((one) => one.workflow)).toEqual(["book", "large"]);
    const refunded = await client.emit({ type: "order.refunded", id: "evt/with # odd characters" });
    expect(refunded.runs.map((one) => one.workflow)).toEqual(["small"]);
    expect(await client.emit({ type: "order.refunded", id: "evt/with # odd characters" })).toEqual(refunded);
    expect(await client.emit({ type: "order.lost", id: "evt-9" })).toEqual({ runs: [] });
    expect((await worker.list()).runs).toHaveLength(3);
  });
});

describe("filters", () => {
  const { data } = PAID;
  const fits = (where: NonNullable<Trigger["where"]>) => fires({ event: "order.paid", where }, { ...PAID, data });

  it("X-22 compare fields: equal, one of, there or not, and numbers", () => {
    const holding: NonNullable<Trigger["where"]>[] = [
      {},
      { order: 17 },
      { "customer.country": { in: ["SE", "NO"] } },
      { "customer.country": { eq: "NO", exists: true } },
      { "customer.vat": { exists: false } },
      { cents: { gt: 4199, gte: 4200, lt: 4201, lte: 4200 } },
      { order: 17, cents: { in: [4200] } },
    ];
    const failing: NonNullable<Trigger["where"]>[] = [
      { order: "17" },
      { order: 17, "customer.country": "SE" },
      { "customer.country": { in: [] } },
      { "customer.country": { exists: false } },
      { "customer.vat": { exists: true } },
      { "customer.vat": { eq: null } },
      { cents: { gt: 4200 } },
      { cents: { gte: 4201 } },
      { cents: { lt: 4200 } },
      { cents: { lte: 4199 } },
      { "customer.country": { gt: 0 } },
      { "customer.country.length": 2 },
    ];
    expect(holding.filter((where) => !fits(where))).toEqual([]);
    expect(failing.filter((where) => fits(where))).toEqual([]);
    expect(fires({ event: "order.refunded" }, PAID)).toBe(false);
  });

  it("Q9 ask for no property that every object has", () => {
    for (const path of ["constructor", "__proto__", "constructor.name", "customer.toString"])
      expect(fits({ [path]: { exists: true } })).toBe(false);
  });

  it("X-22 refuse a mistake where they are declared: it would start nothing, and nobody would know why", async () => {
    const bad: unknown[] = [
      null,
      "order.paid",
      { event: "" },
      { event: "a", where: "b" },
      { event: "a", where: { "": 1 } },
      { event: "a", where: { "b..c": 1 } },
      { event: "a", where: { b: {} } },
      { event: "a", where: { b: { greater: 1 } } },
      { event: "a", where: { b: { gt: "1" } } },
      { event: "a", where: { b: { in: "c" } } },
      { event: "a", where: { b: { exists: 1 } } },
      { event: "a", where: { b: { eq: {} } } },
      { event: "a", input: "all" },
    ];
    const made = (on: unknown) => async () => workflow({ name: "w", on: on as Trigger }, async () => {});
    for (const on of bad)
      expect([on, (await errorOf(made(on)()))["code"]]).toEqual([on, expect.stringMatching(/^invalid_/)]);
    const world = await openWorld("memory");
    const triggers = [{ workflow: "w", event: "a", where: { b: {} } }];
    expect((await errorOf(world.open([], { triggers })))["code"]).toBe("invalid_argument");
    const pawl = await world.open([book]);
    for (const event of [null, {}, { type: "a" }, { type: "a", id: "" }, { type: "a", id: 1 }, { type: 1, id: "a" }])
      expect((await errorOf(pawl.emit(event as PawlEvent)))["code"]).toMatch(/^invalid_/);
  });
});
