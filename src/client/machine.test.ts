import { expect, it } from "vitest";
import { workflow } from "../core/workflow.ts";
import { memoryStore } from "../stores/memory/memory-store.ts";
import { processIdentity } from "../worker/process-identity.ts";
import { onMachine } from "./machine.ts";
import { Pawl } from "./pawl.ts";
import type { PawlOptions } from "./pawl-options.ts";

const echo = workflow("echo", async (_ctx, input: number) => input);

it("I5 an engine on a machine of its own takes its ids, its identity and its watch over globals from there", async () => {
  const watched: string[] = [];
  const options: PawlOptions = { workflows: [echo], handleSignals: false, logger: silent() };
  const open = () => {
    const machine = {
      randomBytes: (count: number) => new Uint8Array(count).fill(7),
      identity: () => ({ ...processIdentity(), pid: 4711 }),
      protect: () => {
        watched.push("begun");
        return () => void watched.push("over");
      },
    };
    return Pawl.open(memoryStore(), onMachine(options, machine));
  };
  const pawl = await open();
  expect((await pawl.workers())[0]?.process.pid).toBe(4711);
  expect((await pawl.start(echo, 1)).id).toMatch(/-8707-070707070707$/);
  await pawl.close();
  expect(watched).toEqual(["begun", "over"]);
});

it("I5 the machine goes with the options object alone, and the options stay as they were", async () => {
  const options: PawlOptions = { workflows: [echo], handleSignals: false, logger: silent() };
  expect(onMachine(options, {})).toEqual(options);
  const pawl = await Pawl.open(memoryStore(), options);
  expect((await pawl.workers())[0]?.process.pid).toBe(process.pid);
  await pawl.close();
});

function silent() {
  return { debug() {}, info() {}, warn() {}, error() {} };
}
