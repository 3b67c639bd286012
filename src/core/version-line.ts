import { isVersion, parseVersion } from "../base/semver.ts";
import type { Handle } from "./store.ts";

/** Versions of one line differ in their patch only; a worker runs every patch of its line up to its own (P34). */
export interface VersionLine {
  readonly line: string;
  readonly patch: number;
}

export function versionLine(version: string): VersionLine {
  if (last !== null && version === last.version) return last;
  const { major, minor, patch } = parseVersion(version);
  last = { version, line: `${major}.${minor}`, patch };
  return last;
}

// Runs that are started one after the other are mostly of one version.
let last: (VersionLine & { readonly version: string }) | null = null;

/** Whether a worker with these handles may claim a run of this workflow and version. */
export function isHandled(handles: readonly Handle[], workflow: string, version: string): boolean {
  return handles.some((handle) => handle.workflow === workflow && covers(handle, version));
}

function covers(handle: Handle, version: string): boolean {
  if (handle.policy === "ignore") return true;
  // In a damaged row it may be anything, which nobody runs.
  if (last?.version !== version && !isVersion(version)) return false;
  const ours = versionLine(handle.version);
  const run = versionLine(version);
  if (ours.line !== run.line) return false;
  return handle.policy === "exact" ? run.patch === ours.patch : run.patch <= ours.patch;
}
