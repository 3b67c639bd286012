import { audited } from "../client/audited.ts";
import type { Pawl } from "../client/pawl.ts";
import type { Call } from "./command.ts";
import { operatorOf } from "./operator.ts";

/** Does what changes something, with a record of it in the audit log: by whoever is named with --by, or the user of this machine. */
export function recorded<T>(
  { options, out, command, given }: Call<object>,
  pawl: Pawl,
  subject: string,
  work: () => Promise<T>,
): Promise<T> {
  const { by, from = "" } = operatorOf(command.replace(/^pawl /, ""), (options as { readonly by?: string }).by);
  const deed = { who: by, action: command, subject, from, payload: given };
  return audited(pawl.store, deed, work, (message) => out.note(out.noteColor.yellow(message)));
}
