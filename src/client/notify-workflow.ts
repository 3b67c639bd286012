import { messageOf, PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import { DEFAULTS } from "../core/limits.ts";
import { NOTIFY_VERSION, NOTIFY_WORKFLOW, type Notification, type Notifier } from "../core/notification.ts";
import { type Workflow, workflow } from "../core/workflow.ts";

/** Hours, with growing pauses: a receiver may be down for a night. */
const RETRY = { max: 12, base: "5s", factor: 3, cap: "2h", on: "any" } as const;

/** Adds what must not be recorded, each time that it is sent. */
export type Complete = (notification: Notification) => Promise<Notification>;

/**
 * What sends notifications: every process that has notifiers works on it. Each notifier is a step of its own, tried again by itself, so that one that is
 * down does not make the others send twice. Workers may have other notifiers than the one before them: what is recorded counts by its name.
 */
export function notifyWorkflow(notifiers: readonly Notifier[], complete: Complete): Workflow {
  assertNotifiers(notifiers);
  const options = {
    name: NOTIFY_WORKFLOW,
    version: NOTIFY_VERSION,
    deadline: DEFAULTS.notifyMs,
    retry: RETRY,
    onMissing: "execute",
  } as const;
  return workflow(options, async (ctx, notification: Notification) => {
    const sending = notifiers.map((notifier) =>
      ctx.step(
        notifier.name,
        async ({ signal }) => void (await notifier.notify(await complete(notification), { signal })),
        { kind: "api" },
      ),
    );
    const failed = (await Promise.allSettled(sending)).flatMap((sent, index) =>
      sent.status === "rejected" ? [`${notifiers[index]?.name}: ${messageOf(sent.reason)}`] : [],
    );
    if (failed.length === 0) return;
    throw new PawlError(
      "notification_failed",
      `Notification ${notification.id} about run ${notification.run} was not sent. ${failed.join(" ")} Repair the receiver and \`pawl retry\` this run.`,
      { fields: { notification: notification.id, run: notification.run } },
    );
  }) as Workflow;
}

function assertNotifiers(notifiers: readonly Notifier[]): void {
  const names = new Set<string>();
  for (const notifier of notifiers) {
    if (typeof notifier?.notify !== "function")
      throw new PawlError("invalid_argument", "`notifiers` holds something without notify(notification, { signal }).");
    assertName("notifier name", notifier.name);
    if (names.has(notifier.name))
      throw new PawlError("invalid_argument", `Two notifiers are named "${notifier.name}". Give one another name.`, {
        fields: { notifier: notifier.name },
      });
    names.add(notifier.name);
  }
}
