// The workflows of the examples that `pawl dev` puts into an empty store: one for each thing that the dashboard can show. Nothing outside is touched:
// what stands for the world is a wait.
import { setTimeout as wait } from "node:timers/promises";
import { RetryableError, TerminalError } from "../base/errors.ts";
import { type Workflow, workflow } from "../core/workflow.ts";
import { machine } from "../flows/machine.ts";

interface Order {
  readonly order: string;
  readonly cents: number;
}

export const order: Workflow<Order, object> = workflow("example-order", async (ctx, { order, cents }: Order) => {
  await ctx.step("reserve", () => wait(120, { reserved: order }));
  const { payment } = await ctx.effect("charge", {
    class: "execute",
    idempotent: true,
    do: () => wait(260, { payment: `payment-${order}` }),
    undo: () => wait(50),
  });
  ctx.note(`${cents / 100} EUR were charged`);
  ctx.cost({ usd: 0.012, tokens: 640 });
  await ctx.sleep("400ms");
  const parcel = await ctx.step("ship", () => wait(180, { parcel: `parcel-${order}`, carrier: "post" }));
  return { ...parcel, payment };
});

/** Whose label could not be printed: it can be when somebody tries again. */
const jammed = new Set<string>();

export const label: Workflow<Order, object> = workflow("example-label", async (ctx, { order }: Order) => {
  const address = await ctx.step("find-address", () => wait(90, { street: "Mill Lane 4", city: "Ghent" }));
  await ctx.step("choose-carrier", () => wait(60, "post"));
  return await ctx.step("print-label", async () => {
    await wait(150);
    if (jammed.has(order)) return { label: `label-${order}`, to: address.city };
    jammed.add(order);
    throw new TerminalError(`The label printer is jammed: label of order ${order} was not printed`);
  });
});

interface Refund {
  readonly order: string;
  readonly cents: number;
  readonly findings: readonly string[];
}

/** Who may decide in the example: whoever has opened the dashboard of `pawl dev`. */
export const DEVELOPER = "developer";

export const refund: Workflow<Order, unknown> = machine(
  {
    name: "example-refund",
    state: ({ order, cents }: Order): Refund => ({ order, cents, findings: [] }),
    merge: { findings: "append" },
  },
  ({ step, effect, evaluator, approval }) => ({
    start: "draft",
    steps: {
      draft: effect({
        next: ["review"],
        class: "draft",
        idempotent: true,
        do: ({ order }) => wait(140, `draft-${order}`),
        undo: () => wait(30),
        decide: (_state, draft) => ({ transition: "continue", next: "review", patch: { findings: [String(draft)] } }),
      }),
      review: evaluator({
        next: ["ask"],
        can: ["wait_for_approval", "cancel"],
        run: ({ cents }) =>
          cents === 0
            ? { transition: "cancel", reason: "nothing to refund" }
            : {
                transition: "wait_for_approval",
                approval: "ask",
                patch: { findings: ["the parcel came back damaged"] },
              },
      }),
      ask: approval({
        action: ({ order, cents }) => ({
          tool: "refunds.issue",
          version: "2",
          arguments: { order, cents, currency: "EUR", to: "the card that was charged" },
          resources: [`order:${order}`, "account:payments"],
        }),
        approvers: [DEVELOPER, "role:support-lead"],
        evidence: ({ findings }) => ({ findings, photos: 3, customerSince: "2021-04-02" }),
        risk: "medium",
        timeout: "2 days",
        approved: "issue",
        changes: "draft",
      }),
      issue: effect({
        next: ["tell"],
        needs: "ask",
        idempotent: true,
        do: ({ order }) => wait(200, `refund-${order}`),
        decide: () => ({ transition: "continue", next: "tell" }),
      }),
      tell: step({
        can: ["complete"],
        run: ({ order, findings }) => ({ transition: "complete", output: { order, findings } }),
      }),
    },
  }),
) as Workflow<Order, unknown>;

const PAGES = ["tides.txt", "storms.txt", "harbours.txt", "ferries.txt"];

export const research: Workflow<{ topic: string }, object> = workflow(
  { name: "example-research", budget: { usd: 1, tokens: 20_000 } },
  async (ctx, { topic }: { topic: string }) => {
    const found: string[] = [];
    for (const page of PAGES) {
      const text = await ctx.step(
        "read",
        async ({ spent }) => {
          await wait(160);
          spent({ usd: 0.38, tokens: 4200 });
          return `${page}: three lines about ${topic}`;
        },
        { spend: { usd: 0.4, tokens: 5000 } },
      );
      found.push(text);
      ctx.set("found", found);
    }
    return { topic, found };
  },
);

/** So many batches take some ten minutes. */
const BATCHES = 240;
/** Every so many batches the warehouse answers too late, once or twice. */
const TROUBLE = 3;

export const importer: Workflow<{ rows: number }, object> = workflow(
  { name: "example-import", retry: { max: 5, base: "900ms", jitter: false } },
  async (ctx, { rows }: { rows: number }) => {
    const each = Math.ceil(rows / BATCHES);
    await ctx.call(order, { order: "sample", cents: 1200 }, { key: "sample-order" });
    for (let batch = 1; batch <= BATCHES; batch++) {
      await ctx.step("load-batch", async ({ attempt, emit }) => {
        emit(`batch ${batch}: ${each} rows, attempt ${attempt}\n`);
        await wait(700 + ((batch * 37) % 5) * 180);
        if (batch % TROUBLE === 0 && attempt <= 1 + (batch % 2))
          throw new RetryableError(`The warehouse did not answer in time (batch ${batch})`);
        emit(`batch ${batch}: done\n`);
        return { batch, rows: each };
      });
      ctx.progress({ batch, of: BATCHES, rows: batch * each });
      ctx.set("rows", batch * each);
      await ctx.sleep("600ms");
    }
    return { rows };
  },
);
