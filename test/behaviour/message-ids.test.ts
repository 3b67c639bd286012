// Messages of all kinds share the ids of their run's inbox, and a second message of one id is not delivered: nobody's signal may have the id of one
// that the engine sends itself.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { Pawl } from "../../src/client/pawl.ts";
import type { Message, Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { phases } from "../../src/flows/phases.ts";
import { errorOf, openWorld, STORES, type StoreKind, type World } from "./harness.ts";

/** Every message that reaches the store, sent or part of a commit. */
function collectMessages(store: Store): Message[] {
  const messages: Message[] = [];
  const { deliver, commit } = store;
  Object.assign(store, {
    deliver: (message: Message) => {
      messages.push(message);
      return deliver.call(store, message);
    },
    commit: (given: Parameters<Store["commit"]>[0]) => {
      messages.push(...given.runs.flatMap((part) => part.messages ?? []));
      return commit.call(store, given);
    },
  });
  return messages;
}

/** A run for each kind of message that the engine sends, each brought to where it waits for it. */
function scenes(tokens: string[]) {
  const outputs = mkdtempSync(join(tmpdir(), "pawl-ids-"));
  onTestFinished(() => rmSync(outputs, { recursive: true, force: true }));
  const action = { tool: "bank.pay", version: "1", arguments: {} };
  const child = workflow("child", async () => 1);
  const flaky = { isBroken: true };
  return {
    flaky,
    asking: workflow("asking", (ctx) => ctx.approve("pay", { action, approvers: ["ann"], timeout: "1 h" })),
    voting: workflow("voting", (ctx) =>
      ctx.approve("pay", { action, approvers: ["ann", "bob"], quorum: 2, timeout: "1 h" }),
    ),
    calling: workflow("calling", (ctx) => ctx.call(child, undefined)),
    child,
    answered: workflow("answered", async (ctx) => {
      const reply = ctx.callback("payment", { timeout: "1 h" });
      await ctx.step("tell", () => tokens.push(reply.token));
      return reply.value();
    }),
    hanging: workflow("hanging", (ctx) =>
      ctx.step("hang", ({ attempt }) => (attempt === 1 ? new Promise<number>(() => {}) : attempt), { recovery: "ask" }),
    ),
    report: phases({ name: "report", retry: false, outputs }, [
      { name: "survey", steps: [{ name: "count", manual: { instructions: "Count the rooms." } }] },
      {
        name: "write",
        run: () => {
          if (flaky.isBroken) throw new Error("no paper");
        },
      },
    ]),
  };
}

async function play(world: World): Promise<Pawl> {
  const tokens: string[] = [];
  const { flaky, ...flows } = scenes(tokens);
  const all = Object.values(flows);
  const first = await world.open(all, { secret: "a secret that has enough characters" });
  for (const name of ["asking", "voting", "calling", "answered", "hanging"])
    await first.start(name, undefined, { id: name });
  await first.start("report", null, { id: "report", advance: true });
  await world.settle();
  const pawl = await world.restart(all, { secret: "a secret that has enough characters" });
  await world.settle();
  for (const { id, run } of (await pawl.approvals.list()).approvals)
    for (const by of run === "voting" ? ["ann", "bob"] : ["ann"])
      await pawl.approvals.decide(id, { by, decision: "approved" });
  await pawl.callbacks.answer(tokens[0] ?? "", 1);
  await pawl.resolve("hanging", { choice: "rerun" });
  const surveyed = pawl.advance("report");
  await world.settle();
  await pawl.report("report", "count", { by: "ann", action: "begin" });
  await world.settle();
  await pawl.report("report", "count", { by: "ann", action: "done" });
  await surveyed;
  await errorOf(pawl.advance("report"));
  flaky.isBroken = false;
  await pawl.resolve("report", "retry");
  await world.settle();
  return pawl;
}

/** The word that an id begins with. */
const kindOf = ({ kind, id }: Message) => `${kind} ${/^[a-z]+/.exec(id)?.[0]}`;

it.each<StoreKind>(STORES)(
  "Q5 I15 P5 no signal can have the id of a message that the engine sends, of whatever kind, on %s",
  async (kind) => {
    const world = await openWorld(kind);
    const sent = collectMessages(world.store);
    const pawl = await play(world);
    expect([...new Set(sent.map(kindOf))].toSorted()).toEqual([
      "approval approval",
      "callback callback",
      "child child",
      "decision decision",
      "signal advance",
      "signal block",
      "signal manual",
    ]);
    await pawl.start("asking", undefined, { id: "another" });
    await world.settle();
    for (const { id } of sent) {
      const refused = { code: "invalid_name", fields: { value: id } };
      expect(await errorOf(pawl.signal("another", "noise", null, { id }))).toMatchObject(refused);
      expect(await errorOf(pawl.get("another").signal("noise", null, { id }))).toMatchObject(refused);
    }
    for (const id of ["approval-7", "block 4", "manual", "advance-notice", "decision-x", "child-7"])
      await pawl.signal("another", "noise", null, { id });
    expect((await world.store.inbox("another")).map(({ id }) => id)).toHaveLength(6);
    await pawl.cancel("another");
  },
);
