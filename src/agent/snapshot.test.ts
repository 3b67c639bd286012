import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { plan, SetupPlan, UpdateStep } from "./plan.ts";
import { Session, type SessionOptions } from "./session.ts";
import { eventType } from "./session-event.ts";
import { type AnySlice, type Slice, slice } from "./slice.ts";
import { parseSnapshot, snapshotText } from "./snapshot.ts";

const leaf = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.double(),
  fc.integer(),
  fc.bigInt(),
  fc.boolean(),
  fc.constantFrom(null, undefined),
  fc.date({ noInvalidDate: false }),
  fc.uint8Array({ maxLength: 8 }),
);

const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    leaf,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.oneof(fc.string(), fc.constantFrom("__proto__", "$date", "1")), tie("value"), {
      maxKeys: 3,
      noNullPrototype: true,
    }),
    fc.array(fc.tuple(tie("value"), tie("value")), { maxLength: 3 }).map((entries) => new Map(entries)),
    fc.array(tie("value"), { maxLength: 3 }).map((items) => new Set(items)),
  ),
}));

const name = fc.stringMatching(/^[a-z][a-z0-9_.@-]{0,12}$/);
const saved = fc.uniqueArray(
  fc.record({
    name,
    version: fc.integer({ min: 1, max: 9 }),
    policy: fc.constantFrom("state" as const, "log" as const),
    items: fc.array(value, { maxLength: 4 }),
  }),
  { selector: (one) => one.name, maxLength: 4 },
);

const facts = fc.record({
  id: name,
  createdAt: fc.integer({ min: 0, max: 4e12 }),
  tags: fc.array(name, { maxLength: 3 }),
});

const fresh = (slices: readonly AnySlice[]): Session => new Session({ id: "new", createdAt: 1, slices });

function restoredFrom(text: string, slices: readonly AnySlice[]): Session {
  const session = fresh(slices);
  session.restore(parseSnapshot(text));
  return session;
}

describe("a snapshot", () => {
  it("S1-12 S1-2 X-5 goes to text and back without loss, whatever the slices hold", () => {
    fc.assert(
      fc.property(saved, facts, (given, options: SessionOptions) => {
        const slices = given.map(({ name, version, policy }) => slice<unknown>(name, { version, policy }));
        const session = new Session({ ...options, slices });
        given.forEach(({ items }, index) => {
          for (const item of items) session.add(slices[index]!, item);
        });
        const all = session.snapshot({ includeAll: true });
        const text = snapshotText(all);
        expect(parseSnapshot(text)).toEqual(all);
        const other = fresh(slices);
        other.restore(parseSnapshot(text), { logs: "replace" });
        expect(other.snapshot({ includeAll: true })).toEqual(all);
        expect(snapshotText(other.snapshot({ includeAll: true }))).toBe(text);
        given.forEach(({ items }, index) => {
          expect(other.query(slices[index]!).all()).toStrictEqual(items);
        });
      }),
      { numRuns: 300 },
    );
  });

  it("X-5 has the same bytes for the same state, in whatever order it came to be", () => {
    const [a, b] = [slice<object>("a"), slice<object>("b")];
    const one = new Session({ id: "s", createdAt: 0, tags: ["y", "x", "y"], slices: [a, b] });
    const two = new Session({ id: "s", createdAt: 0, tags: ["x", "y"], slices: [b, a] });
    one.add(a, { x: 1, y: { p: 1, q: [{ m: 1, n: 2 }] } });
    one.add(b, { z: 1 });
    two.add(b, { z: 1 });
    two.add(a, { y: { q: [{ n: 2, m: 1 }], p: 1 }, x: 1 });
    expect(snapshotText(two.snapshot())).toBe(snapshotText(one.snapshot()));
  });

  it("S1-13 X-5 has this envelope", () => {
    const parent = new Session({ id: "parent", createdAt: 0 });
    const session = new Session({
      id: "s",
      createdAt: Date.UTC(2026, 0, 2),
      tags: ["beta", "alpha"],
      parent,
      slices: [slice<{ at: Date }>("visits", { version: 2 }), slice("trail", { policy: "log" })],
    });
    new Session({ id: "child", createdAt: 0, parent: session });
    const visits = slice<{ at: Date }>("more");
    session.register(visits);
    session.add(visits, { at: new Date(0) });
    expect(JSON.parse(snapshotText(session.snapshot()))).toEqual({
      version: 1,
      id: "s",
      created_at: "2026-01-02T00:00:00.000Z",
      tags: ["alpha", "beta"],
      parent_id: "parent",
      children_ids: ["child"],
      policies: { more: "state", opened_sections: "state", trail: "log", visits: "state" },
      slices: [
        { slice_type: "more", item_type: "more@1", items: [{ at: { $date: "1970-01-01T00:00:00.000Z" } }] },
        { slice_type: "opened_sections", item_type: "opened_sections@1", items: [] },
        { slice_type: "visits", item_type: "visits@2", items: [] },
      ],
    });
  });

  it("S1-13 keeps the links of a family", () => {
    const root = new Session({ id: "root", createdAt: 0 });
    const middle = new Session({ id: "middle", createdAt: 0, parent: root });
    for (const id of ["y", "x"]) new Session({ id, createdAt: 0, parent: middle });
    const text = snapshotText(middle.snapshot());
    const restored = restoredFrom(text, []);
    expect(restored.snapshot()).toMatchObject({ id: "middle", parentId: "root", childrenIds: ["x", "y"] });
    expect(snapshotText(restored.snapshot())).toBe(text);
  });

  it("S1-14 has no events, reducers or observers, and stays as large as it is over 10,000 of them", () => {
    const Telemetry = eventType<{ n: number }>("Telemetry");
    const trail = slice<{ n: number }>("trail", { policy: "log" });
    const session = fresh([plan, trail]);
    session.on(trail, Telemetry, (_items, { payload }) =>
      payload.n % 2 === 0 ? null : { kind: "append", items: [payload] },
    );
    session.dispatch(SetupPlan({ objective: "o", steps: ["a"] }));
    const before = snapshotText(session.snapshot());
    for (let n = 0; n < 10_000; n++) session.dispatch(trail.added({ n }));
    for (let n = 0; n < 10; n++) session.dispatch(Telemetry({ n }));
    expect(session.query(trail).all()).toHaveLength(10_005);
    expect(snapshotText(session.snapshot())).toBe(before);
    expect(before).not.toMatch(/Telemetry|SetupPlan|reducer|"trail@/);
  });

  it("S1-15 restored into a new session, reducers go on from it", () => {
    const session = fresh([plan]);
    session.dispatch(SetupPlan({ objective: "o", steps: ["a", "b"] }));
    const restored = restoredFrom(snapshotText(session.snapshot()), [plan]);
    restored.dispatch(UpdateStep({ id: 2, status: "done" }));
    expect(
      restored
        .query(plan)
        .latest()
        ?.steps.map(({ status }) => status),
    ).toEqual(["pending", "done"]);
  });
});

describe("restoring", () => {
  const notes = slice<string>("notes");
  const trail = slice<string>("trail", { policy: "log" });

  function textOf(slices: readonly Slice<string>[], item = "x"): string {
    const session = fresh(slices);
    for (const one of slices) session.add(one, item);
    return snapshotText(session.snapshot({ includeAll: true }));
  }

  const failureOf = (work: () => unknown): unknown => {
    try {
      work();
    } catch (error) {
      return error;
    }
    return null;
  };

  it("X-3 brings state back and keeps logs, unless they are to be replaced", () => {
    const session = fresh([notes, trail]);
    session.add(notes, "before");
    session.add(trail, "before");
    const snapshot = session.snapshot({ includeAll: true });
    session.add(notes, "after");
    session.add(trail, "after");
    session.restore(snapshot);
    expect([session.query(notes).all(), session.query(trail).all()]).toEqual([["before"], ["before", "after"]]);
    session.restore(snapshot, { logs: "replace" });
    expect(session.query(trail).all()).toEqual(["before"]);
    expect(session.snapshot().slices.map((one) => one.slice)).toEqual(["notes", "opened_sections"]);
  });

  it("S1-65 C-28 E-7 a slice that the session does not have is an error that names it", () => {
    const renamed = slice<string>("remarks");
    const session = fresh([renamed]);
    session.add(renamed, "kept");
    const error = failureOf(() => session.restore(parseSnapshot(textOf([notes, slice("other")]))));
    expect(error).toMatchObject({
      code: "snapshot_restore",
      message: expect.stringContaining("slices of unknown type: notes, other."),
      fields: { reason: "unknown_type", slices: ["notes", "other"], registered: ["opened_sections", "remarks"] },
    });
    expect([session.query(renamed).all(), session.id]).toEqual([["kept"], "new"]);
  });

  it("C-28 it can be dropped, or the session left fresh", () => {
    const known = slice<string>("known");
    const snapshot = parseSnapshot(textOf([notes, known]));
    const [dropping, untouched] = [fresh([known]), fresh([known])];
    expect(dropping.restore(snapshot, { onUnknownSlice: "drop" })).toEqual({ restored: true, unknown: ["notes"] });
    expect(untouched.restore(snapshot, { onUnknownSlice: "fresh" })).toEqual({ restored: false, unknown: ["notes"] });
    expect([dropping, untouched].map((one) => one.query(known).all())).toEqual([["x"], []]);
  });

  it("C-28 a slice that the snapshot does not tell of is empty, or begins as in a new session", () => {
    const added = slice<string>("added");
    const counted = slice<number>("counted", { initial: () => [1] });
    const session = fresh([notes, added, counted]);
    session.add(added, "gone");
    session.add(counted, 2);
    session.restore(parseSnapshot(textOf([notes])));
    expect([session.query(notes).all(), session.query(added).all(), session.query(counted).all()]).toEqual([
      ["x"],
      [],
      [1],
    ]);
  });

  it("C-28 a renamed slice finds what it had under its former name", () => {
    const renamed = slice<string>("remarks", { formerly: ["notes"] });
    expect(
      restoredFrom(textOf([notes]), [renamed])
        .query(renamed)
        .all(),
    ).toEqual(["x"]);
  });

  it("S1-66 items of an older version go through their migrations, one after the other", () => {
    const newer = slice<{ text: string; length: number }>("notes", {
      version: 3,
      migrate: {
        1: (item) => ({ text: item }),
        2: (item) => ({ ...(item as { text: string }), length: (item as { text: string }).text.length }),
      },
    });
    expect(
      restoredFrom(textOf([notes], "abc"), [newer])
        .query(newer)
        .all(),
    ).toEqual([{ text: "abc", length: 3 }]);
  });

  it("S1-66 E-7 without a migration, or from a newer version, it is an error of its own", () => {
    const [gap, older] = [
      slice("notes", { version: 3, migrate: { 2: (item) => item } }),
      slice<string>("notes", { version: 2 }),
    ];
    expect(failureOf(() => restoredFrom(textOf([notes]), [gap]))).toMatchObject({
      code: "snapshot_restore",
      fields: { reason: "slice_version", slices: ["notes"], saved: 1, current: 3 },
      message: expect.stringContaining("migrate: { 1: (item) => … }"),
    });
    expect(failureOf(() => restoredFrom(textOf([older]), [notes]))).toMatchObject({
      fields: { reason: "slice_version", saved: 2, current: 1 },
    });
  });

  it("S1-65 E-7 a value that does not fit, or a migration that throws, is a bad value, and nothing is changed", () => {
    const strict = slice("notes", { schema: z.string().min(3) });
    const failing = slice("notes", {
      version: 2,
      migrate: {
        1: () => {
          throw new Error("no");
        },
      },
    });
    const session = fresh([strict, trail]);
    session.add(strict, "kept");
    expect(failureOf(() => session.restore(parseSnapshot(textOf([notes]))))).toMatchObject({
      code: "snapshot_restore",
      fields: { reason: "bad_value", slices: ["notes"], index: 0 },
    });
    expect([session.query(strict).all(), session.id]).toEqual([["kept"], "new"]);
    expect(failureOf(() => restoredFrom(textOf([notes]), [failing]))).toMatchObject({
      fields: { reason: "bad_value" },
    });
  });

  it.each([
    ["not JSON", (text: string) => text.slice(0, -20), "bad_envelope"],
    ["no object", () => "[]", "bad_envelope"],
    ["a newer envelope", (text: string) => text.replace('"version":1', '"version":2'), "bad_envelope"],
    ["no id", (text: string) => text.replace('"id":"new"', '"id":7'), "bad_envelope"],
    ["no time", (text: string) => text.replace(/"created_at":"[^"]*"/, '"created_at":"soon"'), "bad_envelope"],
    ["no slices", (text: string) => text.replace(/"slices":\[.*\],"tags"/, '"slices":null,"tags"'), "bad_envelope"],
    ["no version of a slice", (text: string) => text.replace('"notes@1"', '"notes"'), "bad_envelope"],
    ["a slice twice", (text: string) => text.replaceAll("opened_sections", "notes"), "bad_envelope"],
    ["an odd policy", (text: string) => text.replace('"notes":"state"', '"notes":"stat"'), "bad_envelope"],
    ["tags that are none", (text: string) => text.replace('"tags":[]', '"tags":[1]'), "bad_envelope"],
    ["an unreadable value", (text: string) => text.replace('["x"]', '[{"$date":"never"}]'), "bad_value"],
  ])("E-7 a text with %s is refused", (_what, damage, reason) => {
    const text = textOf([notes]);
    const damaged = damage(text);
    expect(damaged).not.toBe(text);
    expect(failureOf(() => parseSnapshot(damaged))).toMatchObject({ code: "snapshot_restore", fields: { reason } });
  });
});

it("E-6 a value that a codec refuses is told by its slice", () => {
  const snapshot = { ...fresh([]).snapshot(), slices: [{ slice: "odd", version: 1, items: [() => 1] }] };
  expect(() => snapshotText(snapshot)).toThrow(
    expect.objectContaining({ code: "snapshot_serialization", fields: { slice: "odd" } }),
  );
});
