// Compiled by `npm run types`, never run: state, patches, names of steps and results of machines infer without an annotation and without `any`.
import { machine, type Pawl, type Run } from "pawl";
import { z } from "zod";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function expectType<_T extends true>(): void {}

interface RefundState {
  readonly order: string;
  readonly cents: number;
  readonly draft: string | null;
  readonly log: readonly string[];
}

const initial = (order: { id: string; cents: number }): RefundState => ({
  order: order.id,
  cents: order.cents,
  draft: null,
  log: [],
});

const refund = machine(
  { name: "refund", state: initial, merge: { log: "append", cents: "max", draft: (_old, draft) => draft } },
  ({ step, effect, approval, agent, evaluator, parallel }) => ({
    start: "draft",
    steps: {
      draft: effect({
        next: ["judge"],
        do: (state, { key }) => {
          expectType<Equal<typeof state, RefundState>>();
          return { id: `${state.order} ${key}` };
        },
        undo: (drafted) => {
          expectType<Equal<typeof drafted, { id: string } | undefined>>();
        },
        decide: (_state, drafted) => {
          expectType<Equal<typeof drafted, { id: string }>>();
          return { transition: "continue", next: "judge", patch: { draft: drafted.id } };
        },
      }),
      judge: agent({
        next: ["both", "ask"],
        run: async (state) =>
          state.cents > 0
            ? { outcome: "result", value: { risk: 1 }, next: "ask" }
            : { outcome: "refusal", reason: "nothing to pay" },
        decide: (_state, value, proposal) => {
          expectType<Equal<typeof value, { risk: number }>>();
          expectType<Equal<typeof proposal, "both" | "ask" | null>>();
          return { transition: "continue", next: proposal ?? "both" };
        },
      }),
      both: parallel({ branches: ["a", "b"], next: "ask" }),
      a: step({ next: ["ask"], run: () => ({ transition: "continue", next: "ask", patch: { log: ["a"] } }) }),
      b: evaluator({
        next: ["ask"],
        can: ["retry"],
        run: async ({ cents }) =>
          cents > 5
            ? { transition: "retry", reason: "busy", delay: 1000 }
            : { transition: "continue", next: "ask", patch: { log: ["b"] } },
      }),
      ask: approval({
        action: ({ order }) => ({ tool: "refunds.issue", arguments: { order } }),
        approvers: ["ann"],
        approved: "issue",
        denied: "reject",
        patch: (_state, { by }) => ({ log: [`asked ${by}`] }),
      }),
      issue: step({
        can: ["complete", "compensate"],
        run: ({ draft }) =>
          draft === null
            ? { transition: "compensate", reason: "no draft", action: "draft" }
            : { transition: "complete", output: { issued: draft } },
      }),
      reject: step({ can: ["complete"], run: () => ({ transition: "complete", output: "rejected" as const }) }),
    },
  }),
);

/** An agent has no way to change the order, to complete or to approve. */
export const bounded = machine({ name: "bounded", state: (n: number) => ({ n }) }, ({ agent, step }) => ({
  start: "think",
  steps: {
    think: agent({
      next: ["end"],
      // @ts-expect-error an agent gives an outcome and no transition
      run: () => ({ transition: "complete", output: 1 }),
      decide: () => ({ transition: "continue", next: "end" }),
    }),
    end: step({ can: ["complete"], run: () => ({ transition: "complete", output: 1 }) }),
  },
}));

export const refused = machine(
  { name: "refused", state: (n: number) => ({ n, text: "" }) },
  ({ step, agent, effect }) => ({
    start: "one",
    steps: {
      one: step({
        next: ["two"],
        // @ts-expect-error a bare value is no transition
        run: () => "two",
      }),
      two: step({
        next: ["one"],
        // @ts-expect-error a step goes on only to the steps that it names
        run: () => ({ transition: "continue", next: "elsewhere" }),
      }),
      three: step({
        next: ["two"],
        // @ts-expect-error a patch has the types of the state
        run: () => ({ transition: "continue", next: "two", patch: { n: "1" } }),
      }),
      four: step({
        next: ["two"],
        // @ts-expect-error a step does only what it says it can
        run: () => ({ transition: "complete", output: 1 }),
      }),
      five: agent({
        next: ["two"],
        // @ts-expect-error an agent proposes only next steps
        run: () => ({ outcome: "result", value: 1, next: "one" }),
        decide: () => ({ transition: "continue", next: "two" }),
      }),
      six: effect({
        next: ["two"],
        do: () => 1,
        // @ts-expect-error what was done cannot be retried by a transition
        decide: () => ({ transition: "retry", reason: "again" }),
      }),
    },
  }),
);

export const astray = machine({ name: "astray", state: (n: number) => ({ n }) }, ({ step }) => ({
  start: "one",
  // @ts-expect-error all next steps are steps of the machine
  steps: { one: step({ next: ["nowhere"], run: () => ({ transition: "continue", next: "nowhere" }) }) },
}));

export const parsed = machine(
  {
    name: "parsed",
    input: z.object({ count: z.string().transform(Number) }),
    state: (input) => ({ count: input.count }),
  },
  ({ step }) => ({
    start: "one",
    steps: { one: step({ can: ["complete"], run: ({ count }) => ({ transition: "complete", output: count }) }) },
  }),
);

export async function client(pawl: Pawl): Promise<void> {
  const run = await pawl.start(refund, { id: "o", cents: 1 });
  expectType<Equal<typeof run, Run<{ issued: string } | "rejected">>>();
  const count = await pawl.run(parsed, { count: "3" });
  expectType<Equal<typeof count, number>>();
  // @ts-expect-error the input is that of the first state
  await pawl.start(refund, { id: "o" });
}
