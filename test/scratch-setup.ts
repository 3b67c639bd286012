// The files of tests are kept in memory where the system has room for them: to make and to remove them on a disk takes longer than what most tests
// do with them. They are synced as ever; what a disk keeps when the power goes is shown by scripts/power-loss.mjs. Whoever has set TMPDIR has it.
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";

const MEMORY = "/dev/shm";
const NAME = "pawl-tests-";
/** Several times what all tests that run at once have ever used. */
const NEEDED_BYTES = 4 * 1024 ** 3;

export default function setup(): () => void {
  if (process.env["TMPDIR"] !== undefined || !hasRoom()) return () => {};
  removeOfDead();
  const folder = mkdtempSync(join(MEMORY, `${NAME}${process.pid}-`));
  chmodSync(folder, 0o755); // Run by root, PostgreSQL is another user.
  process.env["TMPDIR"] = folder;
  return () => {
    delete process.env["TMPDIR"];
    rmSync(folder, { recursive: true, force: true });
  };
}

function hasRoom(): boolean {
  if (!existsSync(MEMORY)) return false;
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize >= NEEDED_BYTES;
}

/** What was killed has left its files: they would fill the memory. */
function removeOfDead(): void {
  for (const name of readdirSync(MEMORY)) {
    const [, pid] = /^pawl-tests-(\d+)-/.exec(name) ?? [];
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(MEMORY, name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
