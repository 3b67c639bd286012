import { describe, expect, it } from "vitest";
import { z } from "zod";
import { clear, extend } from "./operation.ts";
import { plan, SetupPlan, UpdateStep } from "./plan.ts";
import { appending, reducing, replacingLatest, upsertingBy, when } from "./reducers.ts";
import { Session } from "./session.ts";
import { eventType } from "./session-event.ts";
import { type AnySlice, slice } from "./slice.ts";

interface Note {
  readonly id: string;
  readonly text: string;
}

const notes = slice<Note>("notes");
const trail = slice<string>("trail", { policy: "log" });

function sessionWith(...slices: AnySlice[]): Session {
  return new Session({ id: "s", createdAt: 1000, slices });
}

describe("queries", () => {
  it("S1-39 give the newest, all, and those that fit", () => {
    const session = sessionWith(notes);
    expect(session.query(notes).latest()).toBeNull();
    for (const id of ["a", "b", "c"]) session.add(notes, { id, text: id.toUpperCase() });
    expect(session.query(notes).latest()).toEqual({ id: "c", text: "C" });
    expect(
      session
        .query(notes)
        .all()
        .map(({ id }) => id),
    ).toEqual(["a", "b", "c"]);
    expect(session.query(notes).where(({ id }) => id !== "b")).toHaveLength(2);
  });

  it("S1-39 an answer stays what it was when the session goes on", () => {
    const session = sessionWith(notes);
    session.add(notes, { id: "a", text: "" });
    const before = session.query(notes).all();
    session.add(notes, { id: "b", text: "" });
    expect(before).toHaveLength(1);
  });

  it("a slice that the session does not have is empty, and nothing can be added to it", () => {
    const session = sessionWith();
    expect(session.query(notes).all()).toEqual([]);
    expect(session.has(notes)).toBe(false);
    expect(() => session.add(notes, { id: "a", text: "" })).toThrow('does not have slice "notes"');
  });
});

describe("X-1 reducers", () => {
  it("X-1 a slice appends by itself, and a reducer of its own takes that place", () => {
    const session = sessionWith(notes);
    session.add(notes, { id: "a", text: "1" });
    session.on(
      notes,
      notes.added,
      upsertingBy(({ id }) => id),
    );
    session.add(notes, { id: "b", text: "1" });
    session.add(notes, { id: "a", text: "2" });
    expect(session.query(notes).all()).toEqual([
      { id: "a", text: "2" },
      { id: "b", text: "1" },
    ]);
  });

  it("X-1 S1-30 a value goes to the slice of its type and to no other", () => {
    const others = slice<Note>("others");
    const session = sessionWith(notes, others);
    session.dispatch(others.added({ id: "x", text: "" }));
    expect([session.query(notes).all(), session.query(others).all()]).toEqual([[], [{ id: "x", text: "" }]]);
  });

  it("X-1 append, replace the latest, upsert by a key", () => {
    const Said = eventType<Note>("Said");
    const [kept, newest, byId] = [slice<Note>("kept"), slice<Note>("newest"), slice<Note>("byId")];
    const session = sessionWith(kept, newest, byId);
    session.on(kept, Said, appending());
    session.on(newest, Said, replacingLatest());
    session.on(
      byId,
      Said,
      upsertingBy(({ id }) => id),
    );
    for (const text of ["1", "2"]) session.dispatch(Said({ id: "a", text }));
    session.dispatch(Said({ id: "b", text: "3" }));
    const textsOf = (from: typeof kept) =>
      session
        .query(from)
        .all()
        .map(({ text }) => text);
    expect([textsOf(kept), textsOf(newest), textsOf(byId)]).toEqual([["1", "2", "3"], ["3"], ["2", "3"]]);
  });

  it("X-1 operations extend and clear some or all; null does nothing", () => {
    const Told = eventType<"two" | "noB" | "nothing" | "none">("Told");
    const session = sessionWith(notes);
    session.on(notes, Told, (_items, { payload }) => {
      if (payload === "two") return extend(["a", "b"].map((id) => ({ id, text: "" })));
      if (payload === "noB") return clear(({ id }) => id === "b");
      return payload === "none" ? clear() : null;
    });
    const ids = () =>
      session
        .query(notes)
        .all()
        .map(({ id }) => id);
    const seen = (["two", "nothing", "noB", "none"] as const).map((word) => {
      session.dispatch(Told(word));
      return ids();
    });
    expect(seen).toEqual([["a", "b"], ["a", "b"], ["a"], []]);
  });

  it("X-1 system events initialise and clear a slice", () => {
    const session = sessionWith(notes);
    session.dispatch(notes.initialised([{ id: "a", text: "" }]));
    expect(session.query(notes).all()).toEqual([{ id: "a", text: "" }]);
    session.dispatch(notes.cleared());
    expect(session.query(notes).all()).toEqual([]);
  });

  it("X-1 a slice that reduces itself begins with its initial value, or with that of the session", () => {
    const Counted = eventType<number>("Counted");
    const count = slice<{ n: number }>("count", {
      initial: () => [{ n: 10 }],
      on: [when(Counted, ({ n }: { n: number }, by) => (by === 0 ? null : { n: n + by }))],
    });
    const session = sessionWith(count);
    const other = sessionWith();
    other.install(count, { initial: () => [{ n: 100 }] });
    for (const by of [1, 0, 2]) {
      session.dispatch(Counted(by));
      other.dispatch(Counted(by));
    }
    expect([session, other].map((one) => one.query(count).all())).toEqual([[{ n: 13 }], [{ n: 103 }]]);
    other.install(count, { initial: () => [{ n: 0 }] });
    expect(other.query(count).all()).toEqual([{ n: 103 }]);
    session.dispatch(count.cleared());
    session.dispatch(Counted(1));
    expect(session.query(count).all()).toEqual([{ n: 11 }]);
  });

  it("X-1 S1-10 a reducer hears of events whose type extends its own", () => {
    const Found = eventType<string>("Found");
    const FoundBug = eventType<string>("FoundBug", { extends: Found });
    const session = sessionWith(trail);
    session.on(trail, Found, (_items, { payload }) => extend([payload]));
    session.dispatch(FoundBug("bug"));
    session.dispatch(JSON.parse(JSON.stringify(FoundBug("recorded"))));
    expect(session.query(trail).all()).toEqual(["bug", "recorded"]);
    expect([Found.is(FoundBug("x")), FoundBug.is(Found("x"))]).toEqual([true, false]);
  });

  it("X-2 one that fails is logged and isolated: the others apply", () => {
    const Said = eventType<string>("Said");
    const warnings: string[] = [];
    const [first, second, third] = [slice<string>("first"), slice<string>("second"), slice<string>("third")];
    const session = new Session({
      id: "s",
      createdAt: 0,
      slices: [first, second, third],
      log: { warn: (message) => warnings.push(message) },
    });
    session.on(first, Said, appending());
    session.on(second, Said, () => {
      throw new Error("no");
    });
    session.on(third, Said, appending());
    const { failures } = session.dispatch(Said("x"));
    expect([first, second, third].map((one) => session.query(one).all())).toEqual([["x"], [], ["x"]]);
    expect(failures).toMatchObject([{ slice: "second", type: "Said", error: { message: "no" } }]);
    expect(warnings).toEqual(['Slice "second" could not follow event "Said": no']);
  });

  it("X-2 one that dispatches has failed", () => {
    const Said = eventType<string>("Said");
    const session = sessionWith(trail, notes);
    session.on(trail, Said, () => {
      session.dispatch(notes.added({ id: "a", text: "" }));
      return null;
    });
    expect(session.dispatch(Said("x")).failures).toMatchObject([{ error: { code: "invalid_argument" } }]);
    expect(session.query(notes).all()).toEqual([]);
    session.add(notes, { id: "b", text: "" });
  });

  it("two slices cannot have one name; the same slice can be registered again", () => {
    const session = sessionWith(notes);
    session.add(notes, { id: "a", text: "" });
    session.register(notes);
    expect(session.query(notes).all()).toHaveLength(1);
    expect(() => session.register(slice("notes"))).toThrow('another slice with the name "notes"');
  });
});

describe("values", () => {
  it("are copies, and cannot be changed", () => {
    const boxes = slice<{ list: number[]; at: Date; map: Map<string, number>; set: Set<string> }>("boxes");
    const session = sessionWith(boxes);
    const list = [1];
    session.add(boxes, { list, at: new Date(5), map: new Map([["a", 1]]), set: new Set(["a"]) });
    list.push(2);
    const box = session.query(boxes).latest()!;
    expect(box.list).toEqual([1]);
    expect(() => box.list.push(3)).toThrow(TypeError);
    expect(() => box.at.setTime(0)).toThrow("cannot be changed");
    expect(() => box.map.set("b", 2)).toThrow("cannot be changed");
    expect(() => box.set.add("b")).toThrow("cannot be changed");
    expect(() => {
      box.list = [];
    }).toThrow(TypeError);
    expect(box).toEqual({ list: [1], at: new Date(5), map: new Map([["a", 1]]), set: new Set(["a"]) });
  });

  it("E-6 that could not be saved are refused with the path to what is wrong", () => {
    const session = sessionWith(slice("any"));
    const any = slice<unknown>("things");
    session.register(any);
    expect(() => session.add(any, { deep: [{ fn: () => 1 }] })).toThrow(
      expect.objectContaining({
        code: "snapshot_serialization",
        message: expect.stringContaining("item.deep[0].fn is a function"),
      }),
    );
    expect(session.query(any).all()).toEqual([]);
  });

  it("that do not fit the schema are refused, and none of their fellows come in", () => {
    const ages = slice("ages", { schema: z.object({ years: z.number().min(0) }), on: [] });
    const Came = eventType<number[]>("Came");
    const session = sessionWith(ages);
    session.on(ages, Came, (_items, { payload }) => extend(payload.map((years) => ({ years }))));
    expect(session.dispatch(Came([1, -1])).failures).toMatchObject([{ error: { code: "schema_mismatch" } }]);
    session.add(ages, { years: 2 });
    expect(session.query(ages).all()).toEqual([{ years: 2 }]);
    expect(() => session.add(ages, { years: -1 })).toThrow("does not fit its schema");
  });
});

describe("X-4 transactions", () => {
  const change = (session: Session) => {
    session.add(notes, { id: "b", text: "" });
    session.add(trail, "b");
  };
  const begin = () => {
    const session = sessionWith(notes, trail);
    session.add(notes, { id: "a", text: "" });
    return session;
  };
  const idsOf = (session: Session) =>
    session
      .query(notes)
      .all()
      .map(({ id }) => id);

  it("X-4 X-3 one that throws leaves the state as it was, and the log with what happened", () => {
    const session = begin();
    expect(() =>
      session.transaction(() => {
        change(session);
        throw new Error("no");
      }),
    ).toThrow("no");
    expect([idsOf(session), session.query(trail).all()]).toEqual([["a"], ["b"]]);
  });

  it("X-4 one that gives success: false is undone, any other is kept", () => {
    const session = begin();
    const failed = session.transaction(() => {
      change(session);
      return { success: false };
    });
    expect([failed, idsOf(session)]).toEqual([{ success: false }, ["a"]]);
    session.transaction(() => change(session));
    expect(idsOf(session)).toEqual(["a", "b"]);
  });

  it("X-4 holds for asynchronous work, and nests", async () => {
    const session = begin();
    const failing = session.transaction(async () => {
      change(session);
      await session.transaction(async () => {
        await Promise.resolve();
        session.add(notes, { id: "c", text: "" });
      });
      expect(idsOf(session)).toEqual(["a", "b", "c"]);
      throw new Error("no");
    });
    await expect(failing).rejects.toThrow("no");
    expect(idsOf(session)).toEqual(["a"]);
    await session.transaction(async () => change(session));
    expect(idsOf(session)).toEqual(["a", "b"]);
  });

  it("X-1 a second one is refused while one is under way, and a locked section waits for it", async () => {
    const session = begin();
    const order: string[] = [];
    let finish = () => {};
    const first = session.transaction(async () => {
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      order.push("transaction");
    });
    expect(() => session.transaction(() => {})).toThrow("cannot begin while another one");
    const second = session.locked(async () => {
      order.push("locked");
      await session.locked(() => order.push("again"));
      session.transaction(() => order.push("inner"));
    });
    const third = session.locked(() => order.push("last"));
    finish();
    await Promise.all([first, second, third]);
    expect(order).toEqual(["transaction", "locked", "again", "inner", "last"]);
  });

  it("X-1 a locked section that throws lets the next one in", async () => {
    const session = begin();
    const failing = session.locked(() => {
      throw new Error("no");
    });
    const next = session.locked(() => "in");
    await expect(failing).rejects.toThrow("no");
    expect(await next).toBe("in");
  });
});

describe("X-1 clones and families", () => {
  it("X-1 a clone has everything and goes its own way", () => {
    const Said = eventType<string>("Said");
    const session = new Session({ id: "s", createdAt: 7, tags: ["x"], slices: [plan, trail] });
    session.on(trail, Said, appending());
    session.dispatch(SetupPlan({ objective: "o", steps: ["a"] }));
    const copy = session.clone();
    expect(copy.snapshot({ includeAll: true })).toEqual(session.snapshot({ includeAll: true }));
    copy.dispatch(UpdateStep({ id: 1, status: "done" }));
    copy.dispatch(Said("copy"));
    expect(session.query(plan).latest()?.status).toBe("active");
    expect(session.query(trail).all()).toEqual([]);
    expect([copy.query(plan).latest()?.status, copy.query(trail).all()]).toEqual(["completed", ["copy"]]);
  });

  it("X-1 parents and children are walked from any of them", () => {
    const make = (id: string, parent?: Session) => new Session({ id, createdAt: 0, ...(parent && { parent }) });
    const root = make("root");
    const left = make("left", root);
    const leaf = make("leaf", left);
    make("right", root);
    expect([...root.walk()].map(({ id }) => id)).toEqual(["root", "left", "leaf", "right"]);
    expect([leaf.root().id, leaf.parent?.id, root.parent, root.children.length]).toEqual(["root", "left", null, 2]);
  });
});

it("X-1 a reducer given with the slice follows many items", () => {
  const Dropped = eventType<string>("Dropped");
  const list = slice<string>("list", {
    initial: () => ["a", "b"],
    on: [reducing(Dropped, (_items: readonly string[], { payload }) => clear((item) => item === payload))],
  });
  const session = sessionWith(list);
  session.dispatch(Dropped("a"));
  expect(session.query(list).all()).toEqual(["b"]);
});
