import { describe, expect, it } from "vitest";
import { clean, errorLine, shortJson } from "./printable.ts";

describe("clean", () => {
  it("shows what could move the cursor, recolour or reorder text", () => {
    expect(clean("a\u001b[31mb\u0007\u009b\u202ec\r\n")).toBe("a\\u001b[31mb\\u0007\\u009b\\u202ec\\u000d ");
    expect(clean("Grüße, 日本 ✓")).toBe("Grüße, 日本 ✓");
  });
});

it("cuts long JSON", () => {
  expect(shortJson({ text: "x".repeat(100) }, 12)).toBe('{"text":"xx…');
  expect(shortJson(undefined)).toBe("undefined");
});

it("puts an error with its code and cause on one line", () => {
  const cause = Object.assign(new Error("connect\nrefused"), { code: "ECONNREFUSED" });
  expect(errorLine(new Error("fetch failed", { cause }))).toBe("fetch failed Cause: connect refused (ECONNREFUSED)");
  expect(errorLine("plain")).toBe("plain");
  expect(errorLine(null)).toBe("null");
});
