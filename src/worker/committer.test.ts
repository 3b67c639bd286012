import { expect, it } from "vitest";
import type { Commit, Verdict } from "../core/store.ts";
import { memoryStore } from "../stores/memory/memory-store.ts";
import { type CommitSource, Committer } from "./committer.ts";
import { nodeHost } from "./node-host.ts";

/** A run that always has something to write, one thing at a time, and keeps what it was told. */
class Source implements CommitSource {
  readonly id: string;
  readonly isPatient = true;
  readonly told: Verdict[] = [];
  #isInFlight = false;

  constructor(id: string) {
    this.id = id;
  }

  take() {
    if (this.#isInFlight) return null;
    this.#isInFlight = true;
    const commit = { run: this.id, head: 0, entries: [] };
    return { commit, after: [], withoutEnd: null, withoutSuspension: null, from: { head: 0, hash: "", at: 0 } };
  }

  verdict(verdict: Verdict): void {
    this.told.push(verdict);
    this.#isInFlight = false;
  }

  offerAgain(): void {
    this.#isInFlight = false;
  }

  givesUp(): boolean {
    return false;
  }
}

const nextRound = () => new Promise<void>((resolve) => setImmediate(resolve));

it("P17 an answer that was not handed on when the committer was paused is never handed on", async () => {
  const answers: ((verdicts: Verdict[]) => void)[] = [];
  const store = { ...memoryStore(), commit: () => new Promise<Verdict[]>((resolve) => answers.push(resolve)) };
  const events = { unavailable: async () => {}, unknown: () => {}, fenced: () => {} };
  const committer = new Committer(store, { host: nodeHost, sliceRuns: 1 }, events);
  const [first, second] = [new Source("first"), new Source("second")];
  committer.dirty(first);
  committer.dirty(second);
  await nextRound();
  answers[0]?.([applied(first), applied(second)]);
  await Promise.resolve();
  expect([first.told, second.told]).toEqual([[applied(first)], []]);
  committer.pause();
  second.offerAgain();
  committer.resume();
  committer.dirty(second);
  await nextRound();
  answers[1]?.([{ run: "second", kind: "refused", why: "cancel" }]);
  await nextRound();
  expect(second.told).toEqual([{ run: "second", kind: "refused", why: "cancel" }]);
});

it("I10 what a source has to write while its answer is not handed on is taken afterwards", async () => {
  const commits: string[][] = [];
  let answer = () => {};
  const store = {
    ...memoryStore(),
    async commit({ runs }: Commit): Promise<Verdict[]> {
      commits.push(runs.map(({ run }) => run));
      if (commits.length === 1) await new Promise<void>((resolve) => (answer = resolve));
      return runs.map(({ run }) => ({ run, kind: "applied" }));
    },
  };
  const events = { unavailable: async () => {}, unknown: () => {}, fenced: () => {} };
  const committer = new Committer(store, { host: nodeHost, sliceRuns: 1 }, events);
  const sources = ["first", "second", "third"].map((id) => new Source(id));
  for (const source of sources) committer.dirty(source);
  await nextRound();
  const [first, second, third] = sources as [Source, Source, Source];
  committer.dirty(second);
  answer();
  while (first.told.length === 0) await Promise.resolve();
  expect([second.told, third.told]).toEqual([[], []]);
  committer.dirty(third);
  while (committer.isBusy) await nextRound();
  expect(commits.slice(1).flat().toSorted()).toEqual(["second", "third"]);
  expect(sources.map(({ told }) => told.length)).toEqual([1, 2, 2]);
});

function applied({ id }: Source): Verdict {
  return { run: id, kind: "applied" };
}
