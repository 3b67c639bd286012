// Who holds the write lock of a SQLite file, where the system tells (Linux).
// A stopped or hung process keeps it for ever, and nothing in SQLite says whose it is (P30).
import { readFileSync, statSync } from "node:fs";

/** SQLite in WAL mode: the writer holds this byte of the shared-memory file. */
const WRITE_LOCK_BYTE = 120;

export interface LockHolder {
  readonly pid: number;
  /** Stopped by a signal or a debugger: it will not let go by itself. */
  readonly isStopped: boolean;
}

export function lockHolders(path: string): LockHolder[] {
  try {
    const inode = statSync(`${path}-shm`).ino;
    return pidsOf(readFileSync("/proc/locks", "utf8"), inode).map((pid) => ({ pid, isStopped: isStopped(pid) }));
  } catch {
    return [];
  }
}

export function describeHolders(path: string): string {
  const holders = lockHolders(path).filter(({ pid }) => pid !== process.pid);
  return holders
    .map(({ pid, isStopped }) => ` Process ${pid} holds the lock${isStopped ? " and is stopped" : ""}.`)
    .join("");
}

// A line reads "7: POSIX  ADVISORY  WRITE 4711 fe:00:123456 120 120": kind, pid, device and inode, first and last byte.
function pidsOf(locks: string, inode: number): number[] {
  const pids = locks.split("\n").flatMap((line) => {
    const [, , , mode, pid, file, first, last] = line.split(/\s+/);
    const isThisFile = file?.endsWith(`:${inode}`) ?? false;
    const isWriter = mode === "WRITE" && Number(first) <= WRITE_LOCK_BYTE && Number(last) >= WRITE_LOCK_BYTE;
    return isThisFile && isWriter && Number(pid) > 0 ? [Number(pid)] : [];
  });
  return [...new Set(pids)];
}

function isStopped(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name before the state may itself contain spaces and brackets.
    return /^[Tt]/.test(stat.slice(stat.lastIndexOf(")") + 2));
  } catch {
    return false;
  }
}
