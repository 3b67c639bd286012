import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { Pawl } from "../../src/client/pawl.ts";
import type { ScheduleOptions } from "../../src/client/schedules.ts";
import { LIMITS } from "../../src/core/limits.ts";
import type { Commit, Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { DAY, errorOf, HOUR, MINUTE, openWorld, STORES, type World } from "./harness.ts";

/** A workflow that notes the slots it ran for, and one whose runs wait to be told to end. */
function jobs() {
  const ran: { slot: number; input: unknown; begun: number }[] = [];
  const job = workflow("job", async (ctx, input: unknown) => {
    const slot = ctx.run.schedule?.slot.getTime() ?? -1;
    await ctx.step("note", () => void ran.push({ slot, input, begun: ctx.now() }));
  });
  const long = workflow("long", async (ctx) => ctx.waitFor("end"));
  return { ran, job, long, slots: () => ran.map(({ slot }) => slot) };
}

const only = async (pawl: Pawl) => {
  const [schedule, ...others] = await pawl.schedules();
  if (schedule === undefined || others.length > 0) throw new Error(`there are ${others.length + 1} schedules`);
  return schedule;
};

/** The runs that a schedule has started, oldest first. */
async function started(pawl: Pawl, name: string): Promise<{ id: string; state: string }[]> {
  const { runs } = await pawl.list({ tag: `schedule:${name}`, limit: 1000 });
  return runs.map(({ id, state }) => ({ id, state })).reverse();
}

const iso = (time: number) => new Date(time).toISOString();

describe.each(STORES)("schedules on %s", (store) => {
  it("C-26 I13 X-22 S2-12 start one run per slot, which knows its slot and can be found by it", async () => {
    const world = await openWorld(store);
    const { job, ran } = jobs();
    const pawl = await world.open([job]);
    const begin = world.clock.now();
    await pawl.schedule("tick", job, { every: "10 minutes", input: { n: 1 } });
    await world.advance(30 * MINUTE);
    const due = [1, 2, 3].map((n) => begin + n * 10 * MINUTE);
    expect(ran).toEqual(due.map((slot) => ({ slot, input: { n: 1 }, begun: slot })));
    expect(await started(pawl, "tick")).toEqual(due.map((slot) => ({ id: `tick@${iso(slot)}`, state: "succeeded" })));
    expect(await only(pawl)).toMatchObject({
      name: "tick",
      workflow: "job",
      version: "1.0.0",
      everyMs: 10 * MINUTE,
      next: new Date(begin + 40 * MINUTE),
      lastSlot: new Date(begin + 30 * MINUTE),
      lastRun: `tick@${iso(begin + 30 * MINUTE)}`,
      skipped: 0,
      lastSkipped: null,
      paused: false,
    });
  });

  it("C-26 its own run does not grow with its slots, and no list of runs shows it", async () => {
    const world = await openWorld(store);
    const { job, ran } = jobs();
    const pawl = await world.open([job]);
    await pawl.schedule("tick", job, { every: "1 minute" });
    await world.advance(12 * MINUTE);
    expect(ran.length).toBe(12);
    const { run } = await only(pawl);
    expect(await world.journal(run)).toEqual(["run.started"]);
    expect((await world.store.waits({ run })).length).toBe(2);
    const page = await pawl.list({ limit: 12 });
    expect([page.runs.length, page.cursor]).toEqual([12, null]);
    expect(page.runs.some(({ id }) => id === run)).toBe(false);
    expect((await pawl.list({ workflow: "pawl.schedule" })).runs.map(({ id }) => id)).toEqual([run]);
  });

  it("C-26 X-22 a cron expression is read in its zone, and the last slot of a long pause is found at once", async () => {
    const world = await openWorld(store);
    const { job, slots } = jobs();
    const pawl = await world.open([job]);
    const begin = world.clock.now();
    await pawl.schedule("noon", job, { cron: "0 12 * * *", zone: "Asia/Kathmandu" });
    await world.advance(2 * DAY);
    const offset = 5.75 * HOUR;
    const first = Math.ceil((begin + 1 + offset - 12 * HOUR) / DAY) * DAY + 12 * HOUR - offset;
    expect(slots()).toEqual([first, first + DAY]);
  });

  it.each([
    ["fireOnce", [3], 2],
    ["skip", [], 3],
    ["catchUp", [1, 2, 3], 0],
  ] as const)(
    "C-26 B46 after a downtime over three due times, misfire: %s runs those of %j",
    async (misfire, hours, skipped) => {
      const world = await openWorld(store);
      const { job, slots } = jobs();
      const first = await world.open([job]);
      const begin = world.clock.now();
      await first.schedule("hourly", job, { every: "1 hour", misfire });
      await world.settle();
      world.kill(first);
      await world.advance(3 * HOUR + 30 * MINUTE);
      const second = await world.restart([job]);
      await world.settle();
      expect(slots()).toEqual(hours.map((n) => begin + n * HOUR));
      expect(await only(second)).toMatchObject({ skipped, next: new Date(begin + 4 * HOUR) });
      const told = world.lines.filter(({ message }) => message.includes(`missed ${skipped} slots`));
      expect(told.length).toBe(skipped === 0 ? 0 : 1);
      await world.advance(30 * MINUTE);
      expect(slots()).toEqual([...hours, 4].map((n) => begin + n * HOUR));
    },
  );

  it("C-26 a slot that is found within a minute is on time, whatever the policy", async () => {
    const world = await openWorld(store);
    const { job, slots } = jobs();
    const first = await world.open([job]);
    const begin = world.clock.now();
    await first.schedule("hourly", job, { every: "1 hour", misfire: "skip" });
    await world.settle();
    world.kill(first);
    await world.advance(HOUR + MINUTE);
    await world.restart([job]);
    await world.settle();
    expect(slots()).toEqual([begin + HOUR]);
  });

  it("C-26 overlap: allow starts the next run beside the one that goes on", async () => {
    const world = await openWorld(store);
    const { long } = jobs();
    const pawl = await world.open([long]);
    await pawl.schedule("s", long, { every: "1 minute" });
    await world.advance(3 * MINUTE);
    expect((await started(pawl, "s")).map(({ state }) => state)).toEqual(["waiting", "waiting", "waiting"]);
  });

  it("C-26 overlap: skip leaves slots out while a run goes on, and says so", async () => {
    const world = await openWorld(store);
    const { long } = jobs();
    const pawl = await world.open([long]);
    const begin = world.clock.now();
    await pawl.schedule("s", long, { every: "1 minute", overlap: "skip" });
    await world.advance(3 * MINUTE);
    const [first, ...others] = await started(pawl, "s");
    expect(others).toEqual([]);
    expect(await only(pawl)).toMatchObject({
      skipped: 2,
      lastSkipped: { slot: new Date(begin + 3 * MINUTE), why: "overlap" },
    });
    expect(world.lines.filter(({ message }) => message.includes("skips its slot")).length).toBe(2);
    await pawl.signal(first?.id ?? "", "end");
    await world.advance(MINUTE);
    expect((await started(pawl, "s")).map(({ id, state }) => [id, state])).toEqual([
      [`s@${iso(begin + MINUTE)}`, "succeeded"],
      [`s@${iso(begin + 4 * MINUTE)}`, "waiting"],
    ]);
  });

  it("C-26 overlap: queue starts every slot in order, each when the run before has ended", async () => {
    const world = await openWorld(store);
    const { long } = jobs();
    const pawl = await world.open([long]);
    const begin = world.clock.now();
    const id = (n: number) => `s@${iso(begin + n * 5000)}`;
    await pawl.schedule("s", long, { every: "5 seconds", overlap: "queue" });
    await world.advance(15_500);
    expect((await only(pawl)).queued).toBe(2);
    expect((await started(pawl, "s")).map((run) => run.id)).toEqual([id(1)]);
    for (const n of [1, 2]) {
      await pawl.signal(id(n), "end");
      await world.advance(LIMITS.queueLookMs);
      expect((await started(pawl, "s")).map((run) => run.id)).toEqual([1, 2, 3].slice(0, n + 1).map(id));
    }
    expect(await only(pawl)).toMatchObject({ queued: 0, skipped: 0 });
  });

  it("C-26 overlap: cancel stops the run that goes on and starts the next one", async () => {
    const world = await openWorld(store);
    const { long } = jobs();
    const pawl = await world.open([long]);
    await pawl.schedule("s", long, { every: "1 minute", overlap: "cancel" });
    await world.advance(3 * MINUTE);
    expect((await started(pawl, "s")).map(({ state }) => state)).toEqual(["cancelled", "cancelled", "waiting"]);
  });

  it("C-26 the same definition again changes nothing, also on another engine", async () => {
    const world = await openWorld(store);
    const { job, slots } = jobs();
    const pawl = await world.open([job]);
    const begin = world.clock.now();
    const options = { every: "10 minutes", input: { at: new Date(0) }, overlap: "skip" } as const;
    await pawl.schedule("s", job, options);
    const { run } = await only(pawl);
    await world.advance(5 * MINUTE);
    await (await world.open()).schedule("s", job, { ...options, input: { at: new Date(0) } });
    expect(await world.store.inbox(run)).toEqual([]);
    await world.advance(5 * MINUTE);
    expect(slots()).toEqual([begin + 10 * MINUTE]);
    expect((await only(pawl)).run).toBe(run);
  });

  it("C-26 another definition replaces it from that moment on: no slot is lost, none comes twice", async () => {
    const world = await openWorld(store);
    const { job, ran } = jobs();
    const pawl = await world.open([job]);
    const begin = world.clock.now();
    await pawl.schedule("s", job, { every: "10 minutes", input: 1 });
    await world.advance(15 * MINUTE);
    await pawl.schedule("s", job, { every: "10 minutes", input: 2 });
    await world.advance(10 * MINUTE);
    await pawl.schedule("s", job, { every: "4 minutes", input: 3 });
    await world.advance(9 * MINUTE);
    const at = (minutes: number, input: number) => ({ slot: begin + minutes * MINUTE, input });
    expect(ran.map(({ slot, input }) => ({ slot, input }))).toEqual([at(10, 1), at(20, 2), at(29, 3), at(33, 3)]);
  });

  it("C-26 what was due before a change that nobody had read is settled by the old definition", async () => {
    const world = await openWorld(store);
    const { job, ran } = jobs();
    const first = await world.open([job]);
    const begin = world.clock.now();
    await first.schedule("s", job, { every: "1 hour", input: "old", misfire: "catchUp" });
    await world.settle();
    world.kill(first);
    const client = await world.open();
    await world.advance(2 * HOUR + 30 * MINUTE);
    await client.schedule("s", job, { every: "1 hour", anchor: new Date(begin), input: "new", misfire: "catchUp" });
    expect((await only(client)).input).toBe("new");
    await world.advance(2 * HOUR);
    await world.fence();
    await world.open([job]);
    await world.settle();
    expect(ran.map(({ slot, input }) => [(slot - begin) / HOUR, input]).sort()).toEqual([
      [1, "old"],
      [2, "old"],
      [3, "new"],
      [4, "new"],
    ]);
  });

  it("P18 C-26 a change that comes while a slot is being settled is not slept through", async () => {
    const world = await openWorld(store);
    const { job, slots } = jobs();
    const pawl = await world.open([job]);
    const client = await world.open();
    const begin = world.clock.now();
    await pawl.schedule("s", job, { every: "1 hour" });
    const { run } = await only(pawl);
    await world.settle();
    const { state } = world.store;
    let isChanged = false;
    world.store.state = async (id) => {
      if (id === run && !isChanged) {
        isChanged = true;
        await client.schedule("s", job, { every: "1 minute" });
      }
      return state.call(world.store, id);
    };
    await world.advance(HOUR + MINUTE);
    expect(isChanged).toBe(true);
    expect(slots()).toEqual([begin + HOUR, begin + HOUR + MINUTE]);
  });

  it("C-26 paused, its slots start nothing; resumed, it goes on with the next one", async () => {
    const world = await openWorld(store);
    const { job, slots } = jobs();
    const pawl = await world.open([job]);
    const begin = world.clock.now();
    await pawl.schedule("s", job, { every: "1 hour", misfire: "catchUp" });
    await world.advance(HOUR);
    expect(await pawl.pauseSchedule("s")).toBe(true);
    expect(await only(pawl)).toMatchObject({ paused: true, next: null });
    await world.advance(5 * HOUR + 30 * MINUTE);
    expect(await pawl.resumeSchedule("s")).toBe(true);
    await world.advance(30 * MINUTE);
    expect(slots()).toEqual([begin + HOUR, begin + 7 * HOUR]);
    expect([await pawl.pauseSchedule("none"), await pawl.resumeSchedule("none")]).toEqual([false, false]);
  });

  it("C-26 unscheduled, it starts nothing more; its name can be used again", async () => {
    const world = await openWorld(store);
    const { job, slots } = jobs();
    const pawl = await world.open([job]);
    const begin = world.clock.now();
    await pawl.schedule("s", job, { every: "1 hour" });
    await world.advance(HOUR);
    expect([await pawl.unschedule("s"), await pawl.unschedule("s"), await pawl.schedules()]).toEqual([true, false, []]);
    await world.advance(3 * HOUR + 30 * MINUTE);
    await pawl.schedule("s", job, { every: "1 hour" });
    await world.advance(HOUR);
    expect(slots()).toEqual([begin + HOUR, begin + 5 * HOUR + 30 * MINUTE]);
    // Also where nobody works, and the row of the old schedule is gone.
    const client = await world.restart([]);
    expect(await client.unschedule("s")).toBe(true);
    await world.store.purge({ succeededBefore: 0, failedBefore: world.clock.now() + 1, limit: 10 });
    await client.schedule("s", job, { every: "1 hour" });
    expect((await client.schedules()).length).toBe(1);
  });

  it("I13 each slot runs once with three engines, and the schedule survives the death of each", async () => {
    const world = await openWorld(store);
    const { job, slots } = jobs();
    let engines: readonly Pawl[] = await Promise.all([world.open([job]), world.open([job]), world.open([job])]);
    const begin = world.clock.now();
    // All at once, as at the start of three processes.
    await Promise.all(engines.map((pawl) => pawl.schedule("s", job, { every: "1 minute", misfire: "catchUp" })));
    for (let n = 0; n < 4; n++) {
      await world.advance(90_000);
      world.kill(engines[n % 3] as Pawl);
      await world.fence();
      engines = engines.with(n % 3, await world.open([job]));
    }
    await world.settle();
    expect(slots().sort()).toEqual([1, 2, 3, 4, 5, 6].map((n) => begin + n * MINUTE));
  });

  it.each(["before", "after"] as const)(
    "I13 B46 killed right %s the commit that starts a run, the slot still runs once",
    async (when) => {
      const world = await openWorld(store);
      const { job, slots } = jobs();
      const first = await world.open([job]);
      const begin = world.clock.now();
      await first.schedule("s", job, { every: "1 hour" });
      await world.settle();
      killAtStart(world, first, when);
      await world.advance(HOUR);
      expect(slots()).toEqual([]);
      const second = await world.restart([job]);
      await world.settle();
      expect(slots()).toEqual([begin + HOUR]);
      expect((await only(second)).next).toEqual(new Date(begin + 2 * HOUR));
    },
  );

  it("I13 a client may schedule while nobody works; whoever comes runs it, with the newest version there is", async () => {
    const world = await openWorld(store);
    const client = await world.open();
    const begin = world.clock.now();
    await client.schedule("s", "late", { cron: "0 * * * *", input: 7, tags: ["t"], priority: 3, deadline: "1 hour" });
    expect(await only(client)).toMatchObject({ version: null, cron: "0 * * * *", zone: "UTC", input: 7 });
    const ran: unknown[] = [];
    const late = workflow({ name: "late", version: "2.1.0" }, async (ctx, input: number) => {
      await ctx.step("note", () => void ran.push([input, ctx.run.version, ctx.run.tags.includes("t")]));
    });
    const pawl = await world.open([late]);
    await world.advance(HOUR);
    expect(ran).toEqual([[7, "2.1.0", true]]);
    const row = await world.store.run((await only(pawl)).lastRun ?? "");
    expect(row).toMatchObject({ priority: 3, deadline: (Math.floor(begin / HOUR) + 2) * HOUR });
  });

  it("I13 P34 a slot that comes while no worker has the workflow waits for one, whatever version that has", async () => {
    const world = await openWorld(store);
    const { job } = jobs();
    const pawl = await world.open([job]);
    const slot = new Date(world.clock.now() + HOUR);
    await pawl.schedule("s", "late", { every: "1 hour", misfire: "skip" });
    await world.advance(HOUR);
    expect(await started(pawl, "s")).toEqual([]);
    expect(world.lines.some(({ message }) => message.includes('No worker has a workflow "late"'))).toBe(true);
    const late = workflow({ name: "late", version: "2.1.0" }, async (ctx) => ctx.run.version);
    await world.open([late]);
    await world.advance(MINUTE);
    expect(await pawl.get(`s@${slot.toISOString()}`).result()).toBe("2.1.0");
  });

  it("I13 a worker that cannot read a schedule leaves it to those that can, and says so", async () => {
    const world = await openWorld(store);
    const { job, slots } = jobs();
    const first = await world.open([job]);
    const begin = world.clock.now();
    await first.schedule("s", job, { every: "1 hour" });
    const { run } = await only(first);
    await world.settle();
    world.kill(first);
    await world.fence();
    const { state } = world.store;
    world.store.state = async (id) => (id === run ? [] : state.call(world.store, id));
    await world.open([job]);
    await world.advance(HOUR);
    expect(slots()).toEqual([]);
    expect(world.lines.some(({ message }) => message.includes('Schedule "s" could not be settled'))).toBe(true);
    world.store.state = state;
    await world.advance(MINUTE);
    expect(slots()).toEqual([begin + HOUR]);
  });

  it("I10 I13 a change that nobody can read is left out after a while, and told of; until then it can be listed and removed", async () => {
    const world = await openWorld(store);
    const { job, slots } = jobs();
    const pawl = await world.open([job]);
    const begin = world.clock.now();
    const define = (name: string) => pawl.schedule(name, job, { every: "20 minutes", misfire: "catchUp" });
    await define("tick");
    await world.settle();
    const damage = (run: string) =>
      world.store.deliver({ to: run, id: "x", kind: "signal", name: "change", data: '{"kind":"pau' });
    await damage((await only(pawl)).run);
    expect((await only(pawl)).next).toEqual(new Date(begin + 20 * MINUTE));
    await world.advance(HOUR - MINUTE);
    expect(slots()).toEqual([]);
    await world.advance(2 * MINUTE);
    expect(slots()).toEqual([20, 40, 60].map((minutes) => begin + minutes * MINUTE));
    const told = world.lines.filter(({ message }) => message.startsWith('A change of schedule "tick" is left out'));
    expect(told).toMatchObject([
      { level: "error", message: expect.stringMatching(/Ask for it again\. In run .*inbox:x/) },
    ]);
    await pawl.pauseSchedule("tick");
    await world.advance(HOUR);
    expect([slots().length, await pawl.unschedule("tick")]).toEqual([3, true]);
    await define("tock");
    await damage((await only(pawl)).run);
    expect([await pawl.unschedule("tock"), await pawl.schedules()]).toEqual([true, []]);
  });

  it.each([
    ["cannot be read", '{"wor'],
    ["is of no use", "null"],
  ])(
    "I10 one whose definition %s is told of and keeps nobody from listing the others; it can be removed and made again",
    async (_, data) => {
      const world = await openWorld(store);
      const { job } = jobs();
      const pawl = await world.open([job]);
      const define = (name: string) => pawl.schedule(name, job, { every: "1 hour" });
      await define("damaged");
      const { run } = await only(pawl);
      await define("sound");
      await world.settle();
      const { state } = world.store;
      world.store.state = async (id) => {
        const rows = await state.call(world.store, id);
        return id === run ? rows.map((row) => (row.key === "definition" ? { ...row, data } : row)) : rows;
      };
      expect((await pawl.schedules()).map(({ name }) => name)).toEqual(["sound"]);
      expect(world.lines).toContainEqual(
        expect.objectContaining({ level: "warn", message: expect.stringMatching(/^Schedule "damaged" is damaged/) }),
      );
      expect(await pawl.unschedule("damaged")).toBe(true);
      await define("damaged");
      expect((await pawl.schedules()).map(({ name }) => name)).toEqual(["damaged", "sound"]);
    },
  );

  it("C-26 a retried run keeps the slot that it was started for", async () => {
    const world = await openWorld(store);
    const seen: unknown[] = [];
    const flaky = workflow("flaky", async (ctx) => {
      await ctx.step("once", () => {
        seen.push(ctx.run.schedule);
        if (seen.length === 1) throw new Error("not yet");
      });
    });
    const pawl = await world.open([flaky]);
    const slot = new Date(world.clock.now() + MINUTE);
    await pawl.schedule("s", flaky, { every: "1 minute" });
    await world.advance(MINUTE);
    await pawl.unschedule("s");
    await (await pawl.retry(`s@${slot.toISOString()}`)).result();
    expect(seen).toEqual([
      { name: "s", slot },
      { name: "s", slot },
    ]);
  });
});

it("X-22 nobody else makes a schedule's run, and what anybody sends to it does no harm", async () => {
  const world = await openWorld("memory");
  const { job, slots } = jobs();
  const pawl = await world.open([job]);
  const begin = world.clock.now();
  await pawl.schedule("s", job, { every: "1 hour" });
  const { run } = await only(pawl);
  const odd = [null, {}, { kind: "define", at: begin }, { kind: "end", at: begin }, "pause"];
  for (const [i, sent] of odd.entries())
    await world.store.deliver({ to: run, id: `m${i}`, kind: "signal", name: "change", data: JSON.stringify(sent) });
  expect((await only(pawl)).next).toEqual(new Date(begin + HOUR));
  await world.advance(HOUR);
  expect([slots(), await world.store.inbox(run)]).toEqual([[begin + HOUR], []]);
  const change = pawl.signal(run, "change", { kind: "pause", at: begin });
  expect((await errorOf(change)).message).toContain("A schedule is no workflow");
  await pawl.unschedule("s");
  for (const made of [
    pawl.retry(run),
    pawl.fork(run, { at: 1 }),
    pawl.start("pawl.schedule"),
    pawl.schedule("t", "pawl.schedule", { every: "1 hour" }),
  ])
    expect((await errorOf(made)).message).toContain("A schedule is no workflow");
  expect(await pawl.schedules()).toEqual([]);
});

it("X-22 refuses what cannot be a schedule, and names the field and the way out", async () => {
  const world = await openWorld("memory");
  const typed = workflow({ name: "typed", input: z.object({ n: z.number() }) }, async () => {});
  const pawl = await world.open([typed]);
  const refusal = async (options: object, name = "s") =>
    (await errorOf(pawl.schedule(name, typed, options as ScheduleOptions & { input: { n: number } }))).message;
  const good = { every: "1 minute", input: { n: 1 } };
  expect(await refusal({})).toContain("either `cron` or `every`");
  expect(await refusal({ ...good, cron: "* * * * *" })).toContain("either `cron` or `every`");
  expect(await refusal({ ...good, every: "999ms" })).toContain(
    "`every` of the schedule is 999ms. Give at least a second",
  );
  expect(await refusal({ ...good, every: "soon" })).toContain("every:");
  expect(await refusal({ cron: "nope", input: { n: 1 } })).toContain("five fields");
  expect(await refusal({ cron: "* * * * *", zone: "Berlin", input: { n: 1 } })).toContain("no time zone");
  expect(await refusal({ ...good, zone: "UTC" })).toContain("It belongs to `cron`");
  expect(await refusal({ ...good, anchor: new Date(Number.NaN) })).toContain("valid Date");
  expect(await refusal({ ...good, overlap: "replace" })).toContain("allow, skip, queue, cancel");
  expect(await refusal({ ...good, misfire: "all" })).toContain("fireOnce, skip, catchUp");
  expect(await refusal({ ...good, input: { n: "1" } })).toContain("input");
  expect(await refusal(good, "a/b")).toContain("schedule name");
  expect(await refusal(good, "x".repeat(250))).toContain("at most");
  expect(await pawl.schedules()).toEqual([]);
});

/** Kills the engine around the commit that starts the run of a slot. */
function killAtStart(world: World, pawl: Pawl, when: "before" | "after"): void {
  const { commit } = world.store as { commit: Store["commit"] };
  (world.store as { commit: Store["commit"] }).commit = async (batch: Commit) => {
    const isStart = batch.runs.some(({ children }) => children !== undefined);
    if (isStart) (world.store as { commit: Store["commit"] }).commit = commit;
    if (isStart && when === "before") {
      world.kill(pawl);
      return new Promise<never>(() => {});
    }
    const verdicts = await commit.call(world.store, batch);
    if (isStart) world.kill(pawl);
    return verdicts;
  };
}
