// A store with something of everything in it, and for each route of the table a request that fits it.
import type { Pawl } from "../../src/client/pawl.ts";
import { workflow } from "../../src/core/workflow.ts";
import { phases } from "../../src/flows/phases.ts";
import type { Route } from "../../src/server/route.ts";

const order = workflow("order", async (ctx, input: unknown) => {
  await ctx.step("reserve", () => ({ reserved: true, at: new Date(0) }));
  await ctx.effect("charge", { do: () => "charged", idempotent: true });
  ctx.set("input", input);
  await ctx.waitFor("go");
  return "sent";
});
const asking = workflow("asking", async (ctx) =>
  ctx.approve("refund", {
    action: { tool: "refund", arguments: { eur: 5 } },
    approvers: ["role:physician"],
    timeout: "1h",
  }),
);
const failing = workflow({ name: "failing", retry: false }, async (ctx) => {
  await ctx.step("fine", () => 1);
  await ctx.step("broken", () => {
    throw new Error("broken <img src=x onerror=alert(1)>");
  });
});
const paced = phases({ name: "paced" }, [
  { name: "first", run: () => 1 },
  { name: "second", run: () => 2 },
]);
const manual = phases({ name: "manual" }, [
  { name: "work", steps: [{ name: "tidy", manual: { instructions: "Tidy up." } }] },
]);
const blocked = phases({ name: "blocked", retry: false }, [
  {
    name: "first",
    run: () => {
      throw new Error("no paper");
    },
  },
]);

/** Two runs of it do the same outside: that is an alert. */
const twice = workflow("twice", async (ctx) => void (await ctx.effect("pay", { do: () => 1, key: "order-7" })));

export const SAMPLE_WORKFLOWS = [order, asking, failing, paced, manual, blocked, twice] as const;

export interface Samples {
  readonly waiting: string;
  readonly asking: string;
  readonly approval: string;
  readonly hash: string;
  readonly link: string;
  readonly failed: string;
  readonly paced: string;
  readonly manual: string;
  readonly blocked: string;
  readonly alert: string;
}

/** Starts the runs that requests are about. */
export async function plant(pawl: Pawl): Promise<Samples> {
  const waiting = await pawl.start(order, { n: 1 }, { tags: ["vip"], key: "order-1" });
  const asked = await pawl.start(asking, undefined);
  const failed = await pawl.start(failing, undefined);
  const stepwise = await pawl.start(paced, undefined, { advance: true });
  const byHand = await pawl.start(manual, undefined);
  const stopped = await pawl.start(blocked, undefined);
  await pawl.schedule("nightly", "order", { cron: "0 3 * * *" });
  await pawl.schedule("weekly", "order", { cron: "0 3 * * 1" });
  for (let i = 0; i < 2; i++) await pawl.run(twice);
  await pawl.alerts.check();
  await pawl.idle();
  const [alert] = await pawl.alerts.list();
  if (alert === undefined) throw new Error("there is no alert");
  const [approval] = (await pawl.approvals.list()).approvals;
  if (approval === undefined) throw new Error("there is no approval");
  const link = await pawl.links.create(approval.id, { for: "role:physician" });
  await pawl.idle();
  return {
    waiting: waiting.id,
    asking: asked.id,
    approval: approval.id,
    hash: approval.hash,
    link: link.id,
    failed: failed.id,
    paced: stepwise.id,
    manual: byHand.id,
    blocked: stopped.id,
    alert: alert.id,
  };
}

export interface Sample {
  /** What stands for the names in the path. */
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly body?: unknown;
}

/** By method and path. What has no line here is asked with the id of the waiting run and an empty body. */
export function samplesOf(ids: Samples): Readonly<Record<string, Sample>> {
  const run = { params: { id: ids.waiting } };
  const approval = { params: { id: ids.approval } };
  const schedule = { params: { name: "nightly" } };
  return {
    "POST /api/session": { body: { token: "unknown" } },
    "POST /api/runs": { body: { workflow: "order", input: 1, options: { key: "order-2", tags: ["new"] } } },
    "POST /api/runs/:id/signal": { ...run, body: { name: "note", payload: { a: 1 }, id: "s-1" } },
    "POST /api/runs/:id/cancel": { ...run, body: { reason: "no longer wanted" } },
    "POST /api/runs/:id/retry": { params: { id: ids.failed }, body: {} },
    "GET /api/runs/:id/diff/:other": { params: { id: ids.waiting, other: ids.failed } },
    "POST /api/runs/:id/fork": { params: { id: ids.failed }, body: { at: "broken" } },
    "POST /api/runs/:id/resolve": { params: { id: ids.blocked }, body: { choice: "retry" } },
    "POST /api/runs/:id/advance": { params: { id: ids.paced }, body: {} },
    "POST /api/runs/:id/report": { params: { id: ids.manual }, body: { step: "tidy", action: "begin" } },
    "POST /api/runs/bulk": { body: { action: "cancel", filter: { workflow: "none" }, dryRun: true } },
    "POST /api/runs/:id/hold": { ...run, body: { reason: "an auditor looks at it" } },
    "GET /api/approvals/:id": approval,
    "GET /api/approvals/:id/links": approval,
    "POST /api/approvals/:id/links": { ...approval, body: { for: "role:physician" } },
    "DELETE /api/approvals/:id/links/:link": { params: { id: ids.approval, link: ids.link } },
    "POST /api/events": { body: { type: "order.paid", id: "e-1", data: { order: 1 } } },
    "POST /api/approvals/:id/decide": { ...approval, body: { decision: "approved", hash: ids.hash, reason: "fine" } },
    "POST /api/alerts/:id/acknowledge": { params: { id: ids.alert } },
    "POST /api/alerts/:id/resolve": { params: { id: ids.alert } },
    "PUT /api/schedules/:name": { params: { name: "hourly" }, body: { workflow: "order", every: "1h", input: 7 } },
    "DELETE /api/schedules/:name": { params: { name: "weekly" } },
    "POST /api/schedules/:name/pause": schedule,
    "POST /api/schedules/:name/resume": schedule,
  };
}

export function keyOf({ spec }: Route): string {
  return `${spec.method} ${spec.path}`;
}

/** "GET /api/runs/0193…", with what belongs to it. */
export function requestOf(route: Route, ids: Samples): { readonly what: string; readonly body?: unknown } {
  const { params = { id: ids.waiting }, query = "", body } = samplesOf(ids)[keyOf(route)] ?? {};
  const path = route.spec.path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ids.waiting));
  const needsBody = body === undefined && route.spec.body !== undefined;
  return {
    what: `${route.spec.method} ${path}${query}`,
    ...(body !== undefined ? { body } : needsBody && { body: {} }),
  };
}

/** All that a store holds, as one value. */
export async function dumpOf({ store }: Pawl): Promise<unknown> {
  const rows = await store.runs({ limit: 1000 });
  const runs = await Promise.all(
    rows.map(async (row) => ({
      row,
      journal: await store.journal(row.id),
      inbox: await store.inbox(row.id),
      state: await store.state(row.id),
    })),
  );
  return { runs, waits: await store.waits({}), counters: await store.counters("") };
}
