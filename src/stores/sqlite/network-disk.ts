import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { PawlError } from "../../base/errors.ts";

// Linux's magic numbers of the file systems that keep their files on another machine.
const NETWORK_DISKS: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB2"],
  [0x5346414f, "AFS"],
]);

/** WAL needs memory shared between the processes, which no network disk gives: two machines would corrupt the file. */
export function refuseNetworkDisk(
  path: string,
  typeOf: (folder: string) => number = (folder) => statfsSync(folder).type,
): void {
  const name = process.platform === "linux" ? NETWORK_DISKS.get(typeOf(dirname(path))) : undefined;
  if (name === undefined) return;
  throw new PawlError(
    "storage_unavailable",
    `The database ${path} lies on a network disk (${name}), where SQLite is not safe. Put it on a local disk, or use PostgreSQL.`,
    { fields: { path, disk: name } },
  );
}
