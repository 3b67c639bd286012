// What steps emit while they run, as readers see it: the newest attempt of each, whole, in order, once.
import { describe, expect, it } from "vitest";
import { type ManualClock, manualClock } from "../../src/base/clock.ts";
import { type Codec, jsonCodec } from "../../src/base/envelope.ts";
import { PawlError, RetryableError, TerminalError } from "../../src/base/errors.ts";
import type { Context, StepInfo } from "../../src/core/context.ts";
import { LIMITS } from "../../src/core/limits.ts";
import type { StreamChunk } from "../../src/core/streams.ts";
import { workflow } from "../../src/core/workflow.ts";
import { linesOf, Reader, readAll, StreamText } from "../stream-text.ts";
import { errorOf, gate, nextRound, openWorld, STORES, type StoreKind, type World } from "./harness.ts";

const never = () => new Promise<never>(() => {});

interface StreamWorld {
  readonly world: World;
  readonly lease: ManualClock;
  /** Lets the time pass after which chunks are written. */
  flush(): void;
}

async function openStreams(store: StoreKind): Promise<StreamWorld> {
  const lease = manualClock();
  const world = await openWorld(store, { leaseClock: lease });
  return { world, lease, flush: () => lease.advance(LIMITS.streamEveryMs) };
}

function emitAll({ emit }: StepInfo, ...values: readonly unknown[]): void {
  for (const value of values) emit(value);
}

describe.each(STORES)("streams on %s", (store) => {
  it("X-14 SM2 a reader gets every chunk in order, then the end of the step, and is done when the run is", async () => {
    const { world, flush } = await openStreams(store);
    const [first, second] = [gate(), gate()];
    const talk = workflow("talk", async (ctx) => {
      await ctx.step("write", async (info) => {
        emitAll(info, "Once ", "upon ");
        await first.passed;
        info.emit({ at: new Date(0), tokens: new Map([["a", 1n]]) });
        await second.passed;
        info.emit(undefined);
        return "all of it";
      });
      return ctx.step("after", () => 1);
    });
    const pawl = await world.open([talk]);
    const run = await pawl.start(talk);
    const reader = new Reader(run.stream());
    await world.settle();
    flush();
    await reader.until('write/1 1 "upon "');
    expect(reader.lines).toEqual(['write/1 0 "Once "', 'write/1 1 "upon "']);
    first.open();
    await world.settle();
    flush();
    await reader.until('write/1 2 {"at":"1970-01-01T00:00:00.000Z","tokens":{}}');
    expect(reader.text.events.at(-1)).toMatchObject({ value: { at: new Date(0), tokens: new Map([["a", 1n]]) } });
    second.open();
    await reader.done;
    expect(reader.lines.slice(3)).toEqual(["write/1 3 undefined", "write/1 end", "after/1 end"]);
    expect(linesOf(await readAll(run.stream()))).toEqual(reader.lines);
    expect(linesOf(await readAll(run.stream({ key: "after" })))).toEqual(["after/1 end"]);
    expect((await run.journal()).map(({ type }) => type)).toEqual([
      "run.started",
      "step.started",
      "step.completed",
      "step.started",
      "step.completed",
      "run.succeeded",
    ]);
  });

  it("SR1 X-14 a retry retracts what the failed attempt has emitted; who joins later sees the last attempt alone", async () => {
    const { world, flush } = await openStreams(store);
    const gates = [gate(), gate()];
    const flaky = workflow("flaky", async (ctx) =>
      ctx.step("write", async (info) => {
        emitAll(info, `${info.attempt}a`, `${info.attempt}b`);
        await gates[info.attempt - 1]?.passed;
        if (info.attempt < 3) throw new RetryableError("again");
        return "done";
      }),
    );
    const run = await (await world.open([flaky])).start(flaky);
    const reader = new Reader(run.stream());
    for (const [i, { open }] of gates.entries()) {
      await world.settle();
      flush();
      await reader.until(`write/${i + 1} 1 "${i + 1}b"`);
      open();
      await reader.until(`write/${i + 1} retract`);
      // What a reader has seen is durable; the worker may not have heard yet, and sets its alarm only then.
      await world.settle();
      await world.advance(60_000);
    }
    await reader.done;
    const attempt = (n: number) => [`write/${n} 0 "${n}a"`, `write/${n} 1 "${n}b"`];
    expect(reader.lines).toEqual([
      ...attempt(1),
      "write/1 retract",
      ...attempt(2),
      "write/2 retract",
      ...attempt(3),
      "write/3 end",
    ]);
    expect(linesOf(await readAll(run.stream()))).toEqual([...attempt(3), "write/3 end"]);
  });

  it("SR1 SM3 a timeout retracts, and what the function emits after it changes nothing", async () => {
    const { world, flush } = await openStreams(store);
    const late = gate();
    const slow = workflow("slow", async (ctx) =>
      ctx.step(
        "write",
        async (info) => {
          info.emit(`attempt ${info.attempt}`);
          if (info.attempt > 1) return;
          await late.passed;
          info.emit("too late");
          return never();
        },
        { timeout: "5s", retry: { jitter: false } },
      ),
    );
    const run = await (await world.open([slow])).start(slow);
    const reader = new Reader(run.stream());
    await world.settle();
    flush();
    await reader.until('write/1 0 "attempt 1"');
    await world.advance(5000);
    await reader.until("write/1 retract");
    late.open();
    await world.settle();
    await world.advance(60_000);
    await reader.done;
    const second = ['write/2 0 "attempt 2"', "write/2 end"];
    expect(reader.lines).toEqual(['write/1 0 "attempt 1"', "write/1 retract", ...second]);
    expect(linesOf(await readAll(run.stream()))).toEqual(second);
    const starts = (await world.store.journal(run.id)).filter(({ type }) => type === "step.started");
    const of = starts.map(({ hash }) => ({ start: hash, n: 0 }));
    const stored = await world.store.chunks(run.id, { of, limit: 10 });
    expect(stored.map(({ data }) => data)).toEqual(['"attempt 1"', '"attempt 2"', null]);
  });

  it("SR1 a step that fails for good retracts, and its end says so", async () => {
    const { world, flush } = await openStreams(store);
    const wrong = gate();
    const failing = workflow("failing", async (ctx) =>
      ctx.step("write", async ({ emit }) => {
        emit("half");
        await wrong.passed;
        throw new TerminalError("no");
      }),
    );
    const run = await (await world.open([failing])).start(failing);
    const reader = new Reader(run.stream());
    await world.settle();
    flush();
    await reader.until('write/1 0 "half"');
    wrong.open();
    await reader.done;
    expect(reader.lines).toEqual(['write/1 0 "half"', "write/1 retract", "write/1 end failed"]);
    expect(linesOf(await readAll(run.stream()))).toEqual(["write/1 end failed"]);
  });

  it("SM1 RS3 a crash in the middle: the rerun has a stream of its own, and readers end with one text", async () => {
    const { world, flush, lease } = await openStreams(store);
    const talk = workflow("talk", async (ctx) =>
      ctx.step("write", async (info) => {
        emitAll(info, "a", "b");
        if (info.attempt === 1) return never();
        info.emit("c");
      }),
    );
    /** Other processes are told of some things only when they look. */
    const poll = async () => {
      await world.settle();
      lease.advance(1000);
      await world.settle();
    };
    const client = await world.open();
    const pawl = await world.open([talk]);
    const run = await client.start("talk", undefined, { version: "1.0.0" });
    const reader = new Reader(client.get(run.id).stream());
    await poll();
    flush();
    await poll();
    await reader.until('write/1 1 "b"');
    const seen = reader.text.cursor as string;
    world.kill(pawl);
    await world.fence();
    await world.open([talk]);
    await poll();
    await poll();
    await reader.done;
    const second = ['write/2 0 "a"', 'write/2 1 "b"', 'write/2 2 "c"', "write/2 end"];
    expect(reader.lines).toEqual(['write/1 0 "a"', 'write/1 1 "b"', "write/1 retract", ...second]);
    expect(linesOf(await readAll(client.get(run.id).stream({ after: seen })))).toEqual(["write/1 retract", ...second]);
    expect(linesOf(await readAll(client.get(run.id).stream()))).toEqual(second);
  });

  it("RS3 X-19 from the cursor of every event exactly the rest follows", async () => {
    const { world, flush } = await openStreams(store);
    const gates = new Map([1, 2, 3].map((n) => [n, gate()]));
    const both = workflow("both", async (ctx) => {
      const write = (name: string) =>
        ctx.step(name, async (info) => {
          emitAll(info, `${name}${info.attempt}`, "x");
          await gates.get(info.attempt)?.passed;
          if (info.attempt < 3) throw new RetryableError("again", { retryAfter: "1s" });
          emitAll(info, "y", "z");
        });
      await Promise.all([write("a"), ctx.step("plain", () => 1), write("b")]);
      await ctx.step("last", async ({ emit }) => emit("end"));
    });
    const run = await (await world.open([both])).start(both);
    const reader = new Reader(run.stream());
    for (const n of [1, 2, 3]) {
      await world.settle();
      flush();
      for (const key of ["a", "b"]) await reader.until(`${key}/${n} 1 "x"`);
      gates.get(n)?.open();
      await world.settle();
      await world.advance(1000);
    }
    await reader.done;
    const { events } = reader.text;
    expect(events.length).toBeGreaterThan(20);
    expect(new Set(events.map(({ cursor }) => cursor)).size).toBe(events.length);
    // What was void by then is not told again, and what counts is: in the order of the journal, whatever a reader saw along the way.
    for (const [i, { cursor }] of events.entries()) {
      const text = new StreamText();
      for (const event of events.slice(0, i + 1)) text.take(event);
      for (const event of await readAll(run.stream({ after: cursor }))) text.take(event);
      expect(text.texts, `behind event ${i}`).toEqual(reader.text.texts);
    }
    expect(reader.text.texts).toEqual({ a: ["a3xyz."], b: ["b3xyz."], last: ["end."], plain: ["."] });
    const only = await readAll(run.stream({ key: "b" }));
    expect(linesOf(only)).toEqual(['b/3 0 "b3"', 'b/3 1 "x"', 'b/3 2 "y"', 'b/3 3 "z"', "b/3 end"]);
    const rest = await readAll(run.stream({ key: "b", after: only[1]?.cursor as string }));
    expect(linesOf(rest)).toEqual(linesOf(only.slice(2)));
  });

  it("SM2 ten thousand chunks arrive, in order, before the outcome", async () => {
    const { world } = await openStreams(store);
    const count = 10_000;
    const talk = workflow("talk", async (ctx) =>
      ctx.step("write", ({ emit }) => {
        for (let n = 0; n < count; n++) emit(n);
      }),
    );
    const run = await (await world.open([talk])).start(talk);
    const values: unknown[] = [];
    for await (const event of run.stream())
      values.push(event.type === "chunk" ? event.value : `${event.type} of ${values.length}`);
    expect(values).toEqual([...Array(count).keys(), `end of ${count}`]);
  });
});

describe("what streams are made of", () => {
  it("P10 a step of the next generation has a stream of its own, though key and attempt are the same", async () => {
    const { world } = await openStreams("memory");
    const loop = workflow("loop", async (ctx: Context, n: number) => {
      await ctx.step("write", async ({ emit }) => emit(`generation ${n}`));
      if (n < 2) await ctx.continueAs(n + 1);
    });
    const run = await (await world.open([loop])).start(loop, 0);
    await run.result();
    expect(linesOf(await readAll(run.stream()))).toEqual(
      [0, 1, 2].flatMap((n) => [`write/1 0 "generation ${n}"`, "write/1 end"]),
    );
  });

  it("RS1 who joins late reads what many steps have emitted, page by page", async () => {
    const { world } = await openStreams("memory");
    const [steps, chunks] = [200, 5];
    const many = workflow("many", async (ctx) => {
      for (let i = 0; i < steps; i++)
        await ctx.step(`s${i}`, (info) =>
          emitAll(info, ...Array.from({ length: i % 50 === 7 ? 600 : chunks }, (_, n) => n)),
        );
    });
    const run = await (await world.open([many])).start(many);
    await run.result();
    const questions: number[] = [];
    const { chunks: read } = world.store;
    world.store.chunks = (id, query) => {
      questions.push(query.of.length);
      return read(id, query);
    };
    const text = new StreamText();
    for (const event of await readAll(run.stream())) text.take(event);
    expect(text.events.length).toBe(steps + (steps - 4) * chunks + 4 * 600);
    expect(Object.values(text.texts).filter(([one]) => one === "01234.")).toHaveLength(steps - 4);
    // Far fewer than one for each step.
    expect(questions.length).toBeLessThan(steps / 2);
  });

  it("RS2 P10 a fork says that the chunks of what it has inherited are not here", async () => {
    const { world } = await openStreams("memory");
    const two = workflow("two", async (ctx) => {
      await ctx.step("first", async ({ emit }) => emit("1"));
      await ctx.step("second", async ({ emit }) => emit("2"));
    });
    const pawl = await world.open([two]);
    const run = await pawl.start(two);
    await run.result();
    const fork = await pawl.fork(run.id, { at: "second" });
    await world.settle();
    expect(linesOf(await readAll(fork.stream()))).toEqual(["first/1 end incomplete", 'second/1 0 "2"', "second/1 end"]);
    expect(linesOf(await readAll(run.stream()))).toHaveLength(4);
  });

  it("SR2 what a person decides is not what the attempt has emitted", async () => {
    const { world, flush } = await openStreams("memory");
    const asking = workflow("asking", async (ctx) =>
      ctx.step(
        "pay",
        async ({ emit }) => {
          emit("paying");
          return never();
        },
        { recovery: "ask" },
      ),
    );
    const pawl = await world.open([asking]);
    const run = await pawl.start(asking);
    await world.settle();
    flush();
    await world.settle();
    const next = await world.restart([asking]);
    await world.settle();
    const reader = new Reader(next.get(run.id).stream());
    await next.resolve(run.id, { choice: "complete", value: "paid" });
    await reader.done;
    expect(reader.lines).toEqual(["pay/1 end incomplete"]);
  });

  it("SR2 a cancel retracts what is under way", async () => {
    const { world, flush } = await openStreams("memory");
    const talk = workflow("talk", async (ctx) =>
      ctx.step("write", async ({ emit }) => {
        emit("a");
        return never();
      }),
    );
    const run = await (await world.open([talk])).start(talk);
    const reader = new Reader(run.stream());
    await world.settle();
    flush();
    await reader.until('write/1 0 "a"');
    await run.cancel();
    await reader.done;
    expect(reader.lines).toEqual(['write/1 0 "a"', "write/1 retract"]);
  });

  it("SM1 a call that a budget has refused, and that begins later, is read from where it begins", async () => {
    const { world } = await openStreams("memory");
    const free = gate();
    const spending = workflow({ name: "spending", budget: { usd: 1 } }, async (ctx) => {
      const spend = { usd: 0.6 };
      const held = ctx.step("held", () => free.passed, { spend });
      const refused = ctx.step("refused", async ({ emit }) => emit("at last"), { spend });
      await Promise.all([held, refused]);
    });
    const pawl = await world.open([spending]);
    const run = await pawl.start(spending);
    await world.settle();
    free.open();
    await world.settle();
    await pawl.resolve(run.id, { choice: "raise", value: { usd: 2 } });
    await run.result();
    expect((await run.journal()).map(({ type }) => type)).toContain("step.reserved");
    expect(linesOf(await readAll(run.stream({ key: "refused" })))).toEqual(['refused/1 0 "at last"', "refused/1 end"]);
  });

  it("RS2 chunks that are gone are told of: in the middle, at the end, or all that a reader had not seen", async () => {
    const { world } = await openStreams("memory");
    const lost = new Set<number>();
    const store = world.store;
    const { emit } = store;
    store.emit = (chunks) => emit(chunks.filter(({ n }) => !lost.has(n)));
    const talk = workflow("talk", async (ctx) => ctx.step("write", async (info) => emitAll(info, "a", "b", "c")));
    const pawl = await world.open([talk]);
    const linesWithout = async (...numbers: readonly number[]) => {
      lost.clear();
      for (const n of numbers) lost.add(n);
      const run = await pawl.start(talk);
      await run.result();
      return linesOf(await readAll(run.stream()));
    };
    expect(await linesWithout()).toEqual(['write/1 0 "a"', 'write/1 1 "b"', 'write/1 2 "c"', "write/1 end"]);
    expect(await linesWithout(1)).toEqual(['write/1 0 "a"', "write/1 end incomplete"]);
    expect(await linesWithout(3)).toEqual([
      'write/1 0 "a"',
      'write/1 1 "b"',
      'write/1 2 "c"',
      "write/1 end incomplete",
    ]);
    expect(await linesWithout(0, 1, 2)).toEqual(["write/1 end incomplete"]);
  });

  it("X-19 a cursor that is malformed, of another run, of another key or ahead of the store is an error that says so", async () => {
    const { world } = await openStreams("memory");
    const talk = workflow("talk", async (ctx) => ctx.step("write", async ({ emit }) => emit("a")));
    const pawl = await world.open([talk]);
    const [one, other] = [await pawl.start(talk), await pawl.start(talk)];
    await Promise.all([one.result(), other.result()]);
    const [first] = await readAll(one.stream());
    const cursor = first?.cursor as string;
    const errorFor = (run: typeof one, after: string, key?: string) =>
      errorOf((async () => readAll(run.stream({ after, ...(key !== undefined && { key }) })))());
    for (const bad of ["", "nonsense", cursor.slice(0, -6), `${cursor}AAAA`, btoa("[1,2]"), btoa("{}")])
      expect(await errorFor(one, bad), bad).toMatchObject({ code: "invalid_argument", fields: { field: "after" } });
    expect((await errorFor(one, "nonsense")).message).toContain("it is none that Pawl has made");
    expect((await errorFor(other, cursor)).message).toContain(`it belongs to run ${one.id}`);
    expect((await errorFor(one, cursor, "write")).message).toContain("it belongs to a stream of all steps");
    const [mine] = await readAll(one.stream({ key: "write" }));
    expect((await errorFor(one, mine?.cursor as string)).message).toContain('of step "write" alone');
    const ahead = btoa(JSON.stringify([1, one.id, null, 99, 99]));
    expect((await errorFor(one, ahead)).message).toContain("put back to an earlier state");
    await expect(readAll(pawl.get("nobody").stream())).rejects.toMatchObject({ code: "run_not_found" });
  });

  it("SM1 TX1 what cannot be emitted is refused at the call: too large, no value, in a transaction, too much at once", async () => {
    const { world } = await openStreams("sqlite");
    const errors: unknown[] = [];
    const tried = (act: () => void) => {
      try {
        act();
      } catch (error) {
        errors.push(error);
      }
    };
    const bad = workflow("bad", async (ctx) => {
      await ctx.step("write", ({ emit }) => {
        emit("before");
        tried(() => emit(() => 1));
        tried(() => emit("x".repeat(LIMITS.chunkBytes)));
        emit("after");
      });
      await ctx.transaction("booking", (_, { emit }) => tried(() => emit("no")));
      await ctx.step("flood", ({ emit }) => {
        for (let n = 0; n <= LIMITS.streamBacklogBytes / 100_000; n++) tried(() => emit("x".repeat(99_998)));
      });
    });
    const run = await (await world.open([bad], { codec: jsonCodec })).start(bad);
    await run.result();
    expect(errors).toMatchObject([
      { code: "not_serializable", message: expect.stringContaining('chunk 1 of step "write"') },
      { code: "too_large", message: expect.stringContaining('chunk 1 of step "write"') },
      { code: "invalid_argument", message: expect.stringContaining('transaction "booking"') },
      { code: "too_large", message: expect.stringContaining("not stored yet") },
    ]);
    expect(linesOf(await readAll(run.stream({ key: "write" })))).toEqual([
      'write/1 0 "before"',
      'write/1 1 "after"',
      "write/1 end",
    ]);
  });

  it("SM2 SW3 the outcome waits for the chunks while the store is away, and a lost answer doubles nothing", async () => {
    const { world, lease } = await openStreams("memory");
    const store = world.store;
    const { emit } = store;
    const asked: number[] = [];
    store.emit = async (chunks) => {
      asked.push(chunks.length);
      if (asked.length === 1) throw new PawlError("storage_unavailable", "away");
      await emit(chunks);
      if (asked.length === 2) throw new PawlError("unknown_outcome", "lost");
    };
    const talk = workflow("talk", async (ctx) => ctx.step("write", (info) => emitAll(info, "a", "b")));
    const run = await (await world.open([talk])).start(talk);
    for (const tries of [1, 2]) {
      await world.settle();
      expect(asked.length).toBe(tries);
      expect(await world.journal(run)).toEqual(["run.started", "step.started write"]);
      lease.advance(1000);
    }
    await run.result();
    expect(asked).toEqual([3, 3, 3]);
    expect(linesOf(await readAll(run.stream()))).toEqual(['write/1 0 "a"', 'write/1 1 "b"', "write/1 end"]);
  });

  it("SW4 P16 chunks that the store refuses for good take neither their step nor other streams along", async () => {
    const { world } = await openStreams("memory");
    const talk = workflow("talk", async (ctx, isBad: boolean) => {
      await ctx.step("write", (info) => emitAll(info, "a", isBad ? "bad" : "b"));
      return "done";
    });
    // A codec of a user's that makes text which no store can keep.
    const codec: Codec = { ...jsonCodec, seal: (text) => (text === '"bad"' ? "\0" : text) };
    const pawl = await world.open([talk], { codec });
    const [good, bad] = await Promise.all([pawl.start(talk, false), pawl.start(talk, true)]);
    expect(await Promise.all([good.result(), bad.result()])).toEqual(["done", "done"]);
    expect(linesOf(await readAll(good.stream()))).toEqual(['write/1 0 "a"', 'write/1 1 "b"', "write/1 end"]);
    expect(linesOf(await readAll(bad.stream()))).toEqual(["write/1 end incomplete"]);
    expect(world.lines.filter(({ message }) => message.includes("cannot be stored"))).toHaveLength(1);
  });

  it("SW1 SW2 chunks of all runs share a write, one at a time, and steps that emit nothing cost none", async () => {
    const { world, flush } = await openStreams("memory");
    const store = world.store;
    const { emit } = store;
    const writes: (readonly StreamChunk[])[] = [];
    let [underWay, most] = [0, 0];
    store.emit = async (chunks) => {
      most = Math.max(most, ++underWay);
      writes.push(chunks);
      for (let round = 0; round < 5; round++) await nextRound();
      await emit(chunks);
      underWay--;
    };
    const done = gate();
    const talk = workflow("talk", async (ctx) =>
      ctx.step("write", async (info) => {
        emitAll(info, 1, 2);
        await done.passed;
      }),
    );
    const silent = workflow("silent", async (ctx) => ctx.step("a", () => 1));
    const pawl = await world.open([talk, silent]);
    await Promise.all(Array.from({ length: 20 }, () => pawl.run(silent)));
    const runs = await Promise.all(Array.from({ length: 20 }, () => pawl.start(talk)));
    await world.settle();
    expect(writes).toEqual([]);
    flush();
    await world.settle();
    expect(writes.map(({ length }) => length)).toEqual([40]);
    done.open();
    await Promise.all(runs.map((run) => run.result()));
    expect(writes.map(({ length }) => length)).toEqual([40, 20]);
    expect(writes[1]?.every(({ data }) => data === null)).toBe(true);
    expect(most).toBe(1);
  });

  it("SM2 P28 a close lets what a step has emitted be stored, and the step's outcome with it", async () => {
    const { world } = await openStreams("memory");
    const running = gate();
    const talk = workflow("talk", async (ctx) =>
      ctx.step("write", async ({ emit }) => {
        emit("a");
        await running.passed;
      }),
    );
    const pawl = await world.open([talk]);
    const run = await pawl.start(talk);
    await world.settle();
    const closed = pawl.close();
    running.open();
    await closed;
    expect(await world.journal(run)).toContain("step.completed write");
    const other = await world.open();
    const [first, end] = linesOf((await readAllOpen(other.get(run.id).stream())).slice(0, 2));
    expect([first, end]).toEqual(['write/1 0 "a"', "write/1 end"]);
  });
});

/** The first two events of a stream that goes on. */
async function readAllOpen(events: AsyncIterable<Parameters<StreamText["take"]>[0]>) {
  const found = [];
  for await (const event of events) if (found.push(event) === 2) break;
  return found;
}
