// One small business task, written in each style that the engine knows: reserve what is ordered, charge for it, wait until it is packed, send it.
import { z } from "zod";
import { agent } from "../src/agent/agent.ts";
import type { ModelRequest } from "../src/agent/model.ts";
import { planningSection } from "../src/agent/planning-section.ts";
import { progressSection } from "../src/agent/progress-section.ts";
import { prompt } from "../src/agent/prompt.ts";
import { question } from "../src/agent/question.ts";
import { callTools, type ScriptedReply, say, scriptedModel } from "../src/agent/scripted-model.ts";
import { section } from "../src/agent/section.ts";
import { tool } from "../src/agent/tool.ts";
import { RetryableError } from "../src/base/errors.ts";
import type { Workflow } from "../src/core/workflow.ts";
import { machine } from "../src/flows/machine.ts";
import { phases } from "../src/flows/phases.ts";
import { workflow } from "../src/index.ts";

export interface Order {
  readonly id: string;
  readonly cents: number;
}

export interface Shipped {
  readonly order: string;
  readonly payment: string;
  readonly parcel: string;
}

interface Info {
  readonly key: string;
  readonly attempt: number;
}

/** The outside world: it knows keys, and is busy when it is asked to charge for the first time. */
export class Shop {
  readonly done: string[] = [];
  readonly #answers = new Map<string, string>();

  reserve({ id }: Order, { key }: Info): string {
    return this.#act(key, `reserve ${id}`, `stock-${id}`);
  }

  charge({ id, cents }: Order, { key, attempt }: Info): string {
    if (attempt === 1) throw new RetryableError("the bank is busy");
    return this.#act(key, `charge ${cents} for ${id}`, `payment-${id}`);
  }

  send({ id }: Order, weight: number, { key }: Info): string {
    return this.#act(key, `send ${weight} g for ${id}`, `parcel-${id}`);
  }

  forget(): void {
    this.done.length = 0;
    this.#answers.clear();
  }

  #act(key: string, what: string, answer: string): string {
    if (!this.#answers.has(key)) this.done.push(what);
    this.#answers.set(key, answer);
    return answer;
  }
}

/** What the outside has seen of an order, and what comes of it. */
export const WHOLE = {
  effects: ({ id, cents }: Order) => [`reserve ${id}`, `charge ${cents} for ${id}`, `send 500 g for ${id}`],
  result: ({ id }: Order): Shipped => ({ order: id, payment: `payment-${id}`, parcel: `parcel-${id}` }),
};

export const PACKED = { signal: "packed", payload: { grams: 500 } };

type Style = (shop: Shop, outputs: string) => Workflow<Order, unknown>;

interface Outputs {
  readonly charge: string;
  readonly packed: { readonly grams: number };
  readonly send: string;
}

const resultOf = ({ input, outputs }: { input: Order; outputs: Outputs }): Shipped => ({
  order: input.id,
  payment: outputs.charge,
  parcel: outputs.send,
});

/** The state is a document: named phases, each with a status and what it gave in a file. */
const document: Style = (shop, outputs) => {
  // Files take their real time, whatever the clock of a test does meanwhile.
  const file = (output: string) => ({ output, timeout: "1 day" });
  return phases<Order, Outputs>({ name: "document-style", outputs, correlation: "id", result: resultOf }, [
    { name: "reserve", ...file("stock.json"), run: (work) => shop.reserve(work.input, work) },
    { name: "charge", ...file("payment.json"), run: (work) => shop.charge(work.input, work) },
    { name: "packed", waitFor: "packed" },
    { name: "send", ...file("parcel.json"), run: (work) => shop.send(work.input, work.outputs.packed.grams, work) },
  ]);
};

/** Steps that return transitions over a typed state. */
const stateMachine: Style = (shop) =>
  machine(
    { name: "machine-style", state: (order: Order) => ({ order, payment: "", packed: { grams: 0 }, parcel: "" }) },
    ({ step, effect }) => ({
      start: "reserve",
      steps: {
        reserve: effect({
          next: ["charge"],
          idempotent: true,
          do: ({ order }, info) => shop.reserve(order, info),
          decide: () => ({ transition: "continue", next: "charge" }),
        }),
        charge: effect({
          next: ["pack"],
          idempotent: true,
          do: ({ order }, info) => shop.charge(order, info),
          decide: (_state, payment) => ({ transition: "continue", next: "pack", patch: { payment } }),
        }),
        pack: step({
          next: ["send"],
          can: ["wait"],
          run: () => ({ transition: "wait", signal: "packed", into: "packed", next: "send" }),
        }),
        send: effect({
          next: ["done"],
          idempotent: true,
          do: ({ order, packed }, info) => shop.send(order, packed.grams, info),
          decide: (_state, parcel) => ({ transition: "continue", next: "done", patch: { parcel } }),
        }),
        done: step({
          can: ["complete"],
          run: ({ order, payment, parcel }) => ({
            transition: "complete",
            output: { order: order.id, payment, parcel },
          }),
        }),
      },
    }),
  );

/** Code with recorded steps, executed again from its start. */
const replay: Style = (shop) =>
  workflow("replay-style", async (ctx, order: Order) => {
    await ctx.step("reserve", (info) => shop.reserve(order, info));
    const payment = await ctx.step("charge", (info) => shop.charge(order, info));
    const { grams } = await ctx.waitFor<{ grams: number }>("packed");
    const parcel = await ctx.step("send", (info) => shop.send(order, grams, info));
    return { order: order.id, payment, parcel };
  });

/** Checkpoints around steps that have conditions, timeouts and retries of their own. */
const checkpointed: Style = (shop, outputs) =>
  phases<Order, Outputs>({ name: "checkpointed-style", outputs, result: resultOf }, [
    {
      name: "inquire",
      when: ({ input }) => input.cents > 100_000,
      approve: { approvers: ["ann"], action: { tool: "sell", arguments: null } },
    },
    {
      name: "reserve",
      kind: "database",
      satisfied: ({ input }) => shop.done.includes(`stocked ${input.id}`),
      effect: ({ input }) => ({ idempotent: true, do: (info) => shop.reserve(input, info) }),
    },
    {
      name: "charge",
      kind: "api",
      timeout: "30s",
      retry: { max: 5, base: "2s" },
      run: (work) => shop.charge(work.input, work),
    },
    { name: "packed", waitFor: { signal: "packed", timeout: "14 days" } },
    { name: "send", timeout: "1m", run: (work) => shop.send(work.input, work.outputs.packed.grams, work) },
  ]);

const PLAN = ["Reserve what is ordered", "Charge for it", "Wait until it is packed", "Send it"];

/** What the model does, by what was done before: it makes a plan, and works through it. */
function clerk({ id, cents }: Order, { prompt: messages }: ModelRequest): ScriptedReply {
  const said = JSON.stringify(messages);
  const [, grams = ""] = /"value":"{\\"grams\\":(\d+)}"/.exec(said) ?? [];
  const deeds = [
    { reserve: { id } },
    { charge: { id, cents } },
    { packed: {} },
    { send: { id, grams: Number(grams) } },
  ];
  const next = deeds.findIndex((deed) => !said.includes(`"toolName":"${Object.keys(deed)[0]}"`));
  if (next === 0)
    return callTools({ planning_setup_plan: { objective: `Ship ${id}`, steps: PLAN } }, { reserve: { id } });
  const mark = { id: next === -1 ? deeds.length : next, status: "done" };
  if (next !== -1) return callTools({ planning_update_step: mark }, deeds[next] as Record<string, unknown>);
  if (!said.includes(`"input":${JSON.stringify(mark)}`)) return callTools({ planning_update_step: mark });
  return say(JSON.stringify({ order: id, payment: `payment-${id}`, parcel: `parcel-${id}` }));
}

/** A model with a plan and tools; each of its calls is recorded. */
const ofAnAgent: Style = (shop) => {
  const order = z.object({ id: z.string(), cents: z.number() });
  const facts = { class: "write", idempotent: true, description: "A part of the work." } as const;
  const sections = [
    section<Order>({ title: "Task", key: "task", body: "Ship order $id for $cents cents." }),
    progressSection(),
    planningSection(),
  ];
  const output = z.object({ order: z.string(), payment: z.string(), parcel: z.string() });
  const shipping = prompt({ namespace: "shop", key: "ship", sections, output });
  const retry = { max: 5, base: "2s" };
  return agent<Order, Shipped>({
    name: "agent-style",
    model: scriptedModel((request) => clerk(orderIn(request), request)),
    prompt: (request) => shipping.bind(request),
    tools: [
      tool({
        ...facts,
        name: "reserve",
        input: order.pick({ id: true }),
        run: ({ id }, info) => shop.reserve({ id, cents: 0 }, info),
      }),
      tool({ ...facts, name: "charge", input: order, retry, run: (asked, info) => shop.charge(asked, info) }),
      question({ name: "packed", description: "Waits until it is packed.", input: z.object({}), signal: "packed" }),
      tool({
        ...facts,
        name: "send",
        input: z.object({ id: z.string(), grams: z.number() }),
        run: ({ id, grams }, info) => shop.send({ id, cents: 0 }, grams, info),
      }),
    ],
  });
};

function orderIn({ prompt: [system] }: ModelRequest): Order {
  const [, id = "", cents = ""] = /Ship order (\S+) for (\d+) cents/.exec(String(system?.content)) ?? [];
  return { id, cents: Number(cents) };
}

export const STYLES: Readonly<Record<string, Style>> = {
  document,
  agent: ofAnAgent,
  "state machine": stateMachine,
  replay,
  checkpointed,
};
