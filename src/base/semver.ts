import { PawlError } from "./errors.ts";

export interface Version {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
}

// Nine digits fit a database's 32-bit integer. Pre-release tags are out: two of them have no rule for resuming a run.
const VERSION = /^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})$/;

/** Reads "1.2.3". `field` names the place of the text in the error. */
export function parseVersion(text: string, field = "version"): Version {
  const match = typeof text === "string" ? VERSION.exec(text) : null;
  if (match === null) {
    const shown = typeof text === "string" ? JSON.stringify(text.slice(0, 60)) : String(text);
    throw new PawlError(
      "invalid_argument",
      `${field} ${shown} is not a version. Write major.minor.patch, three numbers without leading zeros, such as "1.0.0".`,
      { fields: { field, value: shown } },
    );
  }
  return { major: Number(match[1]), minor: Number(match[2]), patch: Number(match[3]) };
}

export function isVersion(value: unknown): boolean {
  return typeof value === "string" && VERSION.test(value);
}

export function formatVersion({ major, minor, patch }: Version): string {
  return `${major}.${minor}.${patch}`;
}

/** Below 0 if `a` is older than `b`, above 0 if it is newer. */
export function compareVersions(a: Version, b: Version): number {
  return a.major - b.major || a.minor - b.minor || a.patch - b.patch;
}

/** True for versions that differ in their patch at most. */
export function sameMinor(a: Version, b: Version): boolean {
  return a.major === b.major && a.minor === b.minor;
}

/** True if going from one to the other changes the patch, upwards: what a run may do by itself (P34). */
export function isPatchUpgrade(from: Version, to: Version): boolean {
  return sameMinor(from, to) && to.patch > from.patch;
}
