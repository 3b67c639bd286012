import { expect, it } from "vitest";
import { refuseNetworkDisk } from "./network-disk.ts";

const EXT4 = 0xef53;

// Only Linux tells what kind of file system a folder is on.
it.skipIf(process.platform !== "linux").each([
  ["NFS", 0x6969],
  ["SMB", 0x517b],
  ["CIFS", 0xff534d42],
  ["SMB2", 0xfe534d42],
])("B72 a file on %s is refused, with its name and what to do", (disk, type) => {
  const asked: string[] = [];
  const typeOf = (folder: string) => {
    asked.push(folder);
    return type;
  };
  expect(() => refuseNetworkDisk("/mnt/share/pawl.db", typeOf)).toThrow(
    expect.objectContaining({
      code: "storage_unavailable",
      message: expect.stringMatching(`/mnt/share/pawl.db lies on a network disk \\(${disk}\\).*local disk`),
      fields: { path: "/mnt/share/pawl.db", disk },
    }),
  );
  expect(asked).toEqual(["/mnt/share"]);
});

it("B72 a local disk is accepted", () => {
  expect(() => refuseNetworkDisk("/srv/pawl.db", () => EXT4)).not.toThrow();
});
