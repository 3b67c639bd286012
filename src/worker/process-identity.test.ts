import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { expect, it, vi } from "vitest";
import { isPlainlyDead, processIdentity } from "./process-identity.ts";

/** Files that cannot be seen, as under `hidepid`. */
const hidden = vi.hoisted(() => new Set<unknown>());
vi.mock("node:fs", async (importOriginal) => {
  const fs = await importOriginal<typeof import("node:fs")>();
  const readFileSync = (path: string, options: "utf8") => {
    if (hidden.has(path)) throw Object.assign(new Error("ENOENT"), { code: "ENOENT" });
    return fs.readFileSync(path, options);
  };
  return { ...fs, readFileSync };
});

const mine = processIdentity();

/** The pid of a process that has ended and was reaped. */
function endedPid(): number {
  return spawnSync(process.execPath, ["-e", ""]).pid;
}

it("P27 knows this process, and knows it the same every time", () => {
  expect(mine.pid).toBe(process.pid);
  expect(mine.boot).not.toBe("");
  expect(processIdentity()).toEqual(mine);
});

it("P27 a living process is not dead: this one, another one, and one that belongs to somebody else", async () => {
  expect(isPlainlyDead(mine, mine)).toBe(false);
  expect(isPlainlyDead({ ...mine, pid: 1, startedAt: null }, mine)).toBe(false);
  const child = spawn(process.execPath, ["-e", "process.stdin.resume()"], { stdio: ["pipe", "ignore", "ignore"] });
  await once(child, "spawn");
  expect(isPlainlyDead({ ...mine, pid: child.pid ?? 0, startedAt: null }, mine)).toBe(false);
  child.stdin.end();
  await once(child, "exit");
});

it("P27 a process that this one may not send a signal to is there", () => {
  const kill = vi.spyOn(process, "kill").mockImplementation(() => {
    throw Object.assign(new Error("EPERM"), { code: "EPERM" });
  });
  try {
    expect(isPlainlyDead({ ...mine, startedAt: null }, mine)).toBe(false);
  } finally {
    kill.mockRestore();
  }
});

// Only Linux tells the start time of a process.
it.skipIf(mine.startedAt === null)("P27 a living process whose /proc entry is hidden from us is not dead", async () => {
  const child = spawn(process.execPath, ["-e", "process.stdin.resume()"], { stdio: ["pipe", "ignore", "ignore"] });
  await once(child, "spawn");
  const other = { ...mine, pid: child.pid ?? 0, startedAt: "1" };
  expect(isPlainlyDead(other, mine)).toBe(true);
  hidden.add(`/proc/${child.pid}/stat`);
  expect(isPlainlyDead(other, mine)).toBe(false);
  child.stdin.end();
  await once(child, "exit");
  expect(isPlainlyDead(other, mine)).toBe(true);
});

it("P27 a pid that nobody has is dead", () => {
  expect(isPlainlyDead({ ...mine, pid: endedPid() }, mine)).toBe(true);
});

// Only Linux tells the start time of a process.
it.skipIf(mine.startedAt === null)("P27 a pid that another process has got since is dead", () => {
  expect(isPlainlyDead({ ...mine, startedAt: "1" }, mine)).toBe(true);
  expect(isPlainlyDead({ ...mine, startedAt: null }, mine)).toBe(false);
});

it("P27 about another pid namespace nothing is known", () => {
  const other = { ...mine, pidNamespace: "pid:[other]" };
  expect(isPlainlyDead({ ...other, pid: endedPid() }, mine)).toBe(false);
  expect(isPlainlyDead({ ...other, startedAt: "1" }, mine)).toBe(false);
});

it("P29 a process of another boot is left to the store, which knows whether it is another machine", () => {
  expect(isPlainlyDead({ ...mine, boot: "another" }, mine)).toBe(false);
  expect(isPlainlyDead({ ...mine, boot: "another", pid: endedPid() }, mine)).toBe(false);
});
