// Events
// An event starts one run of each workflow that has a trigger for it. The key of those runs is the event's id, so that the store's unique keys decide
// what is new: whoever sends an event again, at once, later or after a restart, starts nothing (S2-51). Triggers are looked for here, in this process's
// options, and among the workers of the store.
import { PawlError } from "../base/errors.ts";
import { assertName, isName } from "../base/ids.ts";
import { compareVersions, parseVersion } from "../base/semver.ts";
import type { Host } from "../core/host.ts";
import type { Handle } from "../core/store.ts";
import { fires, inputFor, type PawlEvent, type Trigger, triggersOf } from "../core/trigger.ts";
import { type StartPorts, startRun } from "./start.ts";

/** A trigger of a workflow that another process may have. */
export interface WorkflowTrigger extends Trigger {
  /** The name of the workflow. */
  readonly workflow: string;
}

/** The runs of an event: those that it has started, now or when it first came. */
export interface Emitted {
  readonly runs: readonly { readonly workflow: string; readonly run: string }[];
}

export class Events {
  readonly #ports: StartPorts;
  readonly #configured: readonly WorkflowTrigger[];

  constructor(ports: StartPorts, configured: readonly WorkflowTrigger[] = []) {
    for (const { workflow, ...trigger } of configured) {
      assertName("workflow of a trigger", workflow);
      triggersOf(trigger, `\`triggers\` for "${workflow}"`);
    }
    this.#ports = ports;
    this.#configured = configured;
  }

  /** Resolves when every run is accepted, durably. If one cannot be started, send the event again: the others are not started twice. */
  async emit(event: PawlEvent): Promise<Emitted> {
    assertEvent(event);
    const wanted = new Map<string, Trigger>();
    for (const trigger of await this.#triggers())
      if (!wanted.has(trigger.workflow) && fires(trigger, event)) wanted.set(trigger.workflow, trigger);
    const starts = [...wanted].map(async ([workflow, trigger]) => ({
      workflow,
      run: await startRun(this.#ports, workflow, inputFor(trigger, event), {
        key: deliveryKey(this.#ports.host, "event", event.id),
        tags: [`event:${event.type}`],
      }),
    }));
    const settled = await Promise.allSettled(starts);
    const failed = settled.find((one) => one.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    return { runs: await Promise.all(starts) };
  }

  async #triggers(): Promise<WorkflowTrigger[]> {
    const { registry, store } = this.#ports;
    const own = registry.names.flatMap((name) => declared(name, registry.newest(name)?.definition.triggers));
    const known = new Set(registry.names);
    const elsewhere = (await store.workers()).flatMap(({ handles }) => handles);
    return [...this.#configured, ...own, ...newest(elsewhere.filter(({ workflow }) => !known.has(workflow)))];
  }
}

function declared(workflow: string, triggers: readonly Trigger[] = []): WorkflowTrigger[] {
  return triggers.map((trigger) => ({ ...trigger, workflow }));
}

/** While two versions are deployed, the newer one says what starts it. */
function newest(handles: readonly Handle[]): WorkflowTrigger[] {
  const byName = new Map<string, Handle>();
  for (const handle of handles) {
    const known = byName.get(handle.workflow);
    if (known === undefined || compareVersions(parseVersion(known.version), parseVersion(handle.version)) < 0)
      byName.set(handle.workflow, handle);
  }
  return [...byName.values()].flatMap(({ workflow, on }) => declared(workflow, on));
}

/** The start key of what came from outside under an id of its sender; such an id may have what no name may. */
export function deliveryKey(host: Host, from: string, id: string): string {
  const plain = `${from}:${id}`;
  return isName(plain) ? plain : `${from}:${host.digest(id)}`;
}

const ID_LENGTH = 1000;

function assertEvent(event: PawlEvent): void {
  if (typeof event !== "object" || event === null)
    throw new PawlError(
      "invalid_argument",
      'An event is { type, id, data }, such as { type: "order.paid", id: "17" }.',
    );
  assertName("type of the event", event.type);
  if (typeof event.id === "string" && event.id !== "" && event.id.length <= ID_LENGTH) return;
  throw new PawlError(
    "invalid_argument",
    `\`id\` of the event must be a text of up to ${ID_LENGTH} characters: it tells an event that is sent again from another one.`,
    { fields: { field: "id" } },
  );
}
