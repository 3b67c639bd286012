// A real disk that is full, or read-only: a small one in memory, mounted where only a child sees it.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { built, startChild } from "./child.ts";

const MOUNTING = ["unshare", "-Urm", "sh", "-c", 'mount -t tmpfs -o size=600k tmpfs /mnt && exec "$@"', "sh"] as const;
const [unshare, ...mounting] = MOUNTING;
const canMount = spawnSync(unshare, [...mounting, "true"]).status === 0;

const IMPORTS = `
  import { execFileSync } from "node:child_process";
  import { sqliteStore } from "${built("stores/sqlite/sqlite-store.js")}";
  import { creation, entry, newWorker } from "${built("testing/store-cases/case.js")}";
  const failure = (promise) => promise.then((kind) => kind, (error) => error.code + ": " + error.message);
`;

function onSmallDisk(code: string): Promise<string[]> {
  return startChild(`${IMPORTS}${code}`, MOUNTING).rest();
}

// Needs a kernel that lets a process have a mount of its own.
it.skipIf(!canMount)(
  "a full disk refuses commits, keeps what it has, and is used again as soon as there is room",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "pawl-disk-"));
    const lines = await onSmallDisk(`
    const store = sqliteStore("/mnt/pawl/pawl.db");
    await store.open();
    await store.register(newWorker("w1"));
    await store.commit({ worker: "w1", runs: [creation("r", { claimed: true })] });
    const data = "x".repeat(20_000);
    let head = 1;
    const write = async () => {
      const entries = [0, 1, 2].map((i) => entry(head + i, "step.completed", { data }));
      await store.commit({ worker: "w1", runs: [{ run: "r", head, entries }] });
      head += 3;
      return "applied";
    };
    let refused = "applied";
    while (refused === "applied") refused = await failure(write());
    say(refused);
    say(String((await store.journal("r")).length - head));
    say((await failure(store.deliver({ to: "r", id: "m", kind: "signal", name: "n", data: data.repeat(3) }))).split(":")[0]);
    say((await failure(write())).split(":")[0]);

    // What a crash would leave now, read by recovery.
    const copy = ${JSON.stringify(join(folder, "copy.db"))};
    for (const part of ["", "-wal"]) execFileSync("cp", ["/mnt/pawl/pawl.db" + part, copy + part]);
    const copied = sqliteStore(copy);
    await copied.open();
    say(String((await copied.journal("r")).length - head));
    await copied.close();

    execFileSync("mount", ["-o", "remount,size=10m", "/mnt"]);
    for (let i = 0; i < 20; i++) await write();
    say(String((await store.journal("r")).length - head));
    say(JSON.stringify((await store.inspect()).faults));
    await store.close();`);
    rmSync(folder, { recursive: true, force: true });
    expect(lines).toEqual([
      expect.stringMatching(/^storage_unavailable: .*\/mnt\/pawl\/pawl\.db .*disk is full.*Free some space/),
      "0",
      "storage_unavailable",
      "storage_unavailable",
      "0",
      "0",
      "[]",
    ]);
  },
);

// Needs a kernel that lets a process have a mount of its own.
it.skipIf(!canMount)("a disk that is read-only refuses to be opened, and says so", async () => {
  const lines = await onSmallDisk(`
    // Each in a process of its own, so that nothing holds the disk while it is mounted anew.
    const apart = (code) =>
      execFileSync(process.execPath, ["--input-type=module", "-e", ${JSON.stringify(IMPORTS)} + code], { encoding: "utf8" });
    apart(\`
      const store = sqliteStore("/mnt/pawl/pawl.db");
      await store.open();
      await store.commit({ worker: null, runs: [creation("r")] });
      await store.close();\`);
    execFileSync("mount", ["-o", "remount,ro", "/mnt"]);
    say(apart(\`console.log(await failure(sqliteStore("/mnt/pawl/pawl.db").open()));\`).trim());
    execFileSync("mount", ["-o", "remount,rw", "/mnt"]);
    say(apart(\`
      const store = sqliteStore("/mnt/pawl/pawl.db");
      await store.open();
      console.log((await store.run("r")).id);\`).trim());`);
  expect(lines).toEqual([
    expect.stringMatching(/^storage_unavailable: .*\/mnt\/pawl\/pawl\.db .*(read-only|cannot be opened)/),
    "r",
  ]);
});
