// The states of a durable workflow (SPEC S2-19 to S2-36), in runs that take every transition of the table. A run's journal is read in the words of
// that table; its process is killed right after each transition, so that nothing but what is durable carries the run on.
import { describe, expect, it, vi } from "vitest";
import { jsonCodec } from "../../src/base/envelope.ts";
import { RetryableError } from "../../src/base/errors.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import type { Run } from "../../src/client/run.ts";
import type { Context } from "../../src/core/context.ts";
import type { Entry, StepFailed } from "../../src/core/journal.ts";
import { isTerminal, type RunState } from "../../src/core/transition.ts";
import { openEntry } from "../../src/core/values.ts";
import { workflow } from "../../src/core/workflow.ts";
import { HOUR, openWorld, STORES, type StoreKind, type World } from "./harness.ts";
import { Kills } from "./kills.ts";

type Word =
  | "Accepted"
  | "Running"
  | "Checkpointed"
  | "WaitingApproval"
  | "Retrying"
  | "Compensating"
  | "Succeeded"
  | "Failed"
  | "Cancelled";

/** The engine's state of a run that rests in each of them. Between two steps nothing rests: the outcome and what follows it are one commit. */
const STATE: Readonly<Record<Exclude<Word, "Checkpointed">, RunState>> = {
  Accepted: "accepted",
  Running: "running",
  WaitingApproval: "waiting",
  Retrying: "retrying",
  Compensating: "compensating",
  Succeeded: "succeeded",
  Failed: "failed",
  Cancelled: "cancelled",
};

/** The table, and after "C-15" what that row adds to it. */
const TRANSITIONS = `
S2-20 Accepted > Running
S2-21 Running > Checkpointed
S2-22 Checkpointed > Running
S2-23 Checkpointed > WaitingApproval
S2-24 Checkpointed > Retrying
S2-25 Checkpointed > Compensating
S2-26 Checkpointed > Succeeded
S2-27 Checkpointed > Failed
S2-28 WaitingApproval > Running
S2-29 WaitingApproval > Compensating
S2-30 WaitingApproval > Cancelled
S2-31 Retrying > Running
S2-31 Retrying > Failed
S2-32 Compensating > Failed
S2-33 Running > Cancelled
C-15 Running > Compensating
C-15 Compensating > Cancelled
`
  .trim()
  .split("\n")
  .map((line) => line.slice(line.indexOf(" ") + 1));

/** A journal in the words of the table. */
function wordsOf(entries: readonly Entry[]): Word[] {
  const words: Word[] = [];
  for (const entry of entries) for (const word of wordsFor(entry)) if (words.at(-1) !== word) words.push(word);
  return words;
}

function wordsFor({ type, key, payload }: Entry): readonly Word[] {
  // What undoes has steps of its own, and is one state.
  if (key?.endsWith("/undo") === true) return [];
  if (type === "step.failed")
    return isRetryable(payload as StepFailed) ? ["Checkpointed", "Retrying"] : ["Checkpointed"];
  const word = WORDS[type];
  return word === undefined ? [] : [word];
}

/** A failure that calls for another attempt, whether or not there is one left. */
function isRetryable({ retryAt, error }: StepFailed): boolean {
  return retryAt !== null || (error as { code?: unknown }).code === "max_retries_exceeded";
}

const WORDS: Readonly<Record<string, Word>> = {
  "run.started": "Accepted",
  "step.started": "Running",
  "effect.planned": "Running",
  "step.completed": "Checkpointed",
  "effect.executed": "Checkpointed",
  "approval.requested": "WaitingApproval",
  "run.compensating": "Compensating",
  "run.succeeded": "Succeeded",
  "run.failed": "Failed",
  "run.cancelled": "Cancelled",
};

const never = () => new Promise<never>(() => {});

interface Play {
  readonly ids: string;
  readonly what: string;
  readonly path: string;
  readonly effects: readonly string[];
  readonly stopReason: string;
  body(ctx: Context, outside: Outside): Promise<unknown>;
  /** What comes from outside while the run rests in a state; by default time passes. */
  meanwhile?(run: Run, pawl: Pawl): Promise<unknown>;
}

/** What was done, by its key: an outside that knows keys. */
class Outside {
  readonly done: string[] = [];
  failures = 0;
  /** The states of the run while something was being undone. */
  readonly whileUndoing = new Set<RunState>();
  look: () => Promise<RunState> = never;

  do(what: string): void {
    if (!this.done.includes(what)) this.done.push(what);
  }

  effect(ctx: Context, name: string): Promise<unknown> {
    return ctx.effect(name, {
      idempotent: true,
      do: () => this.do(`do ${name}`),
      // The first try fails, so that the run rests while it undoes.
      undo: async (_value, { attempt }) => {
        this.whileUndoing.add(await this.look());
        if (attempt === 1) throw new RetryableError("later");
        this.do(`undo ${name}`);
      },
    });
  }
}

const ask = (ctx: Context) =>
  ctx.approve("go", { action: { tool: "t", arguments: 1 }, approvers: ["ann"], timeout: "30m" });
const decide = (decision: "approved" | "denied") => async (run: Run, pawl: Pawl) => {
  const [open] = (await pawl.approvals.list({ run: run.id })).approvals;
  if (open !== undefined) await pawl.approvals.decide(open.id, { decision, by: "ann" });
};
/** Attempts are counted outside: a crash between the mark and the function adds to those of the engine. */
const failing = (times: number) => (ctx: Context, outside: Outside) =>
  ctx.step("shaky", () => (outside.failures++ < times ? Promise.reject(new RetryableError("busy")) : "done"), {
    retry: { max: 3, base: "10m", cap: "10m", jitter: false },
  });

const PLAYS: readonly Play[] = [
  {
    ids: "S2-16 S2-20 S2-21 S2-22 S2-26",
    what: "two steps",
    path: "Accepted Running Checkpointed Running Checkpointed Succeeded",
    effects: ["a", "b"],
    stopReason: "completed",
    body: async (ctx, outside) => {
      for (const name of ["a", "b"]) await ctx.step(name, () => outside.do(name));
    },
  },
  {
    ids: "S2-16 S2-23 S2-28",
    what: "an approval that is given",
    path: "Accepted Running Checkpointed WaitingApproval Running Checkpointed Succeeded",
    effects: ["do draft", "issued"],
    stopReason: "completed",
    body: async (ctx, outside) => {
      await outside.effect(ctx, "draft");
      await ask(ctx);
      await ctx.step("issue", () => outside.do("issued"));
    },
    meanwhile: decide("approved"),
  },
  ...(["denied", "expired"] as const).map(
    (decision): Play => ({
      ids: "S2-29 S2-32",
      what: `an approval that is ${decision}`,
      path: "Accepted Running Checkpointed WaitingApproval Compensating Failed",
      effects: ["do draft", "undo draft"],
      stopReason: `approval_${decision}`,
      body: async (ctx, outside) => {
        await outside.effect(ctx, "draft");
        await ask(ctx);
      },
      ...(decision === "denied" ? { meanwhile: decide("denied") } : {}),
    }),
  ),
  {
    ids: "S2-30",
    what: "a cancel while it waits",
    path: "Accepted Running Checkpointed WaitingApproval Cancelled",
    effects: ["do draft"],
    stopReason: "cancelled",
    body: async (ctx, outside) => {
      await outside.effect(ctx, "draft");
      await ask(ctx);
    },
    meanwhile: (run) => run.cancel(),
  },
  {
    ids: "S2-16 S2-24 S2-31",
    what: "a step that fails twice of three times",
    path: "Accepted Running Checkpointed Retrying Running Checkpointed Retrying Running Checkpointed Succeeded",
    effects: [],
    stopReason: "completed",
    body: failing(2),
  },
  {
    ids: "S2-24 S2-31",
    what: "a step that fails more often than it may",
    path: `Accepted ${"Running Checkpointed Retrying ".repeat(4)}Failed`,
    effects: [],
    stopReason: "max_retries_exceeded",
    body: failing(4),
  },
  {
    ids: "S2-16 S2-25 S2-32",
    what: "a fatal second step after an effect",
    path: "Accepted Running Checkpointed Running Checkpointed Compensating Failed",
    effects: ["do draft", "undo draft"],
    stopReason: "error",
    body: async (ctx, outside) => {
      await outside.effect(ctx, "draft");
      await ctx.step("fatal", () => Promise.reject(new Error("no")));
    },
  },
  {
    ids: "S2-27",
    what: "a fatal step after nothing",
    path: "Accepted Running Checkpointed Failed",
    effects: [],
    stopReason: "error",
    body: (ctx) => ctx.step("fatal", () => Promise.reject(new Error("no"))),
  },
  {
    ids: "S2-16 S2-33",
    what: "a cancel during a slow step",
    path: "Accepted Running Cancelled",
    effects: [],
    stopReason: "cancelled",
    body: (ctx) => ctx.step("slow", never),
    meanwhile: (run) => run.cancel(),
  },
  {
    ids: "C-15",
    what: "a cancel with compensate during a slow step",
    path: "Accepted Running Checkpointed Running Compensating Cancelled",
    effects: ["do draft", "undo draft"],
    stopReason: "cancelled",
    body: async (ctx, outside) => {
      await outside.effect(ctx, "draft");
      await ctx.step("slow", never);
    },
    meanwhile: (run) => run.cancel({ compensate: true }),
  },
];

/** Plays to the end, with a kill right after every transition; gives the path, and the states in which the run rested on it. */
async function perform(kind: StoreKind, { body, meanwhile }: Play, outside: Outside) {
  const world = await openWorld(kind);
  const flow = workflow("flow", (ctx) => body(ctx, outside));
  outside.look = async () => (await world.store.run("r"))?.state as RunState;
  const rested: [Word, RunState][] = [];
  let path = "";
  const kills = new Kills(world, async () => {
    const before = path;
    path = wordsOf(await decoded(world)).join(" ");
    return path !== before;
  });
  // Its starter does no work: the run is accepted, and nobody has it yet.
  const client = await world.open();
  void client.start("flow", undefined, { id: "r", version: "1.0.0" });
  await world.settle();
  expect((await world.store.run("r"))?.state).toBe(STATE.Accepted);
  for (;;) {
    const pawl = await kills.goOn([flow]);
    const words = wordsOf(await decoded(world));
    const { state } = await pawl.get("r").status();
    rested.push([words.at(-1) as Word, state]);
    if (isTerminal(state)) return { pawl, words, rested, kills: kills.count };
    // A process that dies meanwhile answers nobody.
    if (meanwhile !== undefined && words.at(-1) !== "Compensating") void meanwhile(pawl.get("r"), pawl);
    else await world.advance(HOUR);
  }
}

async function decoded(world: World): Promise<Entry[]> {
  return (await world.store.journal("r")).map((entry) => openEntry(jsonCodec, "r", entry));
}

const transitionsOf = (words: readonly string[]) => words.slice(1).map((to, i) => `${words[i]} > ${to}`);

describe.each(STORES)("the states of a run on %s", (store) => {
  it.each(PLAYS.map((play) => [`${play.ids} S2-18 S2-35 S2-36 ${play.what}: ${play.path}`, play] as const))(
    "%s, with a kill after each",
    async (_, play) => {
      const outside = new Outside();
      const { pawl, words, rested, kills } = await perform(store, play, outside);
      expect(words).toEqual(play.path.split(" "));
      // What shares a commit cannot be told apart by a crash.
      expect(kills).toBeGreaterThan(words.filter((word) => word !== "Checkpointed").length / 2);
      for (const [word, state] of rested) expect(state).toBe(STATE[word as keyof typeof STATE]);
      expect(outside.done).toEqual(play.effects);
      expect([...outside.whileUndoing]).toEqual(words.includes("Compensating") ? ["compensating"] : []);
      const { stopReason, error, owner, waits, version } = await pawl.get("r").status();
      expect({ stopReason, owner, waits, version }).toEqual({
        stopReason: play.stopReason,
        owner: null,
        waits: [],
        version: "1.0.0",
      });
      expect(error === undefined).toBe(words.at(-1) === "Succeeded");
      const ledger = (await pawl.get("r").effects()).map(({ status }) => status);
      const isUndone = play.effects.includes("undo draft");
      expect(ledger).toEqual(play.effects.includes("do draft") ? [isUndone ? "compensated" : "executed"] : []);
    },
  );
});

describe.each(STORES)("checkpoints on %s", (store) => {
  it("S2-15 S2-21 what follows from a step is one commit: its result or error, state, cost, notes and the approval that is asked for", async () => {
    const world = await openWorld(store);
    const flow = workflow("flow", async (ctx) => {
      await ctx.step("model", () => "draft", { kind: "model" });
      ctx.set("draft", "draft");
      ctx.cost({ usd: 1 });
      await ctx.step("tool", () => Promise.reject(new Error("no"))).catch(() => ctx.note("the tool is broken"));
      await ask(ctx);
    });
    const commits: string[][] = [];
    const commit = world.store.commit.bind(world.store);
    vi.spyOn(world.store, "commit").mockImplementation(async (batch) => {
      commits.push(batch.runs.flatMap(({ entries }) => entries.map(({ type }) => type)));
      return commit(batch);
    });
    const pawl = await world.open([flow]);
    await pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    expect(commits.filter((types) => types.length > 0).slice(-2)).toEqual([
      ["step.completed", "state.patched", "cost", "step.started"],
      ["step.failed", "note", "approval.requested"],
    ]);
    // A process that knows nothing but the store finds all of it.
    const second = await world.restart([flow]);
    expect(await second.get("r").status()).toMatchObject({
      data: { draft: "draft" },
      cost: { usd: 1 },
      waits: [{ kind: "approval" }],
    });
    expect((await second.get("r").journal()).map(({ payload }) => payload)).toMatchObject([
      {},
      {},
      "draft",
      {},
      {},
      {},
      { error: { message: "no" } },
      {},
      { name: "go", approvers: ["ann"] },
    ]);
  });

  it("S2-17 goes on from the last checkpoint after a kill, and after a deployment of other code of the same version", async () => {
    const world = await openWorld(store);
    const done: string[] = [];
    const deployed = (then: string) =>
      workflow("flow", async (ctx) => {
        await ctx.step("first", () => done.push("first"));
        await ctx.waitFor("go");
        await ctx.step(then, () => done.push(then));
        return then;
      });
    const first = await world.open([deployed("old")]);
    for (const id of ["killed", "deployed"]) await first.start(deployed("old"), undefined, { id });
    await world.settle();
    const second = await world.restart([deployed("old")]);
    await second.signal("killed", "go");
    expect(await second.get("killed").result()).toBe("old");
    await second.close();
    const third = await world.open([deployed("new")]);
    await third.signal("deployed", "go");
    expect(await third.get("deployed").result()).toBe("new");
    expect(done).toEqual(["first", "first", "old", "new"]);
  });
});

it("S2-19 S2-34 the runs above take every transition of the table, and no other", () => {
  const taken = new Set(PLAYS.flatMap(({ path }) => transitionsOf(path.split(" "))));
  expect([...taken].sort()).toEqual([...TRANSITIONS].sort());
});
