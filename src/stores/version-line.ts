import type { Handle } from "../core/store.ts";
import { type VersionLine, versionLine } from "../core/version-line.ts";

export { isHandled, versionLine } from "../core/version-line.ts";

/** Stands for the lines of all versions. */
const ANY_LINE = "*";

/** What claims in SQL ask with: a line up to a patch, one patch of a line ("1.3="), or everything. */
export function claimedLine({ version, policy }: Pick<Handle, "version" | "policy">): VersionLine {
  const { line, patch } = versionLine(version);
  if (policy === "ignore") return { line: ANY_LINE, patch };
  return policy === "exact" ? { line: `${line}=`, patch } : { line, patch };
}

/** Whether a run in table `runs` is covered by what `claimedLine` gave, as SQL. */
export function isClaimedSql(handle: string): string {
  return `(${handle}.line = runs.line and runs.patch <= ${handle}.patch
      or ${handle}.line = runs.line || '=' and runs.patch = ${handle}.patch or ${handle}.line = '${ANY_LINE}')`;
}
