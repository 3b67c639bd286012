// One process of `pawl worker --processes n`
// What it is to do, and when to stop, it hears over the channel to the process that started it.
//
//   WP1. It stops by itself when the channel closes: whoever started it is gone, and nobody else would ever stop it.
//   WP2. A signal that goes to all processes of a terminal or a service at once means one thing only: SIGTERM is a stop, however often it comes;
//        what SIGINT and SIGHUP mean, the process that started it says.
import { type ErrorCode, messageOf, PawlError } from "../base/errors.ts";
import { createOutput } from "./output.ts";
import { type AtWork, beginWork, type Work, type WorkingOn } from "./work.ts";

/** The first thing that it is told. */
export interface Assignment {
  readonly work: Work;
  /** Its place among the processes, counted from one. */
  readonly place: number;
  readonly isJson: boolean;
}

/** What it is told: its work, then, some time, to stop. */
export type Order = { readonly kind: "work"; readonly assignment: Assignment } | { readonly kind: "stop" };

/** What it tells. */
export type News =
  | { readonly kind: "working"; readonly workflows: readonly WorkingOn[] }
  | { readonly kind: "failed"; readonly message: string; readonly code: ErrorCode | null };

const assigned = new Promise<Assignment>((resolve) => {
  process.on("message", (order: Order) => {
    if (order.kind === "work") resolve(order.assignment);
  });
});

const stopped = new Promise<void>((resolve) => {
  process.on("message", (order: Order) => {
    if (order.kind === "stop") resolve();
  });
  process.once("disconnect", resolve);
  process.on("SIGTERM", () => resolve());
});

for (const signal of ["SIGINT", "SIGHUP"] as const) process.on(signal, () => {});
// With the process that reads what this one prints, the pipes go: that must not keep it from handing its runs back.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});

function tell(news: News): Promise<void> {
  return new Promise((resolve) => {
    if (!process.connected || process.send === undefined) return resolve();
    process.send(news, () => resolve());
  });
}

async function begin({ work, place, isJson }: Assignment): Promise<AtWork | null> {
  try {
    return await beginWork(work, createOutput(isJson), { process: place });
  } catch (error) {
    await tell({ kind: "failed", message: messageOf(error), code: error instanceof PawlError ? error.code : null });
    process.exitCode = 1;
    return null;
  }
}

async function main(): Promise<void> {
  const assignment = await Promise.race([assigned, stopped]);
  if (assignment === undefined) return;
  const atWork = await begin(assignment);
  if (atWork === null) return;
  await tell({ kind: "working", workflows: atWork.workflows });
  await stopped;
  await atWork.stop();
}

await main();
process.exit();
