// Where the system gives a start of the machine no id, its time stands for it, as "t:<seconds>". It is computed from the wall
// clock, which may have been set in between; two starts of a machine lie further apart than this.
const TOLERANCE_S = 120;
const BOOT_TIME = /^t:(-?\d+)$/;

/** True if two boot ids name the same start of the same machine. */
export function isSameBoot(a: string, b: string): boolean {
  if (a === b) return true;
  const [, first] = BOOT_TIME.exec(a) ?? [];
  const [, second] = BOOT_TIME.exec(b) ?? [];
  if (first === undefined || second === undefined) return false;
  return Math.abs(Number(first) - Number(second)) <= TOLERANCE_S;
}
