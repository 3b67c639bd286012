import { hostname } from "node:os";
import { audited } from "../client/audited.ts";
import type { Pawl } from "../client/pawl.ts";
import { systemUser } from "../client/system-user.ts";
import type { Call } from "./command.ts";

/** Does what changes something, with a record of it in the audit log: by whoever is named with --by, or the user of this machine. */
export function recorded<T>(
  { options, out, command, given }: Call<object>,
  pawl: Pawl,
  subject: string,
  work: () => Promise<T>,
): Promise<T> {
  const { by } = options as { readonly by?: string };
  const user = systemUser();
  const deed = {
    who: by ?? user,
    action: command,
    subject,
    from: `pawl on ${hostname()}`,
    payload: given,
    detail: { user },
  };
  return audited(pawl.store, deed, work, (message) => out.note(out.noteColor.yellow(message)));
}
