import { hostname, userInfo } from "node:os";
import type { AuditedBy } from "../client/audit.ts";

/** Who gives this command, for the audit log: the user of this machine, unless somebody is named. */
export function operatorOf(command: string, by?: string): AuditedBy {
  return { by: by ?? userName(), from: `pawl ${command} on ${hostname()}` };
}

/** A user without an entry in the system's list still has a number. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? "unknown"}`;
  }
}
