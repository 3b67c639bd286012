// Writers, zombies and readers of streams in every order that chance finds: whoever reads ends with the same text, and it is the right one.
import fc from "fast-check";
import { expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { encode } from "../../src/base/codec.ts";
import { jsonCodec } from "../../src/base/envelope.ts";
import { Changes } from "../../src/client/changes.ts";
import type { RunSource } from "../../src/client/run.ts";
import { streamOf } from "../../src/client/stream.ts";
import type { EntryType, StoredEntry } from "../../src/core/journal.ts";
import type { RowPatch, RunRow, Store } from "../../src/core/store.ts";
import { memoryStore } from "../../src/stores/memory/memory-store.ts";
import { apply, creation, newWorker } from "../../src/testing/store-cases/case.ts";
import { StreamText } from "../stream-text.ts";

const RUN = "r1";

/** How an attempt ends: its process dies, it fails and is tried again, or that was its last. A dead one may emit more when others have gone on. */
interface Attempt {
  readonly batches: readonly number[];
  readonly how: "crash" | "retry" | "park";
  readonly late: readonly number[];
}

interface Step {
  readonly attempts: readonly Attempt[];
  readonly last: { readonly batches: readonly number[]; readonly ok: boolean };
}

const batches = fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 3 });
const attempt: fc.Arbitrary<Attempt> = fc.record({
  batches,
  how: fc.constantFrom("crash" as const, "retry" as const, "park" as const),
  late: batches,
});
const step: fc.Arbitrary<Step> = fc.record({
  attempts: fc.array(attempt, { maxLength: 3 }),
  last: fc.record({ batches, ok: fc.boolean() }),
});

/** The journal of the run, and who writes to it. */
class Writer {
  readonly #store: Store;
  #head = 1;

  constructor(store: Store) {
    this.#store = store;
  }

  async append(type: EntryType, key: string | null, payload: unknown, patch: RowPatch = {}): Promise<string> {
    const seq = this.#head++;
    const hash = `hash-${seq}`;
    const data = payload === null ? null : encode(payload);
    const entry: StoredEntry = { seq, at: seq, type, key, data, hash };
    await apply(this.#store, { run: RUN, head: seq, entries: [entry], row: { ...patch, head: this.#head } });
    return hash;
  }

  /** What one attempt emits: batches of chunks, from a number on; returns the next. */
  async emit(start: string, counts: readonly number[], from: number, pause: () => Promise<void>): Promise<number> {
    let n = from;
    for (const count of counts) {
      await pause();
      const numbers = Array.from({ length: count }, (_, i) => n + i);
      await this.#store.emit(numbers.map((one) => ({ run: RUN, start, n: one, data: `"${start}.${one} "` })));
      n += count;
    }
    return n;
  }

  async close(start: string, n: number): Promise<void> {
    await this.#store.emit([{ run: RUN, start, n, data: null }]);
  }
}

type Pause = () => Promise<void>;

/** Plays a step; returns what readers must have read in the end. */
async function play(
  writer: Writer,
  key: string,
  { attempts, last }: Step,
  isAlone: boolean,
  pause: Pause,
): Promise<string> {
  const zombies: Promise<unknown>[] = [];
  let number = 0;
  const begin = async () => {
    await pause();
    return writer.append("step.started", key, ++number === 1 ? null : { attempt: number });
  };
  for (const { batches: counts, how, late } of attempts) {
    const start = await begin();
    const n = await writer.emit(start, counts, 0, pause);
    if (how !== "retry") zombies.push(writer.emit(start, late, n, pause).then((end) => writer.close(start, end)));
    await pause();
    if (how === "retry") await writer.append("step.failed", key, { attempt: number, error: "x", retryAt: 1 });
    // A run that parks gives up all that is under way: here that is what is played.
    if (how === "park" && isAlone)
      await writer.append("run.parked", null, { reason: "poisoned", message: "", choices: [] });
  }
  const start = await begin();
  const n = await writer.emit(start, last.batches, 0, pause);
  if (n > 0) await writer.close(start, n);
  await pause();
  await (last.ok
    ? writer.append("step.completed", key, "result")
    : writer.append("step.failed", key, { attempt: number, error: "x", retryAt: null }));
  await Promise.all(zombies);
  const text = last.ok ? Array.from({ length: n }, (_, i) => `${start}.${i} `).join("") : "";
  return `${text}${last.ok ? "." : " failed."}`;
}

/** Reads to the end, leaves now and then, and goes on from its last cursor. */
async function read(source: RunSource, row: () => Promise<RunRow>, patience: readonly number[]): Promise<StreamText> {
  const text = new StreamText();
  for (let life = 0; ; life++) {
    let left = patience[life] ?? Number.POSITIVE_INFINITY;
    const { cursor } = text;
    for await (const event of streamOf(source, RUN, row, cursor === undefined ? {} : { after: cursor })) {
      text.take(event);
      if (--left <= 0) break;
    }
    if (left > 0) return text;
  }
}

it("RS1 RS2 RS3 SR1 SR2 SM1 X-19 whatever the order of writes, attempts, zombies and reads, all readers end with the text of the last attempts", async () => {
  const scenario = fc.record({
    steps: fc.array(step, { minLength: 1, maxLength: 3 }),
    readers: fc.array(fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 5 }), { minLength: 2, maxLength: 2 }),
  });
  await fc.assert(
    fc.asyncProperty(scenario, fc.scheduler(), async ({ steps, readers }, scheduler) => {
      const store = memoryStore();
      await store.register(newWorker("w1"));
      await apply(store, creation(RUN, { claimed: true }));
      const changes = new Changes(systemClock, 3_600_000);
      store.hints(({ runs }) => changes.tellHinted(runs));
      const source = { store: slowed(store, scheduler), codec: jsonCodec, changes, assertOpen: () => {} };
      const row = async () => (await source.store.run(RUN)) as RunRow;
      const reading = readers.map((patience) => read(source as unknown as RunSource, row, patience));
      const writer = new Writer(slowed(store, scheduler, () => changes.tell(RUN)));
      const pause = () => scheduler.schedule(Promise.resolve());
      const work = async () => {
        const played = steps.map(
          async (one, i) => [`s${i}`, [await play(writer, `s${i}`, one, steps.length === 1, pause)]] as const,
        );
        const expected = Object.fromEntries(await Promise.all(played));
        await writer.append("run.succeeded", null, null, { state: "succeeded", ended: true, release: true });
        return expected;
      };
      const expected = await scheduler.waitFor(work());
      const texts = await scheduler.waitFor(Promise.all(reading));
      for (const text of texts) expect(text.texts).toEqual(expected);
      const late = await scheduler.waitFor(read(source as unknown as RunSource, row, []));
      expect(late.texts).toEqual(expected);
    }),
    { numRuns: 150 },
  );
}, 60_000);

/** The same store, whose answers come when the scheduler says so; what it does, it does at once. */
function slowed(store: Store, scheduler: fc.Scheduler, changed: () => void = () => {}): Store {
  const slow =
    <A extends readonly unknown[], R>(call: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      const answer = await call(...args);
      changed();
      return scheduler.schedule(Promise.resolve(answer));
    };
  const { run, journal, chunks, emit, commit } = store;
  return {
    ...store,
    run: slow(run),
    journal: slow(journal),
    chunks: slow(chunks),
    emit: slow(emit),
    commit: slow(commit),
  };
}
