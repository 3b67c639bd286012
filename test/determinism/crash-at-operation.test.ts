// P2, P5, I5: an entry and the inbox row it consumes are one commit, so with signals the cuts that a crash can make are those between the
// store's own operations. All of them are recorded, and a new store is brought to each point by repeating them.
import fc from "fast-check";
import { expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import type { SignalReceived } from "../../src/core/journal.ts";
import type { Store } from "../../src/core/store.ts";
import { memoryStore } from "../../src/stores/memory/memory-store.ts";
import { expectLegal, expectNoWorkRepeated, expectSame } from "./crash-prefix.ts";
import { programs, propertyOptions, schedules } from "./program-arbitrary.ts";
import { goOn, runProgram, START, type Story } from "./rig.ts";

const SIGNALS = ["x", "y"] as const;

interface Operation {
  readonly at: number;
  readonly name: string;
  repeat(store: Store): Promise<unknown>;
}

it("P2, P5, I3, I5, B57: programs with signals follow their journal from a crash between any two operations of the store", async () => {
  let crashes = 0;
  await fc.assert(
    fc.asyncProperty(programs({ maxCalls: 6, signals: true }), schedules, async (program, seed) => {
      const clock = manualClock(START);
      const operations: Operation[] = [];
      const store = recording(memoryStore({ clock }), operations);
      const story = await runProgram(program, { seed, clock, store, outside: sender() });
      await expectLegal(story);
      expectSignalsUsedOnce(story);
      const created = operations.findIndex((operation) => operation.name === "commit") + 1;
      const ended = operations.findLastIndex((operation) => operation.name === "commit");
      for (let made = created; made <= ended; made++) {
        const resumed = await crashAfter(story, operations.slice(0, made), seed ^ made);
        await expectLegal(resumed);
        expectSignalsUsedOnce(resumed);
        crashes++;
      }
    }),
    propertyOptions(200),
  );
  expect(crashes).toBeGreaterThan(1000);
}, 600_000);

/** Repeats what the store was asked, then fences whoever asked it; a new engine goes on, and the sender sends everything again. */
async function crashAfter(story: Story, operations: readonly Operation[], seed: number): Promise<Story> {
  const clock = manualClock(START);
  const store = memoryStore({ clock });
  for (const operation of operations) {
    clock.advance(operation.at - clock.now());
    await operation.repeat(store);
  }
  await store.fence({ workers: (await store.workers()).map((worker) => worker.id) });
  const kept = await store.journal(story.row.id);
  const resumed = await goOn(story, { seed, clock, store, outside: sender() });
  expectSame(resumed.journal.slice(0, kept.length), kept);
  expectSame(kept, story.journal.slice(0, kept.length));
  expectNoWorkRepeated(resumed, kept.length);
  return resumed;
}

/** Sends signals now and then, each under an id of its own, for as long as the run lives. */
function sender(): (pawl: Pawl, run: string, chance: () => number) => Promise<boolean> {
  let sent = 0;
  return async (pawl, run, chance) => {
    if (chance() < 0.25) {
      const name = SIGNALS[sent % 2] as string;
      await pawl.signal(run, name, `payload ${sent}`, { id: `signal-${sent++}` }).catch(ignoreEnded);
    }
    return sent < 60;
  };
}

function ignoreEnded(error: { code?: string }): void {
  if (error.code !== "run_ended") throw error;
}

function expectSignalsUsedOnce(story: Story): void {
  const received = story.entries.filter((entry) => entry.type === "signal.received");
  const ids = received.map((entry) => (entry.payload as SignalReceived).id);
  expect(new Set(ids).size).toBe(ids.length);
}

/** Notes every operation that changes the store, in the order in which the store applied them. */
function recording(store: Store, operations: Operation[]): Store {
  const noted =
    <A extends unknown[], R>(name: string, call: (store: Store, ...args: A) => Promise<R>) =>
    (...args: A): Promise<R> => {
      operations.push({ at: store.clock.now(), name, repeat: (other) => call(other, ...args) });
      return call(store, ...args);
    };
  return {
    ...store,
    register: noted("register", (one, ...args: Parameters<Store["register"]>) => one.register(...args)),
    claim: noted("claim", (one, ...args: Parameters<Store["claim"]>) => one.claim(...args)),
    take: noted("take", (one, ...args: Parameters<Store["take"]>) => one.take(...args)),
    commit: noted("commit", (one, ...args: Parameters<Store["commit"]>) => one.commit(...args)),
    deliver: noted("deliver", (one, ...args: Parameters<Store["deliver"]>) => one.deliver(...args)),
  };
}
