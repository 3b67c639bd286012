// A real disk that is full, or read-only: a small one in memory, mounted where only a child sees it.

import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { built, startChild } from "./child.ts";

const canMount = spawnSync("unshare", ["-Urm", "sh", "-c", "mount -t tmpfs tmpfs /mnt"]).status === 0;

const PRELUDE = `
  import { execFileSync } from "node:child_process";
  import { sqliteStore } from "${built("stores/sqlite/sqlite-store.js")}";
  import { appending, creation, entry, newWorker } from "${built("testing/store-cases/case.js")}";
  const remount = (options) => execFileSync("mount", ["-o", "remount," + options, "/mnt"]);
  const store = sqliteStore("/mnt/pawl/pawl.db");
  await store.open();
  await store.register(newWorker("w1"));
  await store.commit({ worker: "w1", runs: [creation("r", { claimed: true })] });
  const big = "x".repeat(20_000);
  let head = 1;
  const write = async () => {
    const [verdict] = await store.commit({ worker: "w1", runs: [{ run: "r", head, entries: [entry(head, "step.completed", { data: big })] }] });
    head += 1;
    return verdict.kind;
  };
  const failure = (promise) => promise.then((kind) => kind, (error) => error.code + ": " + error.message);
`;

function onSmallDisk(code: string): Promise<string[]> {
  const mount = ["unshare", "-Urm", "sh", "-c", 'mount -t tmpfs -o size=600k tmpfs /mnt && exec "$@"', "sh"];
  return startChild(`${PRELUDE}${code}`, mount).rest();
}

// Needs a kernel that lets a process have a mount of its own.
it.skipIf(!canMount)("a full disk refuses commits, keeps what it has, and is used again as soon as there is room", async () => {
  const lines = await onSmallDisk(`
    let refused;
    while (refused === undefined) {
      const answer = await failure(write());
      if (answer !== "applied") refused = answer;
    }
    say(refused);
    const written = (await store.journal("r")).length;
    say(String(written === head));
    say((await failure(store.deliver({ to: "r", id: "m", kind: "signal", name: "n", data: big }))).split(":")[0]);
    say((await failure(write())).split(":")[0]);
    remount("size=10m");
    for (let i = 0; i < 20; i++) await write();
    say(String((await store.journal("r")).length === written + 20));
    say(JSON.stringify((await store.inspect()).faults));
    await store.close();`);
  expect(lines).toEqual([
    expect.stringMatching(/^storage_unavailable: .*\/mnt\/pawl\/pawl\.db .*disk is full.*Free some space/),
    "true",
    "storage_unavailable",
    "storage_unavailable",
    "true",
    "[]",
  ]);
});

// Needs a kernel that lets a process have a mount of its own.
it.skipIf(!canMount)("a disk that becomes read-only refuses commits by name, and an unwritable one refuses to open", async () => {
  const lines = await onSmallDisk(`
    await write();
    await store.close();
    remount("ro");
    const again = sqliteStore("/mnt/pawl/pawl.db");
    say(await failure(again.open()));
    remount("rw");
    await again.open();
    say(String((await again.journal("r")).length));
    await again.close();`);
  expect(lines).toEqual([expect.stringMatching(/^storage_unavailable: .*\/mnt\/pawl\/pawl\.db .*(read-only|cannot be opened)/), "2"]);
});
