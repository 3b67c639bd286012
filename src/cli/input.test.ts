import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { readValue } from "./input.ts";

const folder = mkdtempSync(join(tmpdir(), "pawl-input-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(bytes: string | Uint8Array): string {
  const path = join(folder, "input.json");
  writeFileSync(path, bytes);
  return `@${path}`;
}

describe("a value on the command line", () => {
  it.each([
    ["duplicate keys: the last one counts", '{"a":1,"a":2}', { a: 2 }],
    ["a number that is too large", "[1e400,-1e400]", [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]],
    ["a lone surrogate", '"\\ud800"', "\ud800"],
    ["white space around it", " \n7\t", 7],
  ])("Q8 B64 %s", async (_, json, value) => {
    expect(await readValue(json, "INPUT")).toEqual(value);
    expect(await readValue(file(json), "INPUT")).toEqual(value);
  });

  it("Q8 makes __proto__ a key like any other", async () => {
    const value = (await readValue('{"__proto__":{"isAdmin":true}}', "INPUT")) as { isAdmin?: boolean };
    expect(Object.keys(value)).toEqual(["__proto__"]);
    expect(value.isAdmin).toBeUndefined();
  });

  it("B64 reads a file with a byte order mark, and refuses one that is not UTF-8", async () => {
    expect(await readValue(file('\ufeff{"a":1}'), "INPUT")).toEqual({ a: 1 });
    await expect(readValue(file(Uint8Array.of(0x22, 0xff, 0x22)), "INPUT")).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(/not valid UTF-8/),
    });
    await expect(readValue('\ufeff{"a":1}', "INPUT")).rejects.toMatchObject({ code: "invalid_argument" });
  });
});
