// Rows that were damaged or trimmed behind the engine's back: a named park, a way on after the repair, and always a way to put the run away.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { checksum } from "../../src/core/checksum.ts";
import { type Context, Pawl, type Workflow, workflow } from "../../src/index.ts";
import { loadDriver } from "../../src/stores/sqlite/driver.ts";
import { nodeHost } from "../../src/worker/node-host.ts";
import { withoutColdStart } from "../cold-start.ts";

withoutColdStart("its journals and messages are damaged on purpose");

// Other work may slow the machine down.
vi.setConfig({ testTimeout: 600_000 });

const folder = mkdtempSync(join(tmpdir(), "pawl-damaged-"));
const opened: Pawl[] = [];
const logged: string[] = [];
let files = 0;

afterEach(async () => {
  for (const pawl of opened.splice(0)) await pawl.close({ drain: 1 });
  logged.length = 0;
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const log = (message: string) => void logged.push(message);
const logger = { debug() {}, info() {}, warn: log, error: log };

function newFile(): string {
  return join(folder, `${files++}.db`);
}

async function open(file: string, workflows: readonly Workflow<never, unknown>[]): Promise<Pawl> {
  const pawl = await Pawl.open(file, { workflows, logger, handleSignals: false, durability: "process" });
  opened.push(pawl);
  return pawl;
}

function edit(file: string, sql: string): void {
  const db = loadDriver().open(file);
  db.exec(sql);
  db.close();
}

const OF_R = "run = (select n from runs where id = 'r')";

/** What unpacks to far more than any value may take. */
function bomb(): string {
  const zeros = brotliCompressSync(Buffer.alloc(200 * 2 ** 20), { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });
  return `x'01${zeros.toString("hex")}'`;
}

describe("a damaged message", () => {
  const child = workflow("child", async (ctx) => ctx.waitFor("end"));
  const waiting = workflow("waiting", async (ctx) => [await ctx.waitFor("go"), await ctx.step("s", () => 1)]);
  const calling = workflow("calling", async (ctx) => [await ctx.call(child), await ctx.step("s", () => 1)]);

  /** A run with one unread message, and nobody at work on it. */
  async function withMessage(flow: typeof waiting): Promise<{ file: string; id: string }> {
    const file = newFile();
    const first = await open(file, [flow]);
    await first.start(flow, undefined, { id: "r" });
    await first.idle();
    const [wait] = await first.store.waits({ run: "r" });
    await first.close();
    const other = await open(file, flow === calling ? [child] : []);
    if (flow === calling) await other.signal(wait?.name as string, "end", "value");
    else await other.signal("r", "go", "value", { id: "m-1" });
    await other.idle();
    const [message] = await other.store.inbox("r");
    await other.close();
    return { file, id: message?.id as string };
  }

  for (const [kind, flow] of [
    ["signal", waiting],
    ["child", calling],
  ] as const) {
    for (const [what, data] of [
      ["no JSON", "'{'"],
      ["invalid UTF-8", "x'ff22ff'"],
      ["an unknown tag", `'{"$later":1}'`],
      ["a byte order mark", `'\ufeff"value"'`],
      ["a few bytes that ask for 200 MiB", bomb()],
      ...(kind === "child" ? ([["another shape", "'5'"]] as const) : []),
    ] as const) {
      it(`I14 B64 Q8 (${kind}, ${what}) parks its run with the name of the message; after a repair "retry" goes on`, async () => {
        const { file, id } = await withMessage(flow);
        const column = "update inbox set data =";
        edit(file, `create table spare as select * from inbox; ${column} ${data} where id = '${id}'`);
        const pawl = await open(file, [flow]);
        await pawl.idle();
        const run = pawl.get("r");
        const status = await run.status();
        expect(status).toMatchObject({ state: "parked", parked: { reason: "corrupted_journal" } });
        expect(status.parked).toMatchObject({ message: expect.stringContaining(id), choices: ["retry", "cancel"] });
        expect(status.parked?.detail).toMatchObject({ code: "corrupt_value", message: id });
        // Without a repair it is the same again, not a loop.
        await pawl.resolve("r", "retry");
        await pawl.idle();
        expect((await run.status()).state).toBe("parked");
        await pawl.close();
        edit(file, `${column} (select data from spare where spare.id = inbox.id) where id = '${id}'; drop table spare`);
        const again = await open(file, [flow]);
        await again.resolve("r", "retry");
        expect(await again.get("r").result()).toEqual(["value", 1]);
        expect(logged.filter((line) => /again later|try again/.test(line))).toEqual([]);
      });
    }
  }

  it.each([
    ["duplicate keys", '{"a":1,"a":2}', { a: 2 }],
    ["a number that is too large", "[1e400]", [Number.POSITIVE_INFINITY]],
    ["a key like __proto__", '{"__proto__":{"isAdmin":true}}', JSON.parse('{"__proto__":{"isAdmin":true}}')],
  ])("B64 Q8 (%s) that still is JSON is read as JSON is", async (_, data, value) => {
    const { file } = await withMessage(waiting);
    edit(file, `update inbox set data = '${data}'`);
    const pawl = await open(file, [waiting]);
    expect(await pawl.get("r").result()).toEqual([value, 1]);
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });

  it("I14 P19 does not keep its run from being cancelled", async () => {
    const { file } = await withMessage(waiting);
    edit(file, "update inbox set data = '{'");
    const pawl = await open(file, [waiting]);
    await pawl.idle();
    expect(await pawl.cancel("r")).toEqual({ outcome: "cancelled" });
  });

  it.each(["{", "5", '{"choice":1}'])("P28 a decision that reads %s is asked for again", async (data) => {
    const file = newFile();
    const asking = workflow("asking", async (ctx) => {
      await ctx.step("s", () => 1);
      return ctx.waitFor("go");
    });
    const first = await open(file, [asking]);
    await first.start(asking, undefined, { id: "r" });
    await first.idle();
    await first.close();
    const drifted = workflow("asking", async (ctx) => ctx.step("other", () => 1));
    const second = await open(file, [drifted]);
    await second.signal("r", "go", 7);
    await second.idle();
    await second.close();
    const decider = await open(file, []);
    await decider.resolve("r", "retry");
    await decider.close();
    edit(file, `update inbox set data = '${data}' where kind = 'decision'`);
    const pawl = await open(file, [asking]);
    await pawl.idle();
    const { parked } = await pawl.get("r").status();
    expect(parked).toMatchObject({ reason: "replay_drift", message: expect.stringMatching(/cannot be read/) });
    await pawl.resolve("r", "retry");
    expect(await pawl.get("r").result()).toBe(7);
  });
});

describe("a trimmed journal", () => {
  const ran: string[] = [];
  const body = async (ctx: Context) => {
    const seen: string[] = [];
    for (const name of ["a", "b", "c"]) {
      seen.push(
        await ctx.step(name, () => {
          ran.push(name);
          return name;
        }),
      );
    }
    await ctx.waitFor("go");
    return seen.join("");
  };
  const lenient = workflow({ name: "trimmed", onMissing: "execute" }, body);
  const strict = workflow("trimmed", body);

  // run.started 0, a 1-2, b 3-4, c 5-6, signal.awaited 7
  const trims: [what: string, sql: string, again: string[]][] = [
    ["nothing", "select 1", []],
    ["a step in the middle", `delete from journal where seq in (3, 4) and ${OF_R}`, ["b"]],
    ["an outcome in the middle", `delete from journal where seq = 4 and ${OF_R}`, ["b"]],
    ["a call in the middle", `delete from journal where seq = 3 and ${OF_R}`, ["b"]],
    ["two gaps", `delete from journal where seq in (1, 2, 5, 6) and ${OF_R}`, ["a", "c"]],
    ["the end", `delete from journal where seq >= 5 and ${OF_R}`, ["c"]],
    ["all but the start", `delete from journal where seq >= 1 and ${OF_R}`, ["a", "b", "c"]],
  ];

  async function recorded(flow: typeof lenient): Promise<string> {
    const file = newFile();
    const pawl = await open(file, [flow]);
    await pawl.start(flow, undefined, { id: "r" });
    await pawl.idle();
    await pawl.close();
    ran.length = 0;
    return file;
  }

  it.each(trims)(
    'S3-23 %s: with onMissing "execute" the missing step runs again and the others do not',
    async (_, sql, again) => {
      const file = await recorded(lenient);
      edit(file, sql);
      const pawl = await open(file, [lenient]);
      await pawl.signal("r", "go");
      expect(await pawl.get("r").result()).toBe("abc");
      expect(ran).toEqual(again);
      expect(logged.filter((line) => line.includes("entries"))).toHaveLength(again.length === 0 ? 0 : 1);
      await pawl.close();
    },
  );

  it.each(trims.slice(1, 6))(
    "S3-23 %s: what ran again is recorded and does not run a third time",
    async (_, sql, again) => {
      const file = await recorded(lenient);
      edit(file, sql);
      const second = await open(file, [lenient]);
      await second.signal("r", "something else");
      await second.idle();
      await second.close();
      expect(ran).toEqual(again);
      const third = await open(file, [lenient]);
      await third.signal("r", "go");
      expect(await third.get("r").result()).toBe("abc");
      expect(ran).toEqual(again);
    },
  );

  it.each([
    ["an altered entry", `update journal set data = '"x"' where seq = 2 and ${OF_R}`, 2],
    [
      "an altered entry behind a gap and one more",
      `delete from journal where seq = 1 and ${OF_R}; update journal set data = '"x"' where seq = 4 and ${OF_R}`,
      4,
    ],
    [
      "an edited last checksum behind a gap",
      `delete from journal where seq = 6 and ${OF_R}; update journal set hash = 'x' where seq = 7 and ${OF_R}`,
      7,
    ],
    ["a missing first entry", `delete from journal where seq = 0 and ${OF_R}`, 0],
  ])('S3-23 E-22 %s is damage all the same, also with onMissing "execute"', async (_, sql, seq) => {
    const file = await recorded(lenient);
    edit(file, sql);
    const pawl = await open(file, [lenient]);
    await pawl.signal("r", "go");
    await pawl.idle();
    const { parked } = await pawl.get("r").status();
    expect(parked).toMatchObject({ reason: "corrupted_journal", detail: { seq } });
    expect(ran).toEqual([]);
    expect(await pawl.cancel("r")).toEqual({ outcome: "cancelled" });
  });

  it.each(trims.slice(1))(
    "S3-24 E-21 %s: by default nothing is executed, and the park says what is missing",
    async (_, sql) => {
      const file = await recorded(strict);
      edit(file, sql);
      const pawl = await open(file, [strict]);
      await pawl.signal("r", "go");
      await pawl.idle();
      const { parked } = await pawl.get("r").status();
      expect(parked).toMatchObject({
        reason: "corrupted_journal",
        detail: { code: "journal_entry_missing", seq: expect.any(Number) },
      });
      expect(ran).toEqual([]);
    },
  );

  it('S3-23 S3-24 a run that was parked for it goes on with code that says onMissing "execute"', async () => {
    const file = await recorded(strict);
    edit(file, `delete from journal where seq in (3, 4) and ${OF_R}`);
    const first = await open(file, [strict]);
    await first.signal("r", "go");
    await first.idle();
    await first.close();
    const pawl = await open(file, [lenient]);
    await pawl.resolve("r", "retry");
    expect(await pawl.get("r").result()).toBe("abc");
    expect(ran).toEqual(["b"]);
  });
});

describe("T-19 effects that a trimmed journal has lost", () => {
  const done: string[] = [];
  const effects = (onMissing: "execute" | "park") =>
    workflow({ name: "effects", onMissing }, async (ctx) => {
      const found = ({ key }: { key: string }) =>
        done.includes(key) ? ({ found: true, value: key } as const) : ({ found: false } as const);
      const act = ({ key }: { key: string }) => {
        done.push(key);
        return key;
      };
      await ctx.effect("detected", { do: act, detect: found });
      await ctx.effect("keyed", { do: ({ key }) => void (done.includes(key) || done.push(key)), idempotent: true });
      await ctx.waitFor("go");
      return "end";
    });

  it.each(["detected", "keyed"])(
    'S3-23 C-18 "%s" is not repeated outside: by default nothing is executed, with onMissing "execute" its guard finds it',
    async (lost) => {
      done.length = 0;
      const file = newFile();
      const first = await open(file, [effects("execute")]);
      await first.start(effects("execute"), undefined, { id: "r" });
      await first.idle();
      await first.close();
      const made = [...done];
      expect(made).toHaveLength(2);
      edit(file, `delete from journal where key = '${lost}' and ${OF_R}`);
      const strict = await open(file, [effects("park")]);
      await strict.signal("r", "go");
      await strict.idle();
      expect((await strict.get("r").status()).parked).toMatchObject({ detail: { code: "journal_entry_missing" } });
      expect(done).toEqual(made);
      await strict.close();
      const lenient = await open(file, [effects("execute")]);
      await lenient.resolve("r", "retry");
      expect(await lenient.get("r").result()).toBe("end");
      expect(done).toEqual(made);
      expect((await lenient.get("r").effects()).map(({ effect, status }) => [effect, status]).sort()).toEqual([
        ["detected", "executed"],
        ["keyed", "executed"],
      ]);
    },
  );
});

describe("an entry whose checksum fits", () => {
  const body = async (ctx: Context) => [await ctx.step("a", () => "kept"), await ctx.waitFor("go")];
  const flow = workflow("rechained", body);

  /** Replaces the result of the step, and every checksum with it, as somebody with access to the file could. */
  async function rechained(data: string | Uint8Array, doesMendRow: boolean): Promise<Pawl> {
    const file = newFile();
    const first = await open(file, [flow]);
    await first.start(flow, undefined, { id: "r" });
    await first.idle();
    const entries = await first.store.journal("r");
    await first.close();
    const db = loadDriver().open(file);
    const set = db.prepare(`update journal set data = ?, hash = ? where seq = ? and ${OF_R}`);
    let hash = "r";
    for (const entry of entries) {
      const changed = entry.type === "step.completed" ? data : entry.data;
      hash = checksum(nodeHost, hash, { ...entry, data: changed });
      set.run(changed, hash, entry.seq);
    }
    if (doesMendRow) db.prepare("update runs set head_hash = ? where id = 'r'").run(hash);
    db.close();
    const pawl = await open(file, [flow]);
    await pawl.signal("r", "go");
    await pawl.idle();
    return pawl;
  }

  it("P35 Q15 is still found out by the checksum in the run's row", async () => {
    const pawl = await rechained('"edited"', false);
    const { parked } = await pawl.get("r").status();
    expect(parked).toMatchObject({ reason: "corrupted_journal", detail: { code: "corrupted_journal", seq: 3 } });
  });

  it.each([
    ["is no JSON", "{"],
    ["has a byte order mark", '\ufeff"x"'],
    ["has an unknown tag", '{"$later":1}'],
    ["is not UTF-8", Uint8Array.of(0x22, 0xff, 0x22)],
    ["is nested too deep", `${"[".repeat(65)}${"]".repeat(65)}`],
  ])("Q8 E-22 and whose value %s parks the run and names its position", async (_, data) => {
    const pawl = await rechained(data, true);
    const { parked } = await pawl.get("r").status();
    expect(parked).toMatchObject({ reason: "corrupted_journal", detail: { seq: 2 } });
    await expect(pawl.get("r").journal()).rejects.toMatchObject({
      code: "corrupt_value",
      fields: { run: "r", seq: 2 },
    });
    expect(await pawl.cancel("r")).toEqual({ outcome: "cancelled" });
  });

  it("B64 and whose value is odd JSON is replayed as JSON is read", async () => {
    const pawl = await rechained('{"a":1,"a":1e400}', true);
    expect(await pawl.get("r").result()).toEqual([{ a: Number.POSITIVE_INFINITY }, undefined]);
  });
});

describe("a damaged run", () => {
  const child = workflow("child", async (ctx) => ctx.waitFor("end"));
  const parent = workflow("parent", async (ctx) => {
    await ctx.spawn(child);
    return Promise.all([ctx.call(child), ctx.call(child)]);
  });

  it.each(["while a worker has it", "without one"])(
    "P12 P19 takes the children it waits for along when it is cancelled, %s",
    async (how) => {
      const file = newFile();
      const first = await open(file, [parent, child]);
      await first.start(parent, undefined, { id: "r" });
      await first.idle();
      await first.close();
      edit(file, `update journal set hash = 'x' where seq = 2 and ${OF_R}`);
      const pawl = await open(file, how === "without one" ? [] : [parent, child]);
      const called = (await pawl.store.waits({ run: "r", kind: "child" })).map((wait) => wait.name);
      expect(called).toHaveLength(2);
      expect(await pawl.cancel("r")).toEqual({ outcome: "cancelled" });
      const rows = await Promise.all(called.map((id) => pawl.store.run(id)));
      expect(rows.map((row) => row?.cancel)).toEqual([expect.any(String), expect.any(String)]);
      const all = (await pawl.list({ parent: "r" })).runs.map(({ id }) => id);
      const [spawned] = all.filter((id) => !called.includes(id));
      expect((await pawl.store.run(spawned as string))?.cancel).toBeNull();
    },
  );

  it("E-22 S2-59 is forked before the entry that cannot be read, which names how far that can be", async () => {
    const starts: string[] = [];
    const flow = workflow("flow", async (ctx) => {
      for (const name of ["a", "b", "c"]) await ctx.step(name, () => void starts.push(name));
      return ctx.waitFor("end", { timeout: "1s", default: "done" });
    });
    const file = newFile();
    const first = await open(file, [flow]);
    await first.start(flow, undefined, { id: "r" });
    await first.idle();
    await first.close();
    // run.started, a started, a completed, b started, b completed.
    edit(file, `update journal set data = '{' where seq = 4 and ${OF_R}`);
    const pawl = await open(file, [flow]);
    await expect(pawl.fork("r", { at: 5 })).rejects.toMatchObject({ message: expect.stringContaining("from 1 to 4") });
    const fork = await pawl.fork("r", { at: "b" });
    expect(await fork.result()).toBe("done");
    expect(starts).toEqual(["a", "b", "c", "b", "c"]);
  });

  it.each([
    ["waits.detail", `update waits set detail = '{' where ${OF_R}`],
    ["waits.detail of another shape", `update waits set detail = '5' where ${OF_R}`],
    ["runs.cost", "update runs set cost = '{' where id = 'r'"],
    ["runs.cost of another shape", `update runs set cost = '{"usd":"much"}' where id = 'r'`],
    ["runs.progress", "update runs set progress = '{' where id = 'r'"],
  ])("D-14 (%s) says so with a code, the run and what to do, and can be cancelled", async (what, sql) => {
    const file = newFile();
    const first = await open(file, [child]);
    await first.start(child, undefined, { id: "r" });
    await first.idle();
    await first.close();
    edit(file, `update journal set hash = 'x' where seq = 0 and ${OF_R}`);
    const parking = await open(file, [child]);
    await parking.signal("r", "end");
    await parking.idle();
    await parking.close();
    edit(file, sql);
    const pawl = await open(file, []);
    const told = {
      code: "corrupt_value",
      fields: { run: "r" },
      message: expect.stringMatching(/Restore .* or cancel/),
    };
    await expect(pawl.get("r").status()).rejects.toMatchObject(told);
    if (what.startsWith("waits")) await expect(pawl.resolve("r", "retry")).rejects.toMatchObject(told);
    expect(await pawl.cancel("r")).toEqual({ outcome: "cancelled" });
  });
});
