// Guards over services: comments, things that exist once by their name, notifications, what may be repeated, and a detector of one's own.

import { join } from "node:path";
import { comment, createIfAbsent, notifyOnce, repeatable } from "pawl/guards";
import { describe, expect, it, onTestFinished } from "vitest";
import type { EffectSpec } from "../../src/core/effect.ts";
import { built, startChild } from "../child.ts";
import { doTwice, infoOf, loseRecord, tempFolder, undoInfoOf } from "./lost-record.ts";

/** A tracker that gives its comments out in pages of two. */
class Tracker {
  readonly comments: { id: number; body: string }[] = [];

  async *pages() {
    for (const one of this.comments) yield one;
  }

  post(body: string) {
    const made = { id: this.comments.length + 1, body };
    this.comments.push(made);
    return { ...made };
  }
}

describe("comment", () => {
  const guarded = (tracker: Tracker, text = "Built.") =>
    comment({ list: () => tracker.pages(), post: (body) => tracker.post(body), text });

  it("S0-27 S0-34 two executions in one run give one comment, and a second run its own; the unguarded twin gives two", async () => {
    const [tracker, other] = [new Tracker(), new Tracker()];
    const [first, second] = await loseRecord(() => guarded(tracker), "run-1/report");
    expect(second).toEqual(first);
    expect(tracker.comments).toEqual([{ id: 1, body: "<!-- pawl run-1/report -->\nBuilt." }]);
    await doTwice(() => guarded(tracker), "run-1/report");
    expect(tracker.comments.length).toBe(1);
    await loseRecord(() => guarded(tracker), "run-2/report");
    expect(tracker.comments.length).toBe(2);
    await loseRecord(() => ({ do: () => other.post("Built.") }));
    expect(other.comments.length).toBe(2);
  });

  it("S0-27 steps whose keys begin alike, and comments that only quote the marker, are not taken for it", async () => {
    const tracker = new Tracker();
    await guarded(tracker).do(infoOf("run-1/report#2"));
    tracker.post("> <!-- pawl run-1/report -->\n> Built.\n\nWhat is that?");
    await guarded(tracker).do(infoOf("run-1/report"));
    expect(tracker.comments.length).toBe(3);
  });

  it("S0-27 no key can end the marker, and comments may be texts with a marker and a reader of one's own", async () => {
    const posts: string[] = [];
    const key = "run-1/a --> b\nc";
    const make = () =>
      comment({
        list: async () => posts,
        post: (text) => posts.push(text) && text,
        text: "Hello",
        read: (post) => `  ${post}`,
        marker: (name) => `[${name}]`,
      });
    await loseRecord(make, key);
    expect(posts).toEqual(["[run-1/a%20--%3E%20b%0Ac]\nHello"]);
  });

  it("S0-27 a marker of one's own that ends with the key is not taken for that of a key which begins alike", async () => {
    const posts: string[] = [];
    const make = () =>
      comment({
        list: () => posts,
        post: (text) => posts.push(text) && text,
        text: "Hello",
        marker: (key) => `Ref: ${key}`,
      });
    for (const key of ["run-1/say#2", "run-1/say again", "run-1/say"]) await loseRecord(make, key);
    expect(posts).toEqual(["Ref: run-1/say#2\nHello", "Ref: run-1/say%20again\nHello", "Ref: run-1/say\nHello"]);
  });

  it("undo takes away what was posted, if it is told how", async () => {
    const tracker = new Tracker();
    const spec = comment({
      list: () => tracker.comments,
      post: (body) => tracker.post(body),
      text: "Built.",
      remove: ({ id }) => tracker.comments.splice(0, 1, { id, body: "removed" }),
    });
    await spec.undo?.(await spec.do(infoOf("run-1/report")), undoInfoOf("run-1/report"));
    expect(tracker.comments).toEqual([{ id: 1, body: "removed" }]);
    expect(guarded(tracker).undo).toBeUndefined();
  });
});

describe("createIfAbsent", () => {
  /** Jobs by name. One more turn passes between a look and what follows from it, as with any service. */
  class Jobs {
    readonly made: string[] = [];
    readonly isUnique: boolean;

    constructor(isUnique: boolean) {
      this.isUnique = isUnique;
    }

    async find(name: string): Promise<{ name: string } | undefined> {
      const found = this.made.find((one) => one === name);
      await new Promise(setImmediate);
      return found === undefined ? undefined : { name: found };
    }

    async create(name: string): Promise<{ name: string }> {
      if (this.isUnique && this.made.includes(name)) throw new Error("409 exists");
      this.made.push(name);
      return { name };
    }
  }

  const guarded = (jobs: Jobs, lock?: string) =>
    createIfAbsent({
      find: () => jobs.find("nightly"),
      create: () => jobs.create("nightly"),
      ...(lock !== undefined && { lock }),
    });

  it("S0-32 S0-34 two executions give one job, whoever has made it; the unguarded twin gives two", async () => {
    const [jobs, twin] = [new Jobs(false), new Jobs(false)];
    await loseRecord(() => guarded(jobs), "run-1/schedule");
    expect(await guarded(jobs).do(infoOf("run-2/schedule"))).toEqual({ name: "nightly" });
    expect(jobs.made).toEqual(["nightly"]);
    await loseRecord(() => ({ do: () => twin.create("nightly") }));
    expect(twin.made.length).toBe(2);
  });

  it("S0-32 executions that begin together give one job where the outside refuses a second one of the name", async () => {
    const jobs = new Jobs(true);
    const all = Array.from({ length: 5 }, (_, i) => guarded(jobs).do(infoOf(`run-${i}/schedule`)));
    expect(await Promise.all(all)).toEqual(all.map(() => ({ name: "nightly" })));
    expect(jobs.made).toEqual(["nightly"]);
  });

  it("S0-32 executions that begin together give one job with a lock, and several without", async () => {
    const [jobs, twin] = [new Jobs(false), new Jobs(false)];
    const lock = join(tempFolder(), "jobs.lock");
    await Promise.all([1, 2, 3].map((i) => guarded(jobs, lock).do(infoOf(`run-${i}/schedule`))));
    expect(jobs.made).toEqual(["nightly"]);
    await Promise.all([1, 2, 3].map((i) => guarded(twin).do(infoOf(`run-${i}/schedule`))));
    expect(twin.made.length).toBe(3);
  });

  it("S0-32 a lock is held against other processes, and a killed one lets go of it", async () => {
    const lock = join(tempFolder(), "jobs.lock");
    const child = startChild(`
      import { createIfAbsent } from "${built("guards/index.js")}";
      const create = async () => {
        say("holds it");
        await heard();
        say("still holds it");
        return new Promise(() => {});
      };
      const info = { key: "run-1/schedule", attempt: 1, signal: new AbortController().signal, heartbeat() {} };
      await createIfAbsent({ find: () => null, create, lock: ${JSON.stringify(lock)} }).do(info);`);
    onTestFinished(() => child.kill());
    await child.line();
    const made: string[] = [];
    const spec = createIfAbsent({ find: () => null, create: () => made.push("nightly"), lock });
    const created = spec.do(infoOf("run-2/schedule"));
    child.tell("go on");
    expect(await child.line()).toBe("still holds it");
    expect(made).toEqual([]);
    await child.kill();
    await created;
    expect(made).toEqual(["nightly"]);
  });

  it("passes the error on if nothing was created", async () => {
    const spec = createIfAbsent({ find: () => null, create: () => Promise.reject(new Error("no rights")) });
    await expect(spec.do(infoOf("run-1/schedule"))).rejects.toThrow("no rights");
  });
});

it("S0-33 S0-34 notifyOnce sends one message for a run and step; the unguarded twin sends two", async () => {
  const outbox: { key: string; id: number }[] = [];
  const send = (key: string) => outbox[outbox.push({ key, id: outbox.length + 1 }) - 1]?.id ?? 0;
  const make = () => notifyOnce({ sent: (key) => outbox.find((mail) => mail.key === key)?.id, send });
  expect(await loseRecord(make, "run-1/thank")).toEqual([1, 1]);
  await doTwice(make, "run-1/thank");
  expect(outbox.length).toBe(1);
  await loseRecord(make, "run-2/thank");
  await loseRecord(make, "run-1/thank#2");
  expect(outbox.map(({ key }) => key)).toEqual(["run-1/thank", "run-2/thank", "run-1/thank#2"]);
  await loseRecord(() => ({ do: () => send("run-3/thank") }), "run-3/thank");
  expect(outbox.filter(({ key }) => key === "run-3/thank").length).toBe(2);
});

it("I16 a process that has lost the run while it looked does not act", async () => {
  const lost = new AbortController();
  const sent: string[] = [];
  const spec = notifyOnce({
    sent() {
      lost.abort(new Error("lease lost"));
      return null;
    },
    send: (key) => sent.push(key),
  });
  await expect(spec.do(infoOf("run-1/thank", 1, lost.signal))).rejects.toThrow("lease lost");
  expect(sent).toEqual([]);
});

it("S0-31 repeatable is simply done again: a reviewer who is there is added without an error, and is there once", async () => {
  const reviewers = new Set<string>();
  let calls = 0;
  const make = () => repeatable(() => ++calls > 0 && [...reviewers.add("ada")]);
  expect(await loseRecord(make)).toEqual([["ada"], ["ada"]]);
  expect(calls).toBe(2);
  expect(make()).toMatchObject({ idempotent: true });
});

it("S0-37 a detector of one's own finds a shipment by its order number", async () => {
  const shipments = new Map<string, { tracking: string }[]>();
  const ship = (order: string) => {
    const parcels = shipments.get(order) ?? [];
    const parcel = { tracking: `T-${order}-${parcels.length + 1}` };
    shipments.set(order, [...parcels, parcel]);
    return parcel;
  };
  const shipping = (order: string): EffectSpec<{ tracking: string }> => ({
    key: order,
    do: () => ship(order),
    detect() {
      const [parcel] = shipments.get(order) ?? [];
      return parcel === undefined ? { found: false } : { found: true, value: parcel };
    },
  });
  const [first, second] = await loseRecord(() => shipping("order-17"), "order-17");
  expect([first, second]).toEqual([{ tracking: "T-order-17-1" }, { tracking: "T-order-17-1" }]);
  expect(shipments.get("order-17")?.length).toBe(1);
});
