import { PawlError } from "../../base/errors.ts";
import { editedMessage } from "./holdings.ts";
import type { DamagedDocument, EditedDocument } from "./read-document.ts";

/** Why nothing can be done with this run. */
export function blockedError(found: EditedDocument | DamagedDocument): PawlError {
  if (found.kind === "damaged") return found.error;
  const { run, file } = found;
  return new PawlError("invalid_state_document", editedMessage(run, file), {
    fields: { run, file, path: "checksum", allowed: "the checksum of the document" },
  });
}
