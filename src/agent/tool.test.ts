import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { isName } from "../base/ids.ts";
import { checkedInput } from "./json-schema.ts";
import { Stall } from "./stall.ts";
import { tool } from "./tool.ts";
import { CallKeys } from "./tool-call.ts";

const SPEC = {
  name: "look",
  description: "Looks.",
  class: "read",
  input: z.object({ n: z.number() }),
  run: () => "seen",
} as const;

describe("tool", () => {
  it("S1-57 is shown to models by the JSON schema of its input", () => {
    expect(tool(SPEC).jsonSchema).toEqual({
      type: "object",
      properties: { n: { type: "number" } },
      required: ["n"],
    });
    const jsonSchema = { type: "object", properties: {} };
    expect(tool({ ...SPEC, input: { jsonSchema } }).jsonSchema).toBe(jsonSchema);
  });

  it.each([
    ["name", { name: "look up!" }],
    ["name", { name: "x".repeat(65) }],
    ["description", { description: " " }],
    ["class", { class: "delete" }],
    ["run", { run: undefined }],
    ["input", { input: z.object({ when: z.date() }) }],
    ["input", { input: { "~standard": { version: 1, vendor: "mine", validate: () => ({ value: 1 }) } } }],
  ])("refuses a %s that cannot be one", (field, wrong) => {
    expect(() => tool({ ...SPEC, ...wrong } as never)).toThrow(
      expect.objectContaining({ code: "invalid_argument", fields: expect.objectContaining({ field }) }),
    );
  });

  it("Q18 arguments by a plain JSON schema are checked in outline", async () => {
    const jsonSchema = {
      type: "object",
      properties: {
        kind: { type: "string", enum: ["a", "b"] },
        tags: { type: "array", items: { type: "integer" } },
        deep: { type: "object", properties: { x: { type: ["number", "null"] } }, required: ["x"] },
      },
      required: ["kind"],
      additionalProperties: false,
    };
    const check = (value: unknown) => checkedInput({ jsonSchema }, value, "It");
    await expect(check({ kind: "a", tags: [1, 2], deep: { x: null } })).resolves.toEqual({
      kind: "a",
      tags: [1, 2],
      deep: { x: null },
    });
    for (const [value, problem] of [
      [{}, "kind: is required"],
      [{ kind: "c" }, 'kind: expected one of "a", "b"'],
      [{ kind: "a", tags: [1.5] }, "tags.0: expected integer, received number"],
      [{ kind: "a", deep: {} }, "deep.x: is required"],
      [{ kind: "a", other: 1 }, "other: is not known"],
      ["text", "expected object, received string"],
    ] as const)
      await expect(check(value)).rejects.toMatchObject({ code: "schema_mismatch", fields: { issues: [problem] } });
  });
});

describe("keys of tool calls", () => {
  it("X-20 are names, and no two of a conversation are the same, whatever ids a model gives", () => {
    const rounds = fc.array(
      fc.array(
        fc.oneof(fc.string({ unit: "grapheme" }), fc.constantFrom("call_1", "a#1", "a/1", "", "x", "x.2", "x.2.0")),
        {
          maxLength: 4,
        },
      ),
      { maxLength: 6 },
    );
    fc.assert(
      fc.property(rounds, (ids) => {
        const keys = new CallKeys();
        const given = ids.flatMap((round, number) =>
          round.map((id, index) => keys.keyOf({ id, name: "look", args: {}, refused: null }, number + 1, index)),
        );
        expect(new Set(given).size).toBe(given.length);
        expect(given.filter((key) => !isName(key))).toEqual([]);
      }),
    );
    // A model that gives the keys away on purpose.
    const keys = new CallKeys();
    const taken = ["x", "x.2", "x.2.0"].map((id) => keys.keyOf({ id, name: "look", args: {}, refused: null }, 1, 0));
    expect(taken).not.toContain(keys.keyOf({ id: "x", name: "look", args: {}, refused: null }, 2, 0));
    expect(new CallKeys().keyOf({ id: "toolu_01AbC", name: "look", args: {}, refused: null }, 1, 0)).toBe(
      "tool.look.toolu_01AbC",
    );
  });
});

describe("Stall", () => {
  const tried = (args: unknown, isRefused = true, message = "no") => ({ name: "look", args, message, isRefused });

  it("X-29 counts the same refused call in a row, and begins anew after another one", () => {
    const stall = new Stall({});
    expect([1, 1, 2, 1, 1].map((n) => stall.after([tried(n)]))).toEqual([null, null, null, null, null]);
    expect(stall.after([tried(1), tried(3)])).toContain("refused 3 times");
    // Twice in one answer counts twice.
    const other = new Stall({});
    other.after([tried(1)]);
    expect(other.after([tried(1), tried(1)])).toContain("no_progress");
  });

  it("X-29 calls that are polled with other answers make progress", () => {
    const stall = new Stall({ same: 3 });
    const answers = ["waiting", "waiting", "ready", "waiting", "waiting"];
    expect(answers.map((answer) => stall.after([tried(1, false, answer)]))).toEqual([null, null, null, null, null]);
    expect(stall.after([tried(1, false, "waiting")])).toContain("same answers");
  });

  it("refuses limits that are none", () => {
    expect(() => new Stall({ repeats: 0 })).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });
});
