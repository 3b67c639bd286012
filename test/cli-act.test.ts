import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { errorOf, hosted, json, pawl, project } from "./fixtures/cli/command.ts";
import { seed } from "./fixtures/cli/seed.ts";

interface Entry {
  readonly type: string;
  readonly payload: { readonly payload?: unknown; readonly reason?: string };
}

const goOn = (folder: string, id: string) =>
  hosted(folder, ["run", "shop.ts", "order", "--id", id, "--no-wait", "--json"]);
const journal = (folder: string, id: string) => json<Entry[]>(folder, "journal", id);

describe("pawl signal", () => {
  it("X-17 delivers a signal once for its id, however often it is sent", async () => {
    const folder = project();
    await seed(folder, { o1: ["approve", "approve"] });
    const text = await pawl(folder, "signal", "o1", "approved", '{"by":"Ada"}', "--id", "mail-1");
    expect(text).toMatchObject({ code: 0, stdout: 'Signal "approved" is recorded for run o1.\n' });
    expect(await json(folder, "signal", "o1", "approved", '{"by":"Ada"}', "--id", "mail-1")).toEqual({
      run: "o1",
      signal: "approved",
    });
    expect((await goOn(folder, "o1")).code).toBe(4);
    expect((await pawl(folder, "signal", "o1", "approved", "--id", "mail-1")).code).toBe(0);
    expect((await goOn(folder, "o1")).code).toBe(4);
    await pawl(folder, "signal", "o1", "approved", "--id", "mail-2");
    expect((await goOn(folder, "o1")).code).toBe(0);
    const received = (await journal(folder, "o1")).filter(({ type }) => type === "signal.received");
    expect(received.map(({ payload }) => payload.payload ?? null)).toEqual([{ by: "Ada" }, null]);
  });

  it("Q5 refuses a run that has ended, a bad name, an id of another message and a bad payload", async () => {
    const folder = project();
    await seed(folder, { done: [] });
    await seed(folder, { open: ["approve"] });
    const late = await pawl(folder, "signal", "done", "approved", "--json");
    expect({ code: late.code, error: errorOf(late).code }).toEqual({ code: 2, error: "run_ended" });
    expect(await pawl(folder, "signal", "open", "a/b")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('signal name "a/b"'),
    });
    for (const id of ["approval:a", "callback:c", "child:o1", "decision-3", "advance-1-9"]) {
      const own = await pawl(folder, "signal", "open", "approved", "--id", id, "--json");
      expect([own.code, errorOf(own).code], id).toEqual([2, "invalid_name"]);
    }
    expect(await pawl(folder, "signal", "open", "approved", "yes")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("PAYLOAD is not JSON"),
    });
  });
});

describe("pawl cancel", () => {
  it("X-17 cancels a run that nobody works on, and says the same when asked again", async () => {
    const folder = project();
    await seed(folder, { o1: ["approve"] });
    expect(await pawl(folder, "cancel", "o1", "--reason", "ordered twice")).toMatchObject({
      code: 0,
      stdout: "Run o1 is cancelled.\n",
    });
    expect(await json(folder, "cancel", "o1")).toEqual({ run: "o1", outcome: "cancelled" });
    expect((await journal(folder, "o1")).find(({ type }) => type === "run.cancelling")?.payload.reason).toBe(
      "ordered twice",
    );
    expect((await goOn(folder, "o1")).code).toBe(1);
  });

  it("tells how the run had ended before", async () => {
    const folder = project();
    await seed(folder, { o1: [] });
    expect(await pawl(folder, "cancel", "o1")).toMatchObject({
      code: 0,
      stdout: "Run o1 had already succeeded; nothing was cancelled.\n",
    });
  });
});

describe("pawl retry and pawl fork", () => {
  it("S2-66 retry goes on where the run stopped, in a new run", async () => {
    const folder = project();
    await seed(folder, { o1: ["fail"] });
    const { run: retried, from } = await json<{ run: string; from: string }>(folder, "retry", "o1");
    expect(from).toBe("o1");
    expect((await goOn(folder, retried)).code).toBe(1);
    expect(readFileSync(join(folder, "effects.log"), "utf8")).toBe("fetch o1\ncharge o1\ncharge o1\n");
    expect((await pawl(folder, "show", retried)).stdout).toContain("inherits  the journal of o1");
  });

  it("S2-66 fork goes on before a step or an entry", async () => {
    const folder = project();
    await seed(folder, { o1: ["fail"] });
    const text = await pawl(folder, "fork", "o1", "--at", "charge");
    expect(text).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Run \S+ goes on from run o1\.\n$/) });
    expect(text.stderr).toContain("No live worker has order 1.0.0");
    const { run: forked } = await json<{ run: string }>(folder, "fork", "o1", "--at", "2");
    expect((await goOn(folder, forked)).code).toBe(1);
    expect(readFileSync(join(folder, "effects.log"), "utf8").match(/fetch/g)).toHaveLength(2);
  });

  it("refuse what makes no sense, and name what would", async () => {
    const folder = project();
    await seed(folder, { o1: [] });
    expect(await pawl(folder, "retry", "o1")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("nothing to retry"),
    });
    expect(await pawl(folder, "fork", "o1", "--at", "nope")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("one of its keys: fetch"),
    });
    expect(await pawl(folder, "resolve", "o1", "retry")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("not parked"),
    });
  });
});

describe("pawl backup", () => {
  it("writes a copy that can be used, and overwrites nothing", async () => {
    const folder = project();
    await seed(folder, { o1: [] });
    expect(await pawl(folder, "backup", "copies/one.db")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("Copied to copies/one.db"),
    });
    expect(await json(folder, "ls", "--store", "copies/one.db")).toMatchObject({ runs: [{ id: "o1" }] });
    expect(await pawl(folder, "backup", "copies/one.db")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("overwrites nothing"),
    });
    expect(await json(folder, "backup", "two.db")).toMatchObject({ file: "two.db", bytes: expect.any(Number) });
  });
});

describe("the store", () => {
  it("is not created by looking", async () => {
    const folder = project();
    for (const args of [["ls"], ["doctor"], ["show", "o1"], ["backup", "b.db"], ["signal", "o1", "x"]]) {
      expect(await pawl(folder, ...args)).toMatchObject({
        code: 5,
        stdout: "",
        stderr: expect.stringContaining("There is no store at .pawl/pawl.db"),
      });
    }
    expect(existsSync(join(folder, ".pawl"))).toBe(false);
  });

  it("ends with 5 if it cannot be used", async () => {
    const folder = project({ "text.db": "this is no database, and long enough to tell\n" });
    const { code, stderr } = await pawl(folder, "ls", "--store", "text.db");
    expect(code).toBe(5);
    expect(stderr).toContain("text.db");
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it("names no password", async () => {
    const { code, stderr } = await pawl(project(), "ls", "--store", "mysql://me:hunter2@host/db", "--json");
    expect(code).toBe(2);
    expect(stderr).not.toContain("hunter2");
  });
});
