import { describe, expect, it, onTestFinished } from "vitest";
import { memoryStore, Pawl, type Workflow, workflow } from "../../src/index.ts";
import { type ExportedRun, type ExportOptions, exportRun, replay } from "../../src/testing/index.ts";

const SECRET = "4111-1111";

async function exportOf<I>(
  flow: Workflow<I, unknown>,
  input: I,
  redact: ExportOptions["redact"],
): Promise<ExportedRun> {
  const pawl = await Pawl.open(memoryStore(), { workflows: [flow, child], handleSignals: false });
  onTestFinished(() => pawl.close());
  const run = await pawl.start(flow as unknown as Workflow, input, { key: "k1", tags: ["t1"] });
  await run.result().catch(() => {});
  const file = await exportRun(pawl, run.id, redact === undefined ? {} : { redact });
  return JSON.parse(JSON.stringify(file)) as ExportedRun;
}

const child = workflow("child", async (_ctx, _card: unknown) => SECRET);

function pay(card: string) {
  return { receipt: card };
}

/** Passes values on without reading them. */
const courier = workflow("courier", async (ctx, card: string) => {
  const kept = await ctx.step("fetch", async ({ save }) => {
    await save({ number: card });
    return new Map([["card", { number: card, of: [new Set([card])] }]]);
  });
  ctx.set("card", kept);
  ctx.note(`card ${SECRET}`);
  await ctx.step(pay, card).catch(() => {});
  await ctx.step("refuse", () => Promise.reject(new Error(`no ${SECRET}`))).catch(() => {});
  await ctx.call(child, card);
  return kept;
});

describe("redacted exports", () => {
  it("Q13 hold no value, no digest of one, and all keys, types, positions and times", async () => {
    const plain = await exportOf(courier, SECRET, undefined);
    expect(JSON.stringify(plain)).toContain(SECRET);
    const redacted = await exportOf(courier, SECRET, "all");
    expect(JSON.stringify(redacted)).not.toContain(SECRET);
    const digests = plain.entries.flatMap(({ value }) => (value as { digest?: string } | null)?.digest ?? []);
    expect(digests).toHaveLength(2);
    for (const digest of digests) expect(JSON.stringify(redacted)).not.toContain(digest);
    const shape = ({ entries }: ExportedRun) => entries.map(({ seq, type, key }) => [seq, type, key]);
    expect(shape(redacted)).toEqual(shape(plain));
    expect(redacted).toMatchObject({ isRedacted: true, run: { key: "k1", tags: ["t1"], workflow: "courier" } });
    expect(redacted.entries.every(({ at }) => Number.isFinite(at))).toBe(true);
  });

  it("Q13 I5 are replayed by code that passes values on without reading them", async () => {
    expect(await replay(courier, await exportOf(courier, SECRET, "all"))).toMatchObject({ ok: true });
  });

  it("Q13 I5 a replay that needs a value names it", async () => {
    const reader = workflow("reader", async (ctx) => {
      const order = await ctx.step("order", () => ({ total: 5, card: SECRET }));
      return order.total > 3 ? ctx.step("big", () => 1) : ctx.step("small", () => 1);
    });
    const all = await replay(reader, await exportOf(reader, undefined, "all"));
    expect(all).toMatchObject({ ok: false });
    expect(all.message).toContain('The value of step.completed "order" (entry 2) is redacted');
    expect(await replay(reader, await exportOf(reader, undefined, ["card"]))).toMatchObject({ ok: true });
    expect(await replay(reader, await exportOf(reader, undefined, ["order"]))).toMatchObject({ ok: false });
  });

  it("Q13 a name takes out properties at any depth, entries of maps, and the values of a step", async () => {
    const flow = workflow("flow", async (ctx) => {
      await ctx.step("deep", () => [{ a: { card: SECRET, __proto__: null } }, new Map([["card", SECRET]])]);
      await ctx.map([1], () => ctx.step("vault", () => SECRET));
      const error = Object.assign(new Error("refused"), { card: SECRET });
      await ctx.step("fails", () => Promise.reject(error)).catch(() => {});
      return "kept";
    });
    const text = JSON.stringify(await exportOf(flow, undefined, ["card", "vault"]));
    expect(text).not.toContain(SECRET);
    expect(text).toContain("kept");
    expect(text).toContain("refused");
  });

  it("Q8 a user's own object that looks like a mark is none, and __proto__ is data", async () => {
    const flow = workflow("flow", async (ctx) => {
      const odd = await ctx.step("odd", () => ({ $redacted: "string", ...JSON.parse('{"__proto__":{"x":1}}') }));
      const alike = await ctx.step("alike", () => ({ $redacted: "string" }));
      return [odd, alike, Object.keys(alike), (alike as Record<string, unknown>)["other"] === undefined];
    });
    expect(await replay(flow, await exportOf(flow, undefined, ["nothing"]))).toMatchObject({ ok: true });
    expect(({} as { x?: number }).x).toBeUndefined();
  });
});

describe("exports that are damaged", () => {
  const flow = workflow("flow", async (ctx) => ctx.step("a", () => new Date(1)));
  const broken: readonly (readonly [string, (file: ExportedRun) => unknown, RegExp])[] = [
    ["is no object", () => "pawl-run", /format is not "pawl-run"/],
    ["has another format", (file) => ({ ...file, format: "zip" }), /format is not/],
    ["is newer", (file) => ({ ...file, formatVersion: 7 }), /formatVersion is 7.*Upgrade Pawl/],
    ["has no version", ({ formatVersion: _, ...file }) => file, /formatVersion is not a whole number/],
    [
      "lacks a field of its row",
      (file) => ({ ...file, run: { ...file.run, traceId: undefined } }),
      /run\.traceId is missing/,
    ],
    ["has a bad state", (file) => ({ ...file, run: { ...file.run, state: "odd" } }), /run\.state cannot be "odd"/],
    ["has no entries", (file) => ({ ...file, entries: [] }), /entries is empty/],
    [
      "lacks an entry",
      (file) => ({ ...file, entries: file.entries.toSpliced(1, 1) }),
      /entries\[1\]\.seq is 2: entry 1 .*missing/,
    ],
    ["has entries in another order", (file) => ({ ...file, entries: file.entries.toReversed() }), /entries\[0\]\.type/],
    ["has a value that cannot be", (file) => edited(file, 2, { $date: "soon" }), /entries\[2\]\.value cannot be read/],
    [
      "has a payload of another type",
      (file) => edited(file, 0, 5),
      /entries\[0\]\.value cannot be that of an entry of type "run.started"/,
    ],
  ];

  const edited = (file: ExportedRun, seq: number, value: unknown) => ({
    ...file,
    entries: file.entries.map((entry) => (entry.seq === seq ? { ...entry, value } : entry)),
  });

  it.each(broken)("I23 one that %s is refused, the field named", async (_what, damage, message) => {
    const file = await exportOf(flow, undefined, undefined);
    await expect(replay(flow, damage(file) as ExportedRun)).rejects.toThrow(message);
  });

  it("I23 an entry of a later version's type is passed over", async () => {
    const file = await exportOf(flow, undefined, undefined);
    const { length } = file.entries;
    const later = {
      seq: length - 1,
      at: file.entries.at(-1)?.at ?? 0,
      type: "from.the.future" as never,
      key: null,
      value: 1,
    };
    const end = { ...(file.entries.at(-1) as (typeof file.entries)[number]), seq: length };
    expect(await replay(flow, { ...file, entries: [...file.entries.slice(0, -1), later, end] })).toMatchObject({
      ok: true,
    });
  });
});
