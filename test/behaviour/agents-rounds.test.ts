// Long conversations: every round costs its increment, in the journal and when it is replayed.
import { expect, it } from "vitest";
import { z } from "zod";
import { agent } from "../../src/agent/agent.ts";
import { prompt } from "../../src/agent/prompt.ts";
import { callTools, say, scriptedModel } from "../../src/agent/scripted-model.ts";
import { section } from "../../src/agent/section.ts";
import { tool } from "../../src/agent/tool.ts";
import { openWorld } from "./harness.ts";

const ROUNDS = 120;

it("X-20 S1-2 a journal grows with the rounds and not with their sum, and resuming asks for nothing again", async () => {
  const world = await openWorld("memory");
  const task = prompt({
    namespace: "test",
    key: "chat",
    sections: [section<object>({ title: "Task", key: "task", body: "Chat." })],
  });
  const look = tool({
    name: "look",
    description: "Looks.",
    class: "read",
    input: z.object({ n: z.number() }),
    run: ({ n }) => `entry ${String(n).padStart(4, "0")} ${"says something. ".repeat(20)}`,
  });
  const finish = tool({
    name: "finish",
    description: "Ends.",
    class: "read",
    approval: { approvers: ["ann"] },
    input: z.object({}),
    run: () => "over",
  });
  const model = scriptedModel((_, round) => {
    if (round > ROUNDS) return say("That was all.");
    return round < ROUNDS ? callTools({ look: { n: 1000 + round } }) : callTools({ finish: {} });
  });
  const chatter = agent({
    name: "chatter",
    model,
    tools: [look, finish],
    maxRounds: ROUNDS + 5,
    prompt: (_: string) => task.bind({}),
  });
  const first = await world.open([chatter]);
  await first.start(chatter, "go", { id: "r" });
  await world.settle();
  expect(model.requests.length).toBe(ROUNDS);
  const sizes: number[] = [];
  for (const { type, key, data } of await world.store.journal("r")) {
    if (type === "step.started" && /^model(#\d+)?$/.test(key ?? "")) sizes.push(0);
    if (sizes.length > 0) sizes[sizes.length - 1] = sizes.at(-1)! + (data?.length ?? 0);
  }
  const sum = (from: number, to: number) => sizes.slice(from, to).reduce((all, one) => all + one, 0);
  expect(sizes.length).toBe(ROUNDS);
  expect(sum(ROUNDS - 40, ROUNDS - 1) / sum(20, 59)).toBeLessThan(1.02);

  const second = await world.restart([chatter]);
  await world.settle();
  const [open] = (await second.approvals.list({ run: "r" })).approvals;
  await second.approvals.decide(open?.id ?? "", { decision: "approved", by: "ann" });
  expect(await second.get("r").result()).toBe("That was all.");
  expect(model.requests.length).toBe(ROUNDS + 1);
});
