import { expect, it } from "vitest";
import { storeNames } from "./serve.ts";

it("Q4 I24 two stores never share a name, however much alike they look without their passwords", () => {
  const stores = [
    "sqlite:///srv/ann@x/p.db",
    "sqlite:///srv/bob@x/p.db",
    "postgres://ta:one@db/app",
    "postgres://tb:two@db/app",
    "default",
  ];
  const names = storeNames(stores);
  expect([...names.keys()]).toEqual(stores);
  expect(new Set(names.values()).size).toBe(stores.length);
  expect([...names.values()].join(" ")).not.toMatch(/one|two/);
  expect(names.get("default")).not.toBe("default");
});
