// A history
// One run of a workflow from its start to its end, or from a moment of an earlier history, with what goes wrong on the way. After each blow
// a new engine finds what is left, asks for the run again and makes the script again, as a client that was restarted would.
import { hasCode, PawlError } from "../../base/errors.ts";
import type { Pawl } from "../../client/pawl.ts";
import type { Choice } from "../../client/resolve.ts";
import { parkOf, type Run } from "../../client/run.ts";
import type { Parked } from "../../core/journal.ts";
import type { OrphanRow, RunRow } from "../../core/store.ts";
import { isTerminal } from "../../core/transition.ts";
import type { Workflow } from "../../core/workflow.ts";
import { handleOf, type TestEngine } from "../test-engine.ts";
import type { MortalEngine } from "./mortal-engine.ts";
import { LEASE_MS, VirtualTime } from "./virtual-time.ts";
import type { Struck, World } from "./world.ts";

/** The id of the run in every history: whatever is derived from it is the same in all of them. */
export const RUN_ID = "crash-everywhere";
/** How often a person has something tried again that throws, so that nobody can tell what it did. */
const MOST_THROWS = 3;

export type Script = (run: Run<never>, engine: TestEngine, input: unknown) => Promise<void>;

/** What is played in every history. */
export interface Scene {
  readonly workflow: Workflow<never, unknown>;
  readonly input: unknown;
  readonly script: Script | undefined;
}

/** How a history came out. */
export interface Ending {
  readonly world: World;
  readonly rows: readonly RunRow[];
  readonly parked: ReadonlyMap<string, Parked>;
  readonly orphans: readonly OrphanRow[];
  /** Nothing could happen any more, and these runs had not ended. */
  readonly stuck: readonly RunRow[];
  /** What the script threw. */
  readonly scriptError: unknown;
}

export class History {
  readonly #world: World;
  readonly #scene: Scene;
  readonly #time: VirtualTime;
  /** Blows that are dealt with; the one that a history begins with is. */
  readonly #recovered: Set<Struck>;
  #isStuck = false;
  #scriptError: unknown;

  constructor(world: World, scene: Scene) {
    this.#world = world;
    this.#scene = scene;
    this.#time = new VirtualTime(world.clock, world.leaseClock);
    this.#recovered = new Set(world.strikes);
  }

  /** From the beginning. */
  async play(): Promise<Ending> {
    this.#begin();
    return this.#goOn();
  }

  /** From a moment at which the process was killed: what it has left is all there is. */
  async resume(): Promise<Ending> {
    const workers = (await this.#world.store.workers()).map(({ id }) => id);
    if (workers.length > 0) await this.#world.store.fence({ workers });
    return this.play();
  }

  /** An engine goes on with what is in the store; nobody asks for anything. */
  async watch(): Promise<Ending> {
    const engine = this.#world.addEngine();
    void engine.open().catch((error: unknown) => {
      this.#scriptError ??= error;
    });
    return this.#goOn();
  }

  async #goOn(): Promise<Ending> {
    for (;;) {
      await this.#world.settle(() => this.#isInterrupted());
      if (this.#world.isLeft) return this.#ending();
      if (this.#world.isEndless) throw this.#endless();
      if (this.#struck !== undefined) await this.#recover(this.#struck);
      else if (this.#thawFenced()) continue;
      else if (await this.#fenceFrozen()) continue;
      else if ((await this.#time.serve()) || (await this.#decide())) continue;
      else if (!this.#time.hasWaiters && (await this.#isOver())) return this.#ending();
      else if (!this.#time.move()) {
        this.#isStuck = true;
        return this.#ending();
      }
    }
  }

  #isInterrupted(): boolean {
    if (this.#world.isEndless || this.#world.isLeft) return true;
    return this.#struck !== undefined || this.#world.engines.some((one) => this.#isFenced(one));
  }

  #endless(): PawlError {
    for (const engine of this.#world.engines) engine.die();
    const { points } = this.#world;
    return new PawlError(
      "invalid_argument",
      `A run of "${this.#scene.workflow.name}" has come to ${points.toLocaleString("en")} points and not to its end. Test it with an input that leads to one: crashes are tried at every point of a whole run.`,
      { fields: { workflow: this.#scene.workflow.name, points } },
    );
  }

  // Blows

  get #struck(): Struck | undefined {
    return this.#world.strikes.find((strike) => !this.#recovered.has(strike));
  }

  async #recover(strike: Struck): Promise<void> {
    this.#recovered.add(strike);
    if (strike.mode === "lost-answer") return;
    const workers = strike.engine?.workers ?? [];
    if (strike.mode === "kill" && workers.length > 0) await this.#world.store.fence({ workers });
    // Its lease is over before its successor comes.
    if (strike.mode === "take-over") this.#world.leaseClock.advance(LEASE_MS + 1);
    this.#begin();
  }

  #isFenced(engine: MortalEngine): boolean {
    return engine.state === "frozen" && !engine.workers.some((worker) => this.#world.hasWorker(worker));
  }

  /** The frozen engine goes on as soon as another one has fenced it, in the middle of what that one does. */
  #thawFenced(): boolean {
    const fenced = this.#world.engines.filter((one) => this.#isFenced(one));
    for (const engine of fenced) engine.thaw();
    return fenced.length > 0;
  }

  /** Somebody who has watched it for long enough (P25) fences it, while its successor stands ready. Returns whether there was one. */
  async #fenceFrozen(): Promise<boolean> {
    const frozen = this.#world.engines.filter(({ state }) => state === "frozen");
    if (frozen.length === 0) return false;
    await this.#world.store.fence({ workers: frozen.flatMap(({ workers }) => workers), ifExpired: true });
    return frozen.every((engine) => this.#isFenced(engine));
  }

  // The client

  #begin(): void {
    const engine = this.#world.addEngine();
    void this.#ask(engine).catch((error: unknown) => {
      if (engine.state === "alive" && !this.#isOvertaken(error)) this.#scriptError ??= error;
    });
  }

  async #ask(engine: MortalEngine): Promise<void> {
    const pawl = await engine.open();
    const { workflow, input, script } = this.#scene;
    await pawl.start(workflow as unknown as Workflow, input, { id: RUN_ID });
    while (script !== undefined) {
      const handle = this.#handle(pawl, engine);
      try {
        return await script(handle.get(RUN_ID), handle, input);
      } catch (error) {
        // Whoever is not told what became of a request makes it again, under the same id.
        if (!hasCode(error, "unknown_outcome")) throw error;
      }
    }
  }

  /** A script that is made again may find that the run has gone on without it. */
  #isOvertaken(error: unknown): boolean {
    return this.#world.strikes.length > 0 && hasCode(error, "run_ended");
  }

  #handle(pawl: Pawl, engine: MortalEngine): TestEngine {
    let signals = 0;
    const named = (id: string | undefined) => ({ id: id ?? `script-${++signals}` });
    const time = this.#time.for(() => engine.state === "alive");
    const plain = handleOf(pawl, time, { drive: (promise) => promise });
    const { store, clock } = this.#world;
    const get = <O>(id: string): Run<O> => ({
      ...plain.get<O>(id),
      signal: (name, payload, how) => pawl.signal(id, name, payload, named(how?.id)),
    });
    return {
      ...plain,
      get,
      signal: (id, name, payload, how) => pawl.signal(id, name, payload, named(how?.id)),
      store,
      clock,
      close: async () => {},
    };
  }

  // The end

  async #isOver(): Promise<boolean> {
    const rows = await this.#world.store.runs({ limit: 1000 });
    if (this.#scriptError !== undefined) return true;
    return rows.length > 0 && rows.every(({ state }) => isTerminal(state) || state === "parked");
  }

  /** Decides about a run that asks a person whether something took effect, before any time passes. Returns whether there was one. */
  async #decide(): Promise<boolean> {
    const pawl = this.#world.alive?.pawl ?? null;
    if (pawl === null) return false;
    for (const [run, parked] of await this.#parked()) {
      if (parked.reason !== "unknown_outcome") continue;
      this.#world.asked(run, String(parked.detail?.["step"]));
      pawl.resolve(run, this.#answerTo(run, parked)).catch((error: unknown) => {
        if (!hasCode(error, "unknown_outcome")) this.#scriptError ??= error;
      });
      return true;
    }
    return false;
  }

  /** What a person would say who can look outside: it did if its function came to its end. One that only ever throws is given up. */
  #answerTo(run: string, { detail, choices }: Parked): Choice {
    const step = String(detail?.["step"]);
    const ends = this.#world.ends.filter(({ body }) => body.run === run && body.step === step);
    const isEffect = choices.includes("happened");
    const outcome = ends.at(-1)?.outcome ?? null;
    if (outcome !== null) return { choice: isEffect ? "happened" : "complete", value: outcome.value, step };
    if (ends.length > MOST_THROWS) return choices.includes("abort") ? "abort" : "cancel";
    return { choice: isEffect ? "did-not-happen" : "rerun", step };
  }

  async #parked(): Promise<Map<string, Parked>> {
    const waits = await this.#world.store.waits({ kind: "decision" });
    return new Map(waits.map(({ run, detail }) => [run, parkOf(run, detail ?? "")]));
  }

  async #ending(): Promise<Ending> {
    const { store } = this.#world;
    const rows = await store.runs({ limit: 1000 });
    return {
      world: this.#world,
      rows,
      parked: await this.#parked(),
      orphans: await store.orphans(),
      stuck: this.#isStuck ? rows.filter(({ state }) => !isTerminal(state) && state !== "parked") : [],
      scriptError: this.#scriptError,
    };
  }
}
