// What people do to runs. Who it was comes from the credential, never from what they send.

import type { StepReport } from "../../client/manual.ts";
import type { StartOptions } from "../../client/start.ts";
import { unlessNobodyCan } from "../../client/unless-nobody-can.ts";
import type { BudgetOptions } from "../../core/budget.ts";
import { LIMITS } from "../../core/limits.ts";
import { DONE, OBJECT, STARTED } from "../answers.ts";
import { type Route, route } from "../route.ts";
import {
  anything,
  flag,
  listOf,
  mapOf,
  nullable,
  object,
  oneOf,
  optional,
  type Shape,
  text,
  type ValuesOf,
  whole,
} from "../shape.ts";

const REASON = optional(text("Why, for the journal.", { max: LIMITS.reasonBytes }));

const START_OPTIONS = {
  id: optional(text("The run's id. A second start with it and the same input is the same run.")),
  key: optional(text("What the run is about: a repeated start with it gives the same run.")),
  tags: optional(listOf("To find it by.", text("A tag."), { max: 100 })),
  delay: optional(text('Start no earlier: "2h".')),
  deadline: optional(text('Fail it if it is not done by then: "2h", or a date.')),
  priority: optional(whole("Higher goes first.", -1_000_000_000, 1_000_000_000)),
  version: optional(text("Of the workflow.")),
  advance: optional(flag("Begin no phase before it is told to.")),
  budget: optional(mapOf("What it may spend.", anything("An amount."))),
};

/** How long a request waits for a phase that it has begun. */
const ADVANCE_MS = 30_000;

const ADVANCED: Shape = object("How far it has come.", {
  run: text("The run."),
  phase: nullable(text("The phase that was executed last.")),
  isEnded: flag("Whether the run has ended."),
  isPending: optional(flag("The phase is still under way: follow the run.")),
  document: OBJECT,
});

export const actionRoutes: readonly Route[] = [
  route(
    {
      method: "POST",
      path: "/api/runs",
      role: "operator",
      summary: "Starts a run. With `key` or `id` a repeated start gives the same run.",
      body: {
        workflow: text("The name of a workflow that a worker has."),
        input: optional(anything("What it is started with.")),
        options: optional(object("How it is started.", START_OPTIONS)),
      },
      status: 201,
      answer: STARTED,
    },
    async ({ pawl, body: { workflow, input, options = {} } }) => {
      const run = await pawl.start(workflow, input, startOptions(options));
      return { id: run.id };
    },
  ),
  route(
    {
      method: "POST",
      path: "/api/runs/:id/signal",
      role: "operator",
      summary: "Sends a durable message. One with the same id is delivered once.",
      body: {
        name: text("Its name."),
        payload: optional(anything("What it brings.")),
        id: optional(text("A signal with the same id is delivered once, however often it is sent.")),
      },
      answer: DONE,
    },
    async ({ pawl, params, body: { name, payload, id } }) => {
      await pawl.signal(params.id, name, payload, id === undefined ? {} : { id });
      return { ok: true };
    },
  ),
  route(
    {
      method: "POST",
      path: "/api/runs/:id/cancel",
      role: "operator",
      summary: "Stops a run, and says what was recorded. Again is the same.",
      body: { reason: REASON, compensate: optional(flag("Undo what it has done, as far as it says how.")) },
      answer: object("What was recorded.", {
        run: text("The run."),
        outcome: nullable(
          oneOf("null: it is kept until a worker is there that can carry it out.", [
            "cancelling",
            "cancelled",
            "succeeded",
            "failed",
          ]),
        ),
      }),
    },
    async ({ pawl, params: { id }, body: { reason, compensate } }) => {
      const options = { ...(reason !== undefined && { reason }), ...(compensate !== undefined && { compensate }) };
      const done = await unlessNobodyCan(pawl, id, (signal) => pawl.cancel(id, { ...options, signal }));
      return { run: id, outcome: done?.outcome ?? null };
    },
  ),
  route(
    {
      method: "POST",
      path: "/api/runs/:id/retry",
      role: "operator",
      summary: "Starts a new run that inherits the journal up to the failure, or up to a step.",
      body: { from: optional(text("The key of the step to begin again with. Default: the one that failed.")) },
      status: 201,
      answer: STARTED,
    },
    async ({ pawl, params: { id }, body: { from } }) => {
      const run = await (from === undefined ? pawl.retry(id) : pawl.fork(id, { at: from }));
      return { id: run.id };
    },
  ),
  route(
    {
      method: "POST",
      path: "/api/runs/:id/fork",
      role: "operator",
      summary: "Starts a new run that inherits the journal up to a point.",
      body: {
        at: { schema: { anyOf: [text("A step's key.").schema, whole("A position.", 0).schema] }, isOptional: false },
      },
      status: 201,
      answer: STARTED,
    },
    async ({ pawl, params: { id }, body }) => {
      const run = await pawl.fork(id, { at: body.at as string | number });
      return { id: run.id };
    },
  ),
  route(
    {
      method: "POST",
      path: "/api/runs/:id/resolve",
      role: "operator",
      summary: "Decides about a parked run with one of its choices.",
      body: {
        choice: text("One of those that the run lists."),
        value: optional(anything("What belongs to the choice.")),
        step: optional(text("The step it is about, if there are several.")),
      },
      answer: DONE,
    },
    async ({ pawl, who, params: { id }, body: { choice, value, step } }) => {
      // A migration records who wanted it.
      const given = choice === "migrate" ? { by: who.name } : value;
      const more = { ...(given !== undefined && { value: given }), ...(step !== undefined && { step }) };
      await unlessNobodyCan(pawl, id, () => pawl.resolve(id, { choice, ...more }));
      return { ok: true };
    },
  ),
  route(
    {
      method: "POST",
      path: "/api/runs/:id/advance",
      role: "operator",
      summary: "Executes the next phase of a run that waits for this, or all that are left.",
      body: { to: optional(oneOf("How far.", ["phase", "end"])) },
      answer: ADVANCED,
    },
    async ({ pawl, params: { id }, body: { to }, signal }) => {
      const timeout = AbortSignal.timeout(ADVANCE_MS);
      const waiting = AbortSignal.any([signal, timeout]);
      try {
        return await pawl.advance(id, { ...(to !== undefined && { to }), signal: waiting });
      } catch (error) {
        // The error of a run that has ended is what became of it, not of this request.
        const { endedAt } = await pawl.get(id).status();
        const isEnded = endedAt !== null;
        if (!waiting.aborted && !isEnded) throw error;
        const document = await pawl.get(id).document();
        return { run: id, phase: null, isEnded, ...(!isEnded && { isPending: true }), document };
      }
    },
  ),
  route(
    {
      method: "POST",
      path: "/api/runs/:id/report",
      role: "operator",
      summary:
        "Says that a step which is done outside was begun, is done or has failed. Its files cannot be sent this way.",
      body: {
        step: text("The step."),
        action: oneOf("What is said about it.", ["begin", "done", "fail"]),
        reason: REASON,
      },
      answer: DONE,
    },
    async ({ pawl, who, params: { id }, body: { step, action, reason = "" } }) => {
      // Files of the server's own disk must not be had by naming them: `outputs` is for callers on that machine.
      const report: StepReport = action === "fail" ? { by: who.name, action, reason } : { by: who.name, action };
      await pawl.report(id, step, report);
      return { ok: true };
    },
  ),
];

function startOptions({ deadline, budget, ...rest }: ValuesOf<typeof START_OPTIONS>): StartOptions {
  const isDate = deadline !== undefined && /^\d{4}-/.test(deadline);
  return {
    ...rest,
    ...(deadline !== undefined && { deadline: isDate ? new Date(deadline) : deadline }),
    ...(budget !== undefined && { budget: budget as BudgetOptions }),
  };
}
