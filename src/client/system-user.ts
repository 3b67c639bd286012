import { userInfo } from "node:os";
import { isName } from "../base/ids.ts";

/** The user of this process, as people know them. */
export function systemUser(): string {
  try {
    const { username } = userInfo();
    return isName(username) ? username : "local";
  } catch {
    // A user without an entry in the system's list, as in some containers.
    return "local";
  }
}
