import { expect, it } from "vitest";
import { chooseDriver, loadDriver, OLDEST_SQLITE } from "./driver.ts";

/** A module that claims to carry this SQLite. */
function moduleOf(version: string) {
  return {
    DatabaseSync: class {
      readonly isTransaction = false;
      prepare() {
        return {
          get: () => ({ version }),
          all: () => [],
          setReturnArrays: () => {},
          setReadBigInts: () => {},
          run: () => ({ changes: 0, lastInsertRowid: 0 }),
        };
      }
      exec() {}
      close() {}
    },
  };
}

function choose(versions: Readonly<Record<string, string>>) {
  return chooseDriver(Object.keys(versions), (name) => {
    if (versions[name] === "missing") throw new Error(`Cannot find module '${name}'\nRequire stack`);
    return moduleOf(versions[name] ?? "");
  });
}

it("loads a SQLite that is new enough, the same one every time", () => {
  const driver = loadDriver();
  expect(loadDriver()).toBe(driver);
  const [major = 0, minor = 0] = driver.version.split(".").map(Number);
  expect(major * 1000 + minor).toBeGreaterThanOrEqual(3051);
});

it("takes the first module that is there and new enough", () => {
  expect(choose({ a: "3.53.0", b: "3.60.0" }).name).toBe("a");
  expect(choose({ a: "missing", b: "3.60.0" }).name).toBe("b");
  expect(choose({ a: "3.50.4", b: OLDEST_SQLITE }).name).toBe("b");
  expect(choose({ a: "3.51.2", b: "4.0.0" }).name).toBe("b");
  expect(choose({ a: "3.100.0", b: "4.0.0" }).name).toBe("a");
});

it("B72 refuses to work on an old SQLite, and says what it found and what to do", () => {
  const refused = () => choose({ "node:sqlite": "3.51.2", other: "missing" });
  expect(refused).toThrow(expect.objectContaining({ code: "sqlite_too_old" }));
  expect(refused).toThrow(
    /needs SQLite 3\.51\.3.*node:sqlite carries SQLite 3\.51\.2.*other does not load \(Cannot find module 'other'\)/,
  );
});
