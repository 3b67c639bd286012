// Deciding about a parked run
// One decision per park: it waits in the run's inbox until its owner records it with what follows from it.
import { PawlError, readProperty } from "../base/errors.ts";
import type { Parked, Resolved } from "../core/journal.ts";
import type { Block } from "../core/outline.ts";
import { BUDGET_DECISION } from "../core/spending.ts";
import { isTerminal } from "../core/transition.ts";
import { blockOf, resolveBlock } from "./block.ts";
import { assertRaise, raiseForOthers } from "./budgets.ts";
import { assertSameDecision, sealDecision, stepOf } from "./decision.ts";
import { startFresh } from "./fresh.ts";
import { migrateRun } from "./migrate.ts";
import { parkOf, type RunSource, rowOf, runHasEnded } from "./run.ts";
import type { StartPorts } from "./start.ts";

/** One of the choices that `run.status()` lists, with what belongs to it. */
export type Choice = string | { readonly choice: string; readonly value?: unknown; readonly step?: string };

export interface ResolvePorts extends RunSource {
  /** What a new run, or another generation of this one, is made with. */
  readonly starting: StartPorts;
  /** A message has reached a run. */
  sent(): void;
}

interface Decision {
  readonly choice: string;
  readonly value?: unknown;
  readonly step?: string;
}

export async function resolveRun(ports: ResolvePorts, id: string, choice: Choice): Promise<void> {
  const decision: Decision = typeof choice === "string" ? { choice } : choice;
  // Read before the park is: a decision that comes too late for this one must not be taken for one about the next.
  const { head } = await rowOf(id, ports.store);
  const park = await openParkOf(ports, id);
  if ("ticket" in park) {
    assertChoice(id, park, decision.choice === "cancel" ? "abort" : decision.choice);
    return resolveBlock(ports, id, park, decision);
  }
  assertChoice(id, park, decision.choice);
  if (decision.choice === "cancel" || decision.choice === "abort") return void (await ports.cancel(id));
  if (decision.choice === "compensate") return void (await ports.cancel(id, { compensate: true }));
  if (ABOUT_VERSIONS.has(park.reason) && decision.choice === "fresh")
    return void (await startFresh(ports.starting, await rowOf(id, ports.store), { force: isForced(decision) }));
  if (ABOUT_VERSIONS.has(park.reason) && decision.choice === "migrate")
    return migrateRun(ports.starting, await rowOf(id, ports.store), park, whoSays(decision));
  await decide(ports, id, head, park, decision);
}

const ABOUT_VERSIONS: ReadonlySet<string> = new Set(["version_mismatch", "definition_changed", "migration_pending"]);

function isForced({ value }: Decision): boolean {
  return readProperty(value, "force") === true;
}

function whoSays({ value }: Decision): string {
  const by = readProperty(value, "by");
  return typeof by === "string" && by !== "" ? by : "somebody";
}

async function openParkOf(ports: ResolvePorts, id: string): Promise<Parked | Block> {
  const { store } = ports;
  const [wait] = (await store.waits({ run: id })).filter((one) => one.kind === "decision");
  if (wait !== undefined && wait.detail !== null) return parkOf(id, wait.detail);
  const { state } = await rowOf(id, store);
  const block = isTerminal(state) ? null : await blockOf(ports, id, { evenDecided: true });
  if (block !== null) return block;
  throw new PawlError(
    "invalid_argument",
    `Run ${id} is ${state}, not parked: there is nothing to decide. \`pawl why ${id}\` tells what it does.`,
    { fields: { run: id, state } },
  );
}

function assertChoice(id: string, { choices }: Pick<Parked, "choices">, choice: string): void {
  if (choices.includes(choice)) return;
  throw new PawlError(
    "invalid_argument",
    `"${choice}" is no choice for run ${id}. Choose one of: ${choices.join(", ")}.`,
    { fields: { run: id, choices } },
  );
}

async function decide(ports: ResolvePorts, id: string, head: number, park: Parked, decision: Decision): Promise<void> {
  const isRaise = park.reason === "budget_exceeded" && decision.choice === "raise";
  if (isRaise) assertRaise(id, park, decision.value);
  // One decision per park: a second caller's is the same message.
  const messageId = `decision-${head}`;
  const resolved: Resolved = { choice: decision.choice, value: decision.value };
  const name = park.reason === "budget_exceeded" ? BUDGET_DECISION : await stepOf(ports, id, park, decision.step);
  const data = sealDecision(ports.codec, id, messageId, resolved);
  const delivery = await ports.store.deliver({ to: id, id: messageId, kind: "decision", name, data });
  if (delivery === "ended") throw runHasEnded(id, `the decision "${decision.choice}"`);
  if (delivery === "duplicate") await assertSameDecision(ports, id, messageId, resolved);
  if (isRaise) await raiseForOthers(ports, id, park, resolved);
  ports.sent();
}
