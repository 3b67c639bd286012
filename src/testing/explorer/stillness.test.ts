import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { expect, it, vi } from "vitest";
import { nextRound, roundsUntil, Stillness } from "./stillness.ts";

it("what takes longer is waited for with the processor left to it", async () => {
  const pauses = vi.spyOn(Atomics, "wait");
  const stillness = new Stillness();
  const child = spawn(process.execPath, ["-e", ""], { stdio: "ignore" });
  await roundsUntil(() => stillness.isStill());
  expect(child.exitCode).toBe(0);
  expect(pauses.mock.calls.length).toBeGreaterThan(5);
  pauses.mockRestore();
});

it("a socket that stays open is waited for a moment, a process of its own for much longer, until one has outlasted that", async () => {
  let now = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now);
  const stillness = new Stillness();
  const isStillAt = async (time: number) => {
    now = time;
    await nextRound();
    return stillness.isStill();
  };
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  expect([await isStillAt(1), await isStillAt(1900), await isStillAt(2100)]).toEqual([false, false, true]);

  // It ends with its input.
  const cat = () => spawn("cat", { stdio: ["pipe", "ignore", "ignore"] });
  const child = cat();
  expect([await isStillAt(3000), await isStillAt(10_000), await isStillAt(30_000)]).toEqual([false, false, false]);
  child.stdin.end();
  await once(child, "close");
  while (!(await isStillAt(31_000)));

  const others = [cat()];
  expect([await isStillAt(40_000), await isStillAt(69_000), await isStillAt(71_000)]).toEqual([false, false, true]);
  others.push(cat());
  expect([await isStillAt(80_000), await isStillAt(81_900), await isStillAt(82_100)]).toEqual([false, false, true]);
  clock.mockRestore();
  for (const other of others) {
    other.stdin.end();
    await once(other, "close");
  }
  server.close();
  await once(server, "close");
});
