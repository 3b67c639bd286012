import { expect, it } from "vitest";
import { rulingsOf } from "./tool-rulings.ts";

it("I26 of two calls with the same id, one that people are to be asked about is not allowed by what is said of the other", async () => {
  const { toolApproval, rulings } = rulingsOf({ pay: "user-approval", look: "approved" });
  const rules = toolApproval as Record<"pay" | "look", (input: unknown, options: { toolCallId: string }) => unknown>;
  expect(await rules.pay({}, { toolCallId: "1" })).toBeUndefined();
  expect(await rules.look({}, { toolCallId: "1" })).toBe("approved");
  expect(await rules.look({}, { toolCallId: "2" })).toBe("approved");
  expect([...rulings]).toEqual([
    ["1", true],
    ["2", false],
  ]);
});
