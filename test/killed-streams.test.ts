// Streams between real processes: workers that are killed or frozen in the middle of one, readers that are killed and go on by their cursor. The
// children run the built package.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { Pawl } from "../src/client/pawl.ts";
import type { StreamEvent } from "../src/index.ts";
import { loadDriver } from "../src/stores/sqlite/driver.ts";
import { built, type Child, startChild } from "./child.ts";
import { postgresUrl } from "./fixtures/cli/postgres-url.ts";
import { StreamText } from "./stream-text.ts";

// Other work may slow the machine down.
vi.setConfig({ testTimeout: 120_000 });

const RUN = "story";
const STORES = ["sqlite", "postgres"] as const;

function urlOf(store: (typeof STORES)[number]): string {
  if (store === "postgres") return postgresUrl();
  const folder = mkdtempSync(join(tmpdir(), "pawl-streams-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "pawl.db");
}

function child(code: string): Child {
  const started = startChild(code);
  onTestFinished(async () => {
    started.process.kill("SIGCONT");
    await started.kill();
  });
  return started;
}

/** Emits ten chunks for each line that it is told, and ends the step at "end". What it says are log lines, and how far it has come. */
function worker(url: string): Child {
  return child(`
    import { Pawl, workflow } from "${built("index.js")}";
    const write = async ({ emit, attempt }) => {
      say("begun " + attempt);
      for (let n = 0; ; ) {
        if ((await heard()) === "end") return "ended by " + attempt;
        for (const to = n + 10; n < to; n++) emit(attempt + ":" + n + " ");
        say("emitted " + n);
      }
    };
    const story = workflow("story", async (ctx) => ctx.step("write", write));
    const log = (message) => say("log " + message);
    const logger = { debug() {}, info() {}, warn: log, error: log };
    await Pawl.open(${JSON.stringify(url)}, { workflows: [story], logger, lease: "2s", poll: "50ms" });
    await new Promise(() => setInterval(() => {}, 1000));`);
}

/** Says every event as JSON. */
function reader(url: string, after?: string): Child {
  return child(`
    import { Pawl } from "${built("index.js")}";
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    const pawl = await Pawl.open(${JSON.stringify(url)}, { logger, poll: "50ms" });
    for await (const event of pawl.get("${RUN}").stream(${JSON.stringify(after === undefined ? {} : { after })})) say(JSON.stringify(event));
    await pawl.close();`);
}

/** Reads on until such an event has come. */
async function follow(child: Child, text: StreamText, isMeant: (event: StreamEvent) => boolean): Promise<void> {
  for (;;) {
    const event = JSON.parse(await child.line()) as StreamEvent;
    text.take(event);
    if (isMeant(event)) return;
  }
}

async function followToEnd(child: Child, text: StreamText): Promise<void> {
  for (const line of await child.rest()) text.take(JSON.parse(line) as StreamEvent);
}

/** Listens until it has said all of these, in any order. */
async function hears(child: Child, ...lines: readonly (string | RegExp)[]): Promise<void> {
  const awaited = new Set(lines);
  while (awaited.size > 0) {
    const said = await child.line();
    for (const line of awaited) if (typeof line === "string" ? said === line : line.test(said)) awaited.delete(line);
  }
}

const isChunk = (attempt: number, n: number) => (event: StreamEvent) =>
  event.type === "chunk" && event.attempt === attempt && event.n === n;

function told(attempt: number, count: number): string {
  return `${Array.from({ length: count }, (_, n) => `${attempt}:${n} `).join("")}.`;
}

async function start(url: string): Promise<Pawl> {
  const pawl = await Pawl.open(url, { poll: "50ms" });
  onTestFinished(() => pawl.close());
  await pawl.start("story", undefined, { id: RUN, version: "1.0.0" });
  return pawl;
}

async function lateText(pawl: Pawl): Promise<StreamText> {
  const text = new StreamText();
  for await (const event of pawl.get(RUN).stream()) text.take(event);
  return text;
}

it.each(STORES)(
  "X-14 X-19 SM1 RS3 %s: a worker killed in the middle of a stream, a reader killed and rejoined by its cursor: all readers end with one text, nothing doubled, nothing lost",
  async (store) => {
    const url = urlOf(store);
    const pawl = await start(url);
    const first = worker(url);
    await hears(first, "begun 1");
    const [steady, hasty] = [reader(url), reader(url)];
    const [steadyText, hastyText] = [new StreamText(), new StreamText()];
    first.tell("more");
    await Promise.all([follow(steady, steadyText, isChunk(1, 9)), follow(hasty, hastyText, isChunk(1, 4))]);
    await hasty.kill();
    // What it emits now is on its way when it dies: some of it may be stored, or none.
    first.tell("more");
    await hears(first, "emitted 20");
    await first.kill();

    const second = worker(url);
    await hears(second, "begun 2");
    const rejoined = reader(url, hastyText.cursor);
    second.tell("more");
    await follow(rejoined, hastyText, isChunk(2, 6));
    await rejoined.kill();
    const again = reader(url, hastyText.cursor);
    second.tell("more");
    second.tell("end");
    await Promise.all([followToEnd(steady, steadyText), followToEnd(again, hastyText)]);

    expect(await pawl.get(RUN).result()).toBe("ended by 2");
    const expected = { write: [told(2, 20)] };
    expect(steadyText.texts).toEqual(expected);
    expect(hastyText.texts).toEqual(expected);
    expect(steadyText.events.filter(({ type }) => type === "retract")).toMatchObject([{ attempt: 1 }]);
    expect((await lateText(pawl)).events).toHaveLength(21);
  },
);

it.each(STORES)(
  "X-14 SM1 SM3 P20 %s: a zombie that wakes beyond its lease and emits changes nothing for readers",
  async (store) => {
    const url = urlOf(store);
    const pawl = await start(url);
    const zombie = worker(url);
    await hears(zombie, "begun 1");
    const text = new StreamText();
    const listening = reader(url);
    zombie.tell("more");
    await follow(listening, text, isChunk(1, 9));
    freeze(zombie, store === "sqlite" ? url : null);

    const heir = worker(url);
    await hears(heir, "begun 2");
    heir.tell("more");
    await follow(listening, text, isChunk(2, 9));
    // It does not know yet that it has lost the run.
    zombie.tell("more");
    zombie.process.kill("SIGCONT");
    await hears(zombie, "emitted 20", /takes a new incarnation/);
    heir.tell("more");
    heir.tell("end");
    await followToEnd(listening, text);

    expect(text.texts).toEqual({ write: [told(2, 20)] });
    expect(text.events.filter(({ type }) => type === "retract")).toMatchObject([{ attempt: 1 }]);
    expect((await lateText(pawl)).texts).toEqual(text.texts);
    expect(await pawl.get(RUN).result()).toBe("ended by 2");
  },
);

/** Stops a process, but not while it holds SQLite's lock: nobody could go on then, and that is not what is tested. */
function freeze({ process: { pid }, process: frozen }: Child, file: string | null): void {
  const db = file === null ? null : loadDriver().open(file);
  for (;;) {
    frozen.kill("SIGSTOP");
    while (!isStopped(pid as number));
    try {
      db?.exec("begin immediate; rollback");
      return db?.close();
    } catch {
      frozen.kill("SIGCONT");
    }
  }
}

function isStopped(pid: number): boolean {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T");
}
