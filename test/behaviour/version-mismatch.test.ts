import { describe, expect, it, vi } from "vitest";
import { type ManualClock, manualClock } from "../../src/base/clock.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import type { PawlOptions } from "../../src/client/pawl-options.ts";
import { withStructure } from "../../src/core/structure.ts";
import { versionMismatch } from "../../src/core/version-mismatch.ts";
import { type Workflow, type WorkflowOptions, workflow } from "../../src/core/workflow.ts";
import { errorOf, openWorld, STORES, STORES_AT_ONCE, type StoreKind, type Workflows, type World } from "./harness.ts";

const SECOND = 1000;
const GRACE = 60 * SECOND;

/** Every body that was called, by the version of its code. */
const make = (called: string[], version: string, more: Partial<WorkflowOptions<string>> = {}) =>
  workflow<string, string>({ name: "w", version, ...more }, async (ctx, input) => {
    called.push(version);
    ctx.set("note", ctx.get("note") ?? "first");
    await ctx.step("a", () => "A");
    await ctx.waitFor("go");
    return `${version} ${input} ${String(ctx.get("note"))} ${JSON.stringify(ctx.run.adopted ?? null)}`;
  });

/** A world whose housekeeping moves by hand. */
class Deployment {
  readonly world: World;
  readonly #lease: ManualClock;

  constructor(world: World, lease: ManualClock) {
    this.world = world;
    this.#lease = lease;
  }

  static async open(store: StoreKind): Promise<Deployment> {
    const lease = manualClock();
    return new Deployment(await openWorld(store, { leaseClock: lease }), lease);
  }

  /** All workers are gone, and these come up. */
  deploy(workflows: Workflows, options: PawlOptions = {}): Promise<Pawl> {
    return this.world.restart(workflows, { versionGrace: GRACE, ...options });
  }

  /** Lets so much time pass on the clock of leases and housekeeping. */
  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 5 * SECOND) {
      this.#lease.advance(Math.min(left, 5 * SECOND));
      await this.world.settle();
    }
  }

  /** A run of 1.3.0 that waits, and a worker with other code for long enough. */
  async strand(called: string[], code: Workflows, input = "x"): Promise<Pawl> {
    const old = make(called, "1.3.0");
    await (await this.deploy([old])).start(old, input, { id: "r", key: "k" });
    await this.world.settle();
    const pawl = await this.deploy(code);
    await this.pass(GRACE * 3);
    return pawl;
  }
}

describe.each(STORES)("a version that no worker has, on %s", (store) => {
  it("S0-39 S0-40 S0-44 E-1 P34 parks the run with both versions and three numbered choices; no code is called", async () => {
    const deployment = await Deployment.open(store);
    const called: string[] = [];
    const code = make(called, "2.0.0");
    const pawl = await deployment.strand(called, [code]);
    const { parked, version, waits } = await pawl.get("r").status();
    expect(version).toBe("1.3.0");
    expect(parked).toMatchObject({
      reason: "version_mismatch",
      choices: ["old", "fresh", "migrate", "cancel"],
      detail: { saved: "1.3.0", current: "2.0.0", choices: ["old", "fresh", "migrate", "cancel"] },
    });
    expect(parked?.message).toMatch(/1\.3\.0.*2\.0\.0[\s\S]*\n1\. [\s\S]*\n2\. [\s\S]*\n3\. /);
    expect(waits.map(({ kind }) => kind).sort()).toEqual(["decision", "signal"]);
    // Whoever wants it by its key, here, is told; a client that only looks is not.
    for (const ask of [() => pawl.start(code, "x", { key: "k" }), () => pawl.run(code, "x", { key: "k" })])
      expect(await errorOf(ask())).toMatchObject({
        code: "version_mismatch",
        fields: { saved: "1.3.0", current: "2.0.0", choices: ["old", "fresh", "migrate", "cancel"] },
      });
    const client = await deployment.world.open();
    expect((await client.start("w", "x", { key: "k", version: "2.0.0" })).id).toBe("r");
    expect(called).toEqual(["1.3.0"]);
  });

  it("S0-41 choice 1: a worker with the old definition goes on with it, whether or not somebody has said so", async () => {
    const deployment = await Deployment.open(store);
    const called: string[] = [];
    const pawl = await deployment.strand(called, [make(called, "2.0.0")]);
    await pawl.resolve("r", "old");
    await pawl.signal("r", "go");
    await deployment.world.settle();
    expect(called).toEqual(["1.3.0"]);
    const both = await deployment.deploy([make(called, "1.3.0"), make(called, "2.0.0")]);
    expect(await both.get("r").result()).toBe("1.3.0 x first null");
    expect(new Set(called)).toEqual(new Set(["1.3.0"]));
  });

  it("S0-41 a worker that has the old definition takes a parked run up by itself, and says so", async () => {
    const deployment = await Deployment.open(store);
    const called: string[] = [];
    await deployment.strand(called, [make(called, "2.0.0")]);
    const back = await deployment.deploy([make(called, "1.3.1")]);
    await deployment.pass(10 * SECOND);
    const { parked, version } = await back.get("r").status();
    expect([parked, version]).toEqual([undefined, "1.3.1"]);
    const resolved = (await back.get("r").journal()).filter(({ type }) => type === "run.resolved");
    expect(resolved.map(({ payload }) => payload)).toMatchObject([{ choice: "old" }]);
    await back.signal("r", "go");
    expect(await back.get("r").result()).toBe("1.3.1 x first null");
  });

  it("S0-42 C-10 choice 2: the old run is kept as it was, a new one starts, and its start key leads there", async () => {
    const deployment = await Deployment.open(store);
    const { world } = deployment;
    const called: string[] = [];
    const code = make(called, "2.0.0");
    const pawl = await deployment.strand(called, [code]);
    const before = await world.store.journal("r");
    await pawl.resolve("r", "fresh");
    await world.settle();
    expect((await world.store.journal("r")).slice(0, before.length)).toEqual(before);
    expect((await pawl.get("r").status()).state).toBe("cancelled");
    const fresh = await pawl.start(code, "x", { key: "k" });
    expect(await fresh.status()).toMatchObject({ origin: "r", version: "2.0.0", key: "k" });
    await fresh.signal("go");
    expect(await fresh.result()).toBe("2.0.0 x first null");
    expect(called.filter((version) => version === "1.3.0")).toHaveLength(1);
  });

  it("I26 S0-42 a run that is started afresh has the budget that the old one was started with", async () => {
    const deployment = await Deployment.open(store);
    const { world } = deployment;
    const make = (version: string) =>
      workflow({ name: "w", version }, async (ctx) => {
        await ctx.waitFor("go");
        await ctx.step("dear", () => "done", { spend: { usd: 2 } });
      });
    const [old, code] = [make("1.3.0"), make("2.0.0")];
    await (await deployment.deploy([old])).start(old, undefined, { id: "r", key: "k", budget: { usd: 1 } });
    await world.settle();
    const pawl = await deployment.deploy([code]);
    await deployment.pass(GRACE * 3);
    await pawl.resolve("r", "fresh");
    const fresh = await pawl.start(code, undefined, { key: "k" });
    await fresh.signal("go");
    await world.settle();
    expect(await fresh.status()).toMatchObject({
      parked: { reason: "budget_exceeded", detail: { budget: fresh.id } },
      budget: { run: fresh.id, limits: { usd: 1 } },
    });
  });

  it("S0-43 C-10 choice 3: migrations lead from version to version, and what they give is the next generation", async () => {
    const deployment = await Deployment.open(store);
    const called: string[] = [];
    const seen: unknown[] = [];
    const code = make(called, "2.0.0", {
      uses: { prompts: { review: "4" } },
      migrations: [
        {
          from: "1.4",
          to: "2.0.0",
          migrate: (saved) => {
            seen.push(saved);
            return { state: { ...saved.state, note: `${saved.state["note"]}+2` }, phases: { a: { status: "done" } } };
          },
        },
        {
          from: "1.3",
          to: "1.4.0",
          migrate: ({ input, state }) => ({ input: `${input}!`, state: { ...state, note: "one" } }),
        },
      ],
    });
    const pawl = await deployment.strand(called, [code]);
    await pawl.resolve("r", { choice: "migrate", value: { by: "ann" } });
    await pawl.signal("r", "go");
    expect(await pawl.get("r").result()).toBe('2.0.0 x! one+2 {"phases":{"a":{"status":"done"}}}');
    expect(seen).toEqual([
      {
        version: "1.4.0",
        input: "x!",
        state: { note: "one" },
        phases: {},
        steps: { a: { status: "done", output: "A" } },
        adopted: undefined,
      },
    ]);
    const journal = await pawl.get("r").journal();
    const at = journal.findIndex(({ type }) => type === "run.continued");
    expect(journal[at - 1]).toMatchObject({ type: "run.resolved", payload: { choice: "migrate" } });
    // S0-49: which definition executes what follows.
    expect(journal[at]?.payload).toMatchObject({
      cause: "migration",
      version: "2.0.0",
      by: "ann",
      seed: "r",
      structure: code.definition.structure,
      uses: { prompts: { review: "4" } },
    });
    expect((await pawl.get("r").status()).version).toBe("2.0.0");
  });

  it("a rolling deployment is no mismatch: nothing is parked while a worker with the version comes and goes", async () => {
    const deployment = await Deployment.open(store);
    const called: string[] = [];
    const old = make(called, "1.3.0");
    await (await deployment.deploy([old])).start(old, "x", { id: "r" });
    await deployment.world.settle();
    const pawl = await deployment.deploy([make(called, "2.0.0")]);
    await deployment.pass(GRACE - 10 * SECOND);
    const again = await deployment.world.open([old], { versionGrace: GRACE });
    await deployment.pass(GRACE);
    await again.close();
    await deployment.pass(GRACE - 10 * SECOND);
    expect((await pawl.get("r").status()).state).toBe("waiting");
    await deployment.pass(GRACE);
    expect((await pawl.get("r").status()).state).toBe("parked");
  });
});

describe.each(STORES_AT_ONCE)("deciding about a version, on %s", (store) => {
  it("S0-43 refuses to migrate where nothing leads to the version, and names what is missing", async () => {
    const deployment = await Deployment.open(store);
    const called: string[] = [];
    const pawl = await deployment.strand(called, [make(called, "2.0.0")]);
    const error = await errorOf(pawl.resolve("r", "migrate"));
    expect(error).toMatchObject({ code: "version_mismatch", fields: { saved: "1.3.0", current: "2.0.0" } });
    expect(error.message).toMatch(/migrations: \[\{ from: "1\.3", to: "2\.0\.0"/);
    expect((await pawl.get("r").status()).parked?.reason).toBe("version_mismatch");
  });

  it("S0-43 what a migration throws, or gives and is wrong, leaves the run parked as it was", async () => {
    const deployment = await Deployment.open(store);
    const called: string[] = [];
    const results: (() => unknown)[] = [
      () => {
        throw new Error("no way");
      },
      () => Promise.resolve({}),
      () => ({ state: [] }),
      () => ({ phases: 1 }),
    ];
    const migrations = [{ from: "1.3", to: "2.0.0", migrate: () => results[0]?.() as object }];
    const pawl = await deployment.strand(called, [make(called, "2.0.0", { migrations })]);
    for (const text of [/no way/, /must be an object/, /`state` must be/, /`phases` must be/]) {
      expect((await errorOf(pawl.resolve("r", "migrate"))).message).toMatch(text);
      results.shift();
      await deployment.world.settle();
    }
    expect(await pawl.get("r").status()).toMatchObject({ state: "parked", version: "1.3.0" });
  });

  it("S0-43 a client without code leaves the migration to a worker that has it; one that fails asks again", async () => {
    const deployment = await Deployment.open(store);
    const called: string[] = [];
    let fails = true;
    const migrate = () => {
      if (fails) throw new Error("not yet");
      return { input: "migrated" };
    };
    const code = make(called, "2.0.0", { migrations: [{ from: "1.3", to: "2.0.0", migrate }] });
    const pawl = await deployment.strand(called, [code]);
    const client = await deployment.world.open();
    await client.resolve("r", "migrate");
    expect((await client.get("r").status()).parked).toMatchObject({ reason: "migration_pending" });
    await deployment.pass(10 * SECOND);
    const { parked } = await client.get("r").status();
    expect(parked).toMatchObject({ reason: "version_mismatch", choices: ["old", "fresh", "migrate", "cancel"] });
    expect(parked?.message).toContain("not yet");
    fails = false;
    await client.resolve("r", "migrate");
    await deployment.pass(10 * SECOND);
    await pawl.signal("r", "go");
    expect(await pawl.get("r").result()).toBe("2.0.0 migrated first null");
  });

  it("C-1 C-10 a fresh start is refused while effects exist, unless it is forced; so is one of a child that is waited for", async () => {
    const deployment = await Deployment.open(store);
    const done: string[] = [];
    const paying = (version: string) =>
      workflow({ name: "paying", version }, async (ctx) => {
        await ctx.effect("charge", { do: () => void done.push(version), idempotent: true });
        await ctx.waitFor("go");
      });
    const parent = workflow("parent", async (ctx) => ctx.call(make([], "1.0.0"), "c"));
    const first = await deployment.deploy([paying("1.0.0"), parent, make([], "1.0.0")]);
    await first.start(paying("1.0.0"), undefined, { id: "p" });
    await first.start(parent, undefined, { id: "q" });
    await deployment.world.settle();
    const pawl = await deployment.deploy([paying("2.0.0"), parent, make([], "2.0.0")]);
    await deployment.pass(GRACE * 3);
    const refused = await errorOf(pawl.resolve("p", "fresh"));
    expect(refused).toMatchObject({ code: "unsafe_retry", fields: { effects: ["charge"] } });
    const [wait] = (await pawl.get("q").status()).waits;
    expect(await errorOf(pawl.resolve(wait?.name ?? "", "fresh"))).toMatchObject({ code: "unsafe_retry" });
    await pawl.resolve("p", { choice: "fresh", value: { force: true } });
    await deployment.world.settle();
    expect(done).toEqual(["1.0.0", "2.0.0"]);
  });

  it("I2 FR1 FR2 a fresh start that is cut off before its key has moved: the key leads to the new run all the same", async () => {
    const deployment = await Deployment.open(store);
    const { world } = deployment;
    const called: string[] = [];
    const code = make(called, "2.0.0");
    await deployment.strand(called, [code]);
    const client = await world.open([], {});
    const { commit } = world.store;
    const spy = vi.spyOn(world.store, "commit").mockImplementation(async (batch) => {
      const verdicts = await commit.call(world.store, batch);
      if (batch.runs.some(({ children }) => children !== undefined)) world.kill(client);
      return verdicts;
    });
    void client.resolve("r", "fresh");
    await world.settle();
    spy.mockRestore();
    const pawl = await deployment.deploy([code]);
    await world.advance(20 * SECOND);
    const fresh = await pawl.start(code, "x", { key: "k" });
    expect(await fresh.status()).toMatchObject({ origin: "r", version: "2.0.0" });
    await fresh.signal("go");
    expect(await fresh.result()).toBe("2.0.0 x first null");
    expect((await pawl.get("r").status()).state).toBe("cancelled");
    expect(await pawl.list({ workflow: "w" })).toMatchObject({ runs: { length: 2 } });
  });

  it("C-10 a run that needs a slot is parked and migrated like any other, and waits for its slot again", async () => {
    const deployment = await Deployment.open(store);
    const called: string[] = [];
    const slotted = { concurrency: 1 };
    const old = make(called, "1.3.0", slotted);
    await (await deployment.deploy([old])).start(old, "x", { id: "r" });
    await deployment.world.settle();
    const migrations = [{ from: "1.3", to: "2.0.0", migrate: () => ({}) }];
    const pawl = await deployment.deploy([make(called, "2.0.0", { ...slotted, migrations })]);
    await deployment.pass(GRACE * 3);
    await pawl.resolve("r", "migrate");
    await pawl.signal("r", "go");
    expect(await pawl.get("r").result()).toBe("2.0.0 x first null");
  });

  it("P19 a run that is parked for its version can be cancelled", async () => {
    const deployment = await Deployment.open(store);
    const pawl = await deployment.strand([], [make([], "2.0.0")]);
    await pawl.resolve("r", "cancel");
    expect((await pawl.get("r").status()).state).toBe("cancelled");
  });
});

describe.each(STORES_AT_ONCE)("a definition that changed under its version, on %s", (store) => {
  const shaped = (shape: unknown, version = "1.3.0"): Workflow<string, string> =>
    withStructure(make([], version), shape);

  it("S0-48 E-2 parks the run: definition changed, version did not; the old definition goes on with it by itself", async () => {
    const deployment = await Deployment.open(store);
    const old = shaped({ phases: ["a"] });
    const first = await deployment.deploy([old]);
    await first.start(old, "x", { id: "r" });
    await deployment.world.settle();
    const [started] = await first.get("r").journal();
    expect(started?.payload).toMatchObject({ structure: old.definition.structure });
    const changed = await deployment.deploy([shaped({ phases: ["a", "b"] })]);
    await changed.signal("r", "go");
    await deployment.world.settle();
    const { parked } = await changed.get("r").status();
    expect(parked).toMatchObject({ reason: "definition_changed", choices: ["retry", "fresh", "cancel"] });
    expect(parked?.message).toContain("definition changed, version did not");
    await changed.resolve("r", "retry");
    await deployment.world.settle();
    expect((await changed.get("r").status()).parked?.reason).toBe("definition_changed");
    const back = await deployment.deploy([old]);
    await deployment.pass(10 * SECOND);
    expect(await back.get("r").result()).toBe("1.3.0 x first null");
  });

  it("S0-46 S0-49 a patch with another structure goes on, and the journal has both hashes", async () => {
    const deployment = await Deployment.open(store);
    const [old, next] = [shaped(1), shaped(2, "1.3.1")];
    await (await deployment.deploy([old])).start(old, "x", { id: "r" });
    await deployment.world.settle();
    const pawl = await deployment.deploy([next]);
    await pawl.signal("r", "go");
    await pawl.get("r").result();
    const change = (await pawl.get("r").journal()).find(({ type }) => type === "version.changed");
    expect(change?.payload).toEqual({
      from: "1.3.0",
      to: "1.3.1",
      structure: { from: old.definition.structure, to: next.definition.structure },
    });
  });

  it("S2-60 whoever starts by name alone knows no definition: the first worker pins it", async () => {
    const deployment = await Deployment.open(store);
    const named = (review: string) =>
      workflow({ name: "named", uses: { prompts: { review } } }, async (ctx) => {
        await ctx.waitFor("go");
        return ctx.run.uses["prompts"]?.["review"];
      });
    const client = await deployment.world.open();
    await client.start("named", undefined, { id: "r", version: "1.0.0" });
    const pawl = await deployment.world.open([named("3")]);
    await pawl.idle();
    const [, mark] = await pawl.get("r").journal();
    expect(mark).toMatchObject({
      type: "version.changed",
      payload: { from: "1.0.0", to: "1.0.0", uses: { prompts: { review: "3" } } },
    });
    const again = await deployment.deploy([named("3")]);
    await again.signal("r", "go");
    expect(await again.get("r").result()).toBe("3");
  });
});

describe.each(STORES_AT_ONCE)("a version that is finished beside a newer one, on %s", (store) => {
  it("S0-45 D-7 MINOR: runs in flight finish as 1.3.0, new ones are 1.4.0, in one process", async () => {
    const deployment = await Deployment.open(store);
    const called: string[] = [];
    const old = make(called, "1.3.0");
    await (await deployment.deploy([old])).start(old, "x", { id: "r" });
    await deployment.world.settle();
    const pawl = await deployment.deploy([old, make(called, "1.4.0")]);
    const next = await pawl.start("w", "y");
    for (const run of [pawl.get("r"), next]) await run.signal("go");
    expect(await pawl.get("r").result()).toBe("1.3.0 x first null");
    expect(await next.result()).toBe("1.4.0 y first null");
  });
});

/** What becomes of a run of one version where only another one is: it goes on, or it is parked. */
const MATRIX: readonly [saved: string, current: string, semver: boolean, exact: boolean][] = [
  ["1.3.0", "1.3.0", true, true],
  ["1.3.0", "1.3.1", true, false],
  ["1.3.0", "1.3.9", true, false],
  ["1.3.1", "1.3.0", false, false],
  ["1.3.0", "1.4.0", false, false],
  ["1.4.0", "1.3.0", false, false],
  ["1.3.0", "2.0.0", false, false],
  ["1.3.0", "2.3.0", false, false],
  ["2.0.0", "1.3.0", false, false],
  ["0.0.1", "0.0.2", true, false],
  ["1.2.0", "1.10.0", false, false],
];

describe.each(STORES_AT_ONCE)("the version matrix on %s", (store) => {
  it.each(["semver", "exact", "ignore"] as const)(
    "T-5 C-10 S0-44 S0-45 S0-46 under the policy %s, only what may go on does, and no wrong code is ever called",
    async (versionPolicy) => {
      const deployment = await Deployment.open(store);
      const called: string[][] = MATRIX.map(() => []);
      const named = (n: number, version: string) =>
        workflow({ name: `w${n}`, version, versionPolicy }, async (ctx) => {
          called[n]?.push(version);
          await ctx.waitFor("go");
          return version;
        });
      const before = await deployment.deploy(MATRIX.map(([saved], n) => named(n, saved)));
      for (const [n, [saved]] of MATRIX.entries()) await before.start(named(n, saved), undefined, { id: `r${n}` });
      await deployment.world.settle();
      const pawl = await deployment.deploy(MATRIX.map(([, current], n) => named(n, current)));
      await deployment.pass(GRACE * 3);
      for (const n of MATRIX.keys()) await pawl.signal(`r${n}`, "go");
      await deployment.world.settle();
      for (const [n, [saved, current, semver, exact]] of MATRIX.entries()) {
        const goesOn = { semver, exact, ignore: true }[versionPolicy];
        const { state, parked, version } = await pawl.get(`r${n}`).status();
        const pair = `${saved} -> ${current}`;
        expect([pair, state, parked?.reason, version]).toEqual([
          pair,
          ...(goesOn ? ["succeeded", undefined, current] : ["parked", "version_mismatch", saved]),
        ]);
        const wrong = called[n]?.slice(1).filter(() => !goesOn);
        expect([pair, wrong]).toEqual([pair, []]);
        const upgrades = (await pawl.get(`r${n}`).journal()).filter(({ type }) => type === "version.changed");
        expect([pair, upgrades.length]).toEqual([pair, goesOn && saved !== current ? 1 : 0]);
      }
    },
  );
});

it("S0-47 a document without a version counts as a mismatch", () => {
  const error = versionMismatch({ run: "r", workflow: "w", saved: null, current: "2.0.0" });
  expect(error).toMatchObject({ code: "version_mismatch", fields: { saved: null, current: "2.0.0" } });
  expect(error.message).toMatch(/does not say which version/);
});

it("C-10 refuses policies and migrations that are none, with their path", () => {
  const given = (more: object) => () => workflow({ name: "w", ...more }, async () => 1);
  expect(given({ versionPolicy: "loose" })).toThrow(/versionPolicy/);
  const migrate = () => ({});
  expect(given({ migrations: {} })).toThrow(/`migrations`/);
  expect(given({ migrations: [{ from: "1", to: "2.0.0", migrate }] })).toThrow(/migrations\[0\]\.from/);
  expect(given({ migrations: [{ from: "1.3", to: "2", migrate }] })).toThrow(/migrations\[0\]\.to/);
  expect(given({ migrations: [{ from: "1.3", to: "2.0.0" }] })).toThrow(/migrations\[0\]\.migrate/);
});

describe.each(STORES_AT_ONCE)("the verbs on %s", (store) => {
  it("S0-38 a run is there at once, with its version and start time and nothing done, before any body runs", async () => {
    const world = await openWorld(store);
    const called: string[] = [];
    const code = make(called, "1.3.0");
    const client = await world.open();
    await client.start("w", "x", { id: "r", version: code.version });
    world.kill(client);
    const looking = await world.open();
    const { version, createdAt, state, data } = await looking.get("r").status();
    expect([version, createdAt.getTime(), state, data]).toEqual(["1.3.0", world.clock.now(), "accepted", {}]);
    expect(await world.journal("r")).toEqual(["run.started"]);
    expect(called).toEqual([]);
  });

  it("C-2 E-23 whoever resumes by id is strict, whoever starts with it is lenient, and what a live run lacks is executed", async () => {
    const world = await openWorld(store);
    const called: string[] = [];
    const code = make(called, "1.3.0");
    const pawl = await world.open([code]);
    expect(await errorOf(pawl.get("r").result())).toMatchObject({ code: "run_not_found" });
    expect(await errorOf(pawl.rewrite("r", { cause: "edit", by: "a", reason: "b" }))).toMatchObject({
      code: "run_not_found",
    });
    for (let n = 0; n < 2; n++) expect((await pawl.start(code, "x", { id: "r" })).id).toBe("r");
    await pawl.signal("r", "go");
    expect(await pawl.get("r").result()).toBe("1.3.0 x first null");
  });
});

it("S0-51 gates, their options and routing are parts of a structure; the order in which they are written is not", () => {
  const hash = (shape: unknown) => withStructure(make([], "1.3.0"), shape).definition.structure;
  const shape = { phases: ["a", "b"], gates: { review: { options: ["yes", "no"] } }, routes: { a: "b" } };
  expect(hash({ routes: { a: "b" }, gates: { review: { options: ["yes", "no"] } }, phases: ["a", "b"] })).toBe(
    hash(shape),
  );
  for (const other of [
    { ...shape, gates: { review: { options: ["yes", "no", "later"] } } },
    { ...shape, routes: { a: "c" } },
    { ...shape, phases: ["b", "a"] },
  ])
    expect(hash(other)).not.toBe(hash(shape));
});
