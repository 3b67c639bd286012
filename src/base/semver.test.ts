import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareVersions, formatVersion, isPatchUpgrade, parseVersion, sameMinor } from "./semver.ts";

const v = (text: string) => parseVersion(text);

describe("semver", () => {
  it("reads major.minor.patch", () => {
    expect(v("1.2.3")).toEqual({ major: 1, minor: 2, patch: 3 });
    expect(v("0.0.0")).toEqual({ major: 0, minor: 0, patch: 0 });
    expect(v("999999999.10.200")).toEqual({ major: 999_999_999, minor: 10, patch: 200 });
  });

  it.each([
    "",
    "1",
    "1.2",
    "1.2.3.4",
    "v1.2.3",
    " 1.2.3",
    "1.2.3\n",
    "01.2.3",
    "1.2.03",
    "1.-2.3",
    "1.2.x",
    "^1.2.3",
    "1.2.3-beta",
    "1.2.3+build",
    "1e1.2.3",
    "1000000000.0.0",
    "١.٢.٣",
    1.2,
    null,
    undefined,
  ])("refuses %j, naming the field", (text) => {
    expect(() => parseVersion(text as string, "workflow version")).toThrow(
      expect.objectContaining({
        code: "invalid_argument",
        message: expect.stringMatching(/^workflow version .* is not a version\. Write major\.minor\.patch/),
      }),
    );
  });

  it("compares by number, not by text", () => {
    const sorted = ["0.0.1", "0.0.10", "0.1.0", "0.10.0", "1.0.0", "1.0.2", "1.0.10", "2.0.0", "10.0.0"];
    for (const [i, a] of sorted.entries()) {
      for (const [j, b] of sorted.entries()) {
        expect(Math.sign(compareVersions(v(a), v(b)))).toBe(Math.sign(i - j));
      }
    }
  });

  it("P34 a patch upgrade goes up within one minor version", () => {
    expect(isPatchUpgrade(v("1.2.3"), v("1.2.4"))).toBe(true);
    expect(isPatchUpgrade(v("1.2.9"), v("1.2.10"))).toBe(true);
    for (const [from, to] of [
      ["1.2.3", "1.2.3"],
      ["1.2.3", "1.2.2"],
      ["1.2.3", "1.3.4"],
      ["1.2.3", "2.2.4"],
    ]) {
      expect(isPatchUpgrade(v(from!), v(to!))).toBe(false);
    }
    expect(sameMinor(v("1.2.3"), v("1.2.9"))).toBe(true);
    expect(sameMinor(v("1.2.3"), v("1.3.3"))).toBe(false);
    expect(sameMinor(v("1.2.3"), v("2.2.3"))).toBe(false);
  });

  it("gives its text back", () => {
    const part = fc.nat({ max: 999_999_999 });
    fc.assert(
      fc.property(part, part, part, (major, minor, patch) => {
        const text = `${major}.${minor}.${patch}`;
        expect(formatVersion(parseVersion(text))).toBe(text);
      }),
    );
  });
});
