// Every command against a PostgreSQL store: it works, and nothing that it prints holds the password.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { begin, hosted, project, type Result } from "./fixtures/cli/command.ts";
import { postgresUrl } from "./fixtures/cli/postgres-url.ts";

let folder = "";
let store = "";
let password = "";

beforeEach(() => {
  folder = project();
  store = postgresUrl();
  password = new URL(store).password;
  expect(password.length).toBeGreaterThan(5);
});

const command = (...args: string[]): Promise<Result> => hosted(folder, args);

async function pawl(...args: string[]): Promise<Result> {
  const result = await command(...args, "--store", store);
  expect(result.stdout + result.stderr).not.toContain(password);
  return result;
}

const input = (id: string, ...plan: string[]) => JSON.stringify({ id, plan });
const order = (id: string, ...plan: string[]) =>
  pawl("run", "shop.ts", "order", input(id, ...plan), "--id", id, "--no-wait");

describe("pawl --store postgres://…", () => {
  it("runs, starts, lists and explains", async () => {
    expect(await order("o1")).toMatchObject({ code: 0, stdout: expect.stringContaining('"items": 3') });
    expect(await order("o2", "approve")).toMatchObject({ code: 4 });
    const started = await pawl("start", "order", input("o3"), "--id", "o3", "--version", "1.0.0");
    expect(started).toMatchObject({ code: 0, stdout: "o3\n" });
    expect(started.stderr).toMatch(
      /No live worker has order 1\.0\.0.*--store postgres:\/\/…@127\.0\.0\.1:\d+\/postgres\?schema=cli_/,
    );
    const [all, waiting, shown, journal, why] = await Promise.all([
      pawl("ls"),
      pawl("ls", "--status", "waiting"),
      pawl("show", "o1"),
      pawl("journal", "o1"),
      pawl("why", "o2"),
    ]);
    expect(all.stdout).toMatch(/^o3 [\s\S]*^o2 [\s\S]*^o1 /m);
    expect(waiting.stdout).not.toContain("o1");
    expect(shown.stdout).toContain("fetch");
    expect(journal.stdout).toContain("step.completed");
    expect(why.stdout).toMatch(/waits for signal "approved"/);
  });

  it("doctor and workers tell which database it is; backup says what to use instead", async () => {
    await order("o1");
    const doctor = await pawl("doctor");
    expect(doctor).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^store +postgres \S+.*, postgres:\/\/…@/m),
    });
    expect(doctor.stdout).toMatch(/fsync on/);
    expect((await pawl("doctor", "--json")).stdout).toContain('"isHealthy":true');
    expect((await pawl("workers")).stderr).toMatch(/^No worker\. .*--store postgres:\/\/…@/);
    expect(await pawl("backup", "copy.db")).toMatchObject({ code: 2, stderr: expect.stringContaining("pg_dump") });
  });

  it("signals and cancels", async () => {
    await Promise.all([order("o1", "approve"), order("o2", "approve")]);
    const [signalled, cancelled] = await Promise.all([pawl("signal", "o1", "approved"), pawl("cancel", "o2")]);
    expect([signalled.code, cancelled.code]).toEqual([0, 0]);
    expect((await pawl("run", "shop.ts", "order", "--id", "o1")).code).toBe(0);
  });

  it("retries and forks", async () => {
    expect((await order("o1", "fail")).code).toBe(1);
    const [retried, forked] = await Promise.all([pawl("retry", "o1"), pawl("fork", "o1", "--at", "fetch")]);
    for (const { stdout, stderr } of [retried, forked]) {
      expect(stdout).toMatch(/goes on from run o1/);
      expect(stderr).toMatch(/--store postgres:\/\/…@/);
    }
  });

  it("parks and resolves", async () => {
    const run = begin(folder, ["run", "shop.ts", "order", input("o1", "pay"), "--id", "o1", "--store", store]);
    await run.line(/▸ pay {2}running/);
    run.kill("SIGKILL");
    await run.ended;
    expect(await pawl("run", "shop.ts", "order", "--id", "o1")).toMatchObject({
      code: 4,
      stderr: expect.stringContaining("pawl resolve o1 complete"),
    });
    expect((await pawl("resolve", "o1", "complete", "--value", "1")).code).toBe(0);
    expect((await pawl("run", "shop.ts", "order", "--id", "o1")).code).toBe(0);
  });

  it("exports and replays", async () => {
    await order("o1");
    expect((await pawl("export", "o1", "--out", "o1.json")).code).toBe(0);
    expect(readFileSync(join(folder, "o1.json"), "utf8")).not.toContain(password);
    expect((await pawl("replay", "o1.json", "shop.ts")).code).toBe(0);
  });

  it("a worker says where it works, and init and test need no store", async () => {
    const worker = begin(folder, ["worker", "shop.ts", "--store", store]);
    expect(await worker.line(/^Working on/)).toMatch(
      /in postgres:\/\/…@127\.0\.0\.1:\d+\/postgres\?schema=cli_\S+ \(pid/,
    );
    worker.kill("SIGTERM");
    const { code, stdout, stderr } = await worker.ended;
    expect(code).toBe(0);
    expect(stdout + stderr).not.toContain(password);
    expect((await pawl("init", "other")).code).toBe(2);
    expect(
      (
        await pawl(
          "test",
          "--crash-everywhere",
          "shop.ts",
          "order",
          "--input",
          input("o1"),
          "--at",
          "2",
          "--no-processes",
        )
      ).code,
    ).toBe(0);
  });

  it.each([
    ["a database that is not there", { pathname: "/nowhere" }, 5, /Create the database/],
    ["a wrong password", { password: "wrong-one" }, 5, /Check user and password/],
    ["a server that is not there", { port: "1" }, 5, /Check that it runs and can be reached/],
  ])("%s is told with what to do", async (_, change, code, message) => {
    const url = Object.assign(new URL(store), change);
    for (const args of [["ls"], ["worker", "shop.ts"], ["ls", "--json"]]) {
      const result = await command(...args, "--store", url.href);
      expect(result).toMatchObject({ code, stderr: expect.stringMatching(message) });
      expect(result.stderr).not.toMatch(/wrong-one|This is a fault in Pawl/);
      expect(result.stdout + result.stderr).not.toContain(password);
    }
  });

  it("a URL that cannot be read is bad usage, and is not printed with its password", async () => {
    for (const secret of ["s#cret", "s/cret", "s?cret"]) {
      const result = await command("ls", "--store", `postgres://ada:${secret}@db.example.com/app`);
      expect(result).toMatchObject({ code: 2, stderr: expect.stringContaining("%XX") });
      expect(result.stderr).not.toContain("cret");
    }
  });
});
