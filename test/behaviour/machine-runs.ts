// Runs of small machines, for the tests of what they do.
import { jsonCodec } from "../../src/base/envelope.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import type { Run } from "../../src/client/run.ts";
import type { MachinePosition } from "../../src/core/machine-position.ts";
import { openEntry } from "../../src/core/values.ts";
import { machine } from "../../src/flows/machine.ts";
import type { Steps } from "../../src/flows/machine-step.ts";
import { openWorld, type StoreKind, type World } from "./harness.ts";

export interface State {
  readonly input: string;
  readonly n: number;
  readonly log: readonly string[];
  readonly got: unknown;
}

export const OPTIONS = {
  name: "m",
  state: (input: string): State => ({ input, n: 0, log: [], got: null }),
  merge: { log: "append" as const },
  escalation: { approvers: ["boss"], timeout: "1 day" },
};

export type Make = Steps<State>;
/** A machine of one step that counts, and what the steps in hand say. */
export const machineOf = <M>(start: string, steps: (make: Make) => M, name = "m") =>
  machine({ ...OPTIONS, name }, ((make: Make) => ({ start, steps: steps(make) })) as never);

export const end = ({ step }: Make) =>
  step({ can: ["complete"], run: (state) => ({ transition: "complete", output: state.log.join(" ") }) });
export const bookings = (make: Make, done: string[]) => (name: string, next: string) =>
  make.effect({
    next: [next],
    idempotent: true,
    do: () => void done.push(name),
    undo: () => void done.push(`undo ${name}`),
    decide: () => ({ transition: "continue", next }),
  });

export const positionOf = async (pawl: Pawl, run = "r") =>
  (await pawl.get(run).status()).data["pawl.machine"] as MachinePosition | undefined;
export const notesOf = async (world: World, run = "r") =>
  (await world.store.journal(run))
    .filter(({ type }) => type === "note")
    .map((entry) => (openEntry(jsonCodec, run, entry).payload as { text: string }).text);
export const decide = async (pawl: Pawl, decision: "approved" | "denied", by: string) => {
  const [open] = (await pawl.approvals.list({ run: "r" })).approvals;
  return pawl.approvals.decide(open?.id ?? "", { decision, by });
};

export const begin = async (store: StoreKind, flow: ReturnType<typeof machineOf>, input = "go") => {
  const world = await openWorld(store);
  const pawl = await world.open([flow]);
  const run = await pawl.start(flow, input as never, { id: "r" });
  run.result().catch(() => {});
  await world.settle();
  return { world, pawl, run };
};

/** A run of each, in one world. */
export const beginAll = async (store: StoreKind, flows: readonly ReturnType<typeof machineOf>[]) => {
  const world = await openWorld(store);
  const pawl = await world.open(flows as never);
  const runs: Run[] = [];
  for (const flow of flows) runs.push(await pawl.start(flow, "go" as never, { id: flow.name }));
  for (const run of runs) run.result().catch(() => {});
  await world.settle();
  return { world, pawl, runs };
};
