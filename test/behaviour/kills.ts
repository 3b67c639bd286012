// Kills at chosen writes: a run goes on by nothing but what is durable.
import { vi } from "vitest";
import type { Pawl } from "../../src/client/pawl.ts";
import type { Commit } from "../../src/core/store.ts";
import type { Workflows, World } from "./harness.ts";

/** Kills every engine of a world right after each commit that is a point. */
export class Kills {
  readonly #world: World;
  #pawl: Pawl | null = null;
  #whenKilled = (_: null) => {};
  count = 0;

  constructor(world: World, isPoint: (batch: Commit) => boolean | Promise<boolean>) {
    this.#world = world;
    const commit = world.store.commit.bind(world.store);
    vi.spyOn(world.store, "commit").mockImplementation(async (batch) => {
      const verdicts = await commit(batch);
      if (!(await isPoint(batch))) return verdicts;
      this.count++;
      world.killAll();
      this.#pawl = null;
      this.#whenKilled(null);
      return verdicts;
    });
  }

  /** Opens one engine after the other, until one comes to rest: the last one, if it is still alive. */
  async goOn(workflows: Workflows): Promise<Pawl> {
    await this.#world.settle();
    while (this.#pawl === null) {
      // One that is killed while it opens never answers.
      const killed = new Promise<null>((resolve) => {
        this.#whenKilled = resolve;
      });
      const before = this.count;
      const opened = await Promise.race([this.#world.restart(workflows), killed]);
      await this.#world.settle();
      if (this.count === before) this.#pawl = opened;
    }
    return this.#pawl;
  }
}
