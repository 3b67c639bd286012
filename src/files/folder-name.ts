import { hash } from "node:crypto";

/** Names that mean a device on some system, with whatever follows a dot. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/;
const PLAIN = /^[a-z0-9][a-z0-9._-]{0,79}$/;

/**
 * The name of a run's folder, for its document and for its output files. An id that every file system keeps as it is stands for itself; any other one is shortened to what can be read of it
 * and told apart by its digest, behind a sign that no plain name has: ids that differ in case or in accents only never share a folder.
 */
export function folderName(id: string): string {
  if (PLAIN.test(id) && !DEVICE.test(id) && !id.endsWith(".")) return id;
  const readable = id
    .toLowerCase()
    .slice(0, 40)
    .replaceAll(/[^a-z0-9]+/g, "-");
  return `${readable}~${hash("sha256", id, "hex").slice(0, 32)}`;
}
