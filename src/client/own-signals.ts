// Signals that the engine's own methods send to runs: each once, under an id of its own, so that a second one that says something else is found out.
import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import { encodePayload } from "../core/draft.ts";
import type { SignalReceived } from "../core/journal.ts";
import { OWN } from "../core/outline.ts";
import { assertNotAlerts, assertNotBodiless } from "../core/own-workflows.ts";
import type { Store } from "../core/store.ts";
import { asKept, openEntry, openValue, sealValue } from "../core/values.ts";
import { CHANGE } from "../worker/schedule-keeper.ts";
import { type RunSource, runHasEnded, runNotFound } from "./run.ts";

export interface SendPorts extends RunSource {
  /** A message has reached a run. */
  sent(): void;
}

/** Whether anybody may send a signal of this name. */
export function assertSignalName(name: unknown): asserts name is string {
  assertName("signal name", name);
  if (!name.startsWith(OWN)) return;
  throw new PawlError(
    "invalid_name",
    `Signal "${name}" is not sent by hand: names that begin with "${OWN}" are the engine's own. Say it with pawl.advance, pawl.report or pawl.resolve, or give your signal another name.`,
    { fields: { what: "signal name", value: name } },
  );
}

/** Whether anybody may send such a signal to this run: what is said to the engine's own has methods of its own. */
export async function assertReceiver(store: Store, run: string, name: string): Promise<void> {
  assertNotAlerts(run);
  if (name !== CHANGE) return;
  const row = await store.run(run);
  if (row !== null) assertNotBodiless(row.workflow);
}

/**
 * Votes, answers, ends of children, choices and what is said about phases are messages, too, and a second message of one id is not delivered. Some of them
 * are signals themselves: it would not help to tell ids apart by kind.
 */
const OWN_IDS = /^(approval|callback|child):|^(advance|block|manual)-\d+-|^decision-\d+$|^pawl\./;

/** Whether a signal may have this id: with that of another message, it would take its place. */
export function assertSignalId(id: unknown): asserts id is string {
  assertName("signal id", id);
  if (!OWN_IDS.test(id)) return;
  throw new PawlError("invalid_name", `Signal id "${id}" is of a kind that the engine uses itself. Give another one.`, {
    fields: { what: "signal id", value: id },
  });
}

/** Run state as it is now, by key. */
export async function stateOf(
  { store, codec }: Pick<RunSource, "store" | "codec">,
  run: string,
): Promise<Record<string, unknown>> {
  const rows = await store.state(run);
  const open = (key: string, data: string | Uint8Array) =>
    openValue(codec, data, { run, seq: -1, field: `state:${key}` });
  return Object.fromEntries(rows.map(({ key, data }) => [key, open(key, data)]));
}

/** Sends a signal; whoever wanted something else than who was first is told. */
export async function sendOnce(
  ports: SendPorts,
  run: string,
  name: string,
  id: string,
  payload: object,
): Promise<void> {
  const at = { run, seq: -1, field: `inbox:${id}` };
  const data = sealValue(ports.codec, payload, at, `signal "${name}"`);
  const delivery = await ports.store.deliver({ to: run, id, kind: "signal", name, data });
  if (delivery === "missing") throw runNotFound(run);
  if (delivery === "ended") throw runHasEnded(run, `signal "${name}"`);
  if (delivery === "duplicate") await assertSame(ports, run, id, asKept(ports.codec, payload, at, "message"));
  ports.sent();
}

async function assertSame({ store, codec }: SendPorts, run: string, id: string, wanted: object): Promise<void> {
  const row = (await store.inbox(run)).find((one) => one.id === id);
  const first =
    row === undefined
      ? await received({ store, codec }, run, id)
      : openValue(codec, row.data, { run, seq: -1, field: `inbox:${id}` });
  if (first === undefined || encodePayload(first, "message") === encodePayload(wanted, "message")) return;
  throw new PawlError(
    "idempotency_conflict",
    `Somebody else has decided about run ${run} before, and otherwise. \`pawl show ${run}\` tells what became of it; cancel the run to stop it.`,
    { fields: { run, first } },
  );
}

async function received({ store, codec }: Pick<RunSource, "store" | "codec">, run: string, id: string) {
  for (const stored of (await store.journal(run)).reverse()) {
    if (stored.type !== "signal.received") continue;
    const { id: own, payload } = openEntry(codec, run, stored).payload as SignalReceived;
    if (own === id) return payload;
  }
  return undefined;
}
