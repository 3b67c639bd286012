// Guards in the engine: crashed at every point, and undone.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { workflow } from "pawl";
import {
  comment,
  contentOf,
  createIfAbsent,
  gitCommit,
  insertOnce,
  notifyOnce,
  repeatable,
  writeFile,
} from "pawl/guards";
import { crashEverywhere, recorder, testEngine } from "pawl/testing";
import { expect, it } from "vitest";
import { loadDriver } from "../../src/stores/sqlite/driver.ts";
import { tempFolder } from "./lost-record.ts";
import { Repository } from "./repository.ts";

/** A service that knows no keys: what is asked of it twice happens twice. */
const outside = recorder();
const itemsOf = (name: string) =>
  outside.effects.filter((one) => one.name === name).map(({ details }) => String(details));
const add = (name: string, item: string) => {
  outside.record(name, item);
  return item;
};

const guarded = workflow("guarded", async (ctx) => {
  await ctx.effect(
    "say",
    comment({ list: () => itemsOf("comment"), post: (text) => add("comment", text), text: "Hi" }),
  );
  const job = { find: () => itemsOf("job")[0], create: () => add("job", "nightly") };
  await ctx.effect("schedule", createIfAbsent(job));
  const isOf = (key: string) => (item: string) => item === key;
  const mail = { sent: (key: string) => itemsOf("mail").find(isOf(key)), send: (key: string) => add("mail", key) };
  await ctx.effect("thank", notifyOnce(mail));
});

const unguarded = workflow("unguarded", async (ctx) => {
  await ctx.effect(
    "say",
    repeatable(() => add("comment", "Hi")),
  );
  await ctx.effect(
    "schedule",
    repeatable(() => add("job", "nightly")),
  );
  await ctx.effect(
    "thank",
    repeatable(({ key }) => add("mail", key)),
  );
});

it("S0-27 S0-32 S0-33 crashed at every point, each guarded effect happens once", async () => {
  const report = await crashEverywhere(guarded, undefined, { recorder: outside });
  expect(report.ok, report.toString()).toBe(true);
  expect(report.explored).toBeGreaterThan(10);
});

it("S0-34 crashed at every point, each unguarded effect happens twice", async () => {
  const report = await crashEverywhere(unguarded, undefined, { recorder: outside });
  const repeated = new Set(report.failures.map(({ step }) => step));
  expect(repeated).toEqual(new Set(["say", "schedule", "thank"]));
});

it("X-27 a run that fails takes its file, its commit and its row back", async () => {
  const folder = tempFolder();
  const page = join(folder, "page.html");
  writeFileSync(page, "old");
  const repository = new Repository();
  repository.commit("Begin");
  repository.write("page.html", "v1");
  const db = loadDriver().open(":memory:");
  db.exec("create table bookings (key text unique, room integer)");
  const failing = workflow("failing", async (ctx) => {
    const before = await ctx.step("before", () => contentOf(page));
    await ctx.effect("write", writeFile(page, "new", { before }));
    const made = await ctx.effect(
      "commit",
      gitCommit({ cwd: repository.cwd, message: "Publish", paths: ["page.html"], undo: true }),
    );
    const booking = { db, table: "bookings", keyColumn: "key", row: { room: 12 }, undo: true };
    await ctx.effect("book", insertOnce(booking));
    await ctx.step("look", () => {
      const rows = db.prepare("select key from bookings").all();
      expect([readFileSync(page, "utf8"), made.commit, rows]).toEqual([
        "new",
        repository.head,
        [{ key: expect.any(String) }],
      ]);
    });
    throw new Error("too late");
  });
  const engine = await testEngine({ workflows: [failing] });
  const run = await engine.start(failing);
  await expect(run.result()).rejects.toThrow("too late");
  expect((await run.effects()).map(({ effect, status }) => [effect, status])).toEqual([
    ["write", "compensated"],
    ["commit", "compensated"],
    ["book", "compensated"],
  ]);
  expect(readFileSync(page, "utf8")).toBe("old");
  expect(repository.git("log", "-1", "--format=%s")).toBe('Revert "Publish"');
  expect(existsSync(join(repository.cwd, "page.html"))).toBe(false);
  expect(db.prepare("select * from bookings").all()).toEqual([]);
  await engine.close();
  db.close();
});
