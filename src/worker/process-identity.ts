// Who this process is, and whether another one is plainly dead (P27)
// A pid alone says little: pids are used again, and in another container they are other processes. Together with the start of the
// machine, the pid namespace and the start time it says enough to take over at once instead of waiting for the lease.
import { readFileSync, readlinkSync } from "node:fs";
import { uptime } from "node:os";
import { isSameBoot } from "../base/boot.ts";
import type { ProcessIdentity } from "../core/store.ts";

export function processIdentity(): ProcessIdentity {
  ownFacts ??= readOwnFacts();
  const { bootId, ...facts } = ownFacts;
  return { pid: process.pid, ...facts, boot: bootId ?? `t:${Math.round(Date.now() / 1000 - uptime())}` };
}

/** What the system says of this process: it stays the same for as long as the process lives, so it is asked once. */
let ownFacts: ReturnType<typeof readOwnFacts> | null = null;

function readOwnFacts() {
  return {
    startedAt: startTime("self"),
    bootId: orNull(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()),
    pidNamespace: orNull(() => readlinkSync("/proc/self/ns/pid")),
  };
}

/**
 * True only if the other process surely has ended. A missing `/proc` entry is no proof (it may be hidden from us), nor is anything
 * about a process of another pid namespace: those are left to the lease.
 */
export function isPlainlyDead(other: ProcessIdentity, mine: ProcessIdentity): boolean {
  // Another boot may be another machine: whether that means dead, the store says with the lease.
  if (!isSameBoot(other.boot, mine.boot)) return false;
  if (other.pidNamespace !== mine.pidNamespace) return false;
  if (isGone(other.pid)) return true;
  const startedAt = startTime(other.pid);
  return startedAt !== null && other.startedAt !== null && startedAt !== other.startedAt;
}

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    // Anything else, such as EPERM, comes from a process that is there.
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
}

/** In clock ticks since the machine started: the 22nd field, counted after the name, which may itself hold spaces. */
function startTime(pid: number | "self"): string | null {
  return orNull(() => {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null;
  });
}

function orNull<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
