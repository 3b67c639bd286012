import { describe, expect, it } from "vitest";
import { shownUrl } from "./shown-url.ts";

describe("a store's URL as it is shown", () => {
  it.each([
    ["postgres://ada:secret@db.example.com:5432/app", "postgres://…@db.example.com:5432/app"],
    ["postgres://ada:secret@db/app?schema=orders&sslmode=require", "postgres://…@db/app?schema=orders"],
    ["postgres://db/app?user=ada&password=secret", "postgres://db/app"],
    ["postgres://ada:sec@ret@db/app", "postgres://…@db/app"],
    ["postgres://ada:sec/ret@db/app", "postgres://…@db/app"],
    ["postgres://ada:sec?ret#x@db/app?schema=s", "postgres://…@db/app?schema=s"],
    ["postgres://db/app", "postgres://db/app"],
  ])("%s has no password any more", (url, shown) => {
    expect(shownUrl(url)).toBe(shown);
  });

  it.each(["data/pawl.db", "sqlite:data/a@b.db", "memory:", "C:\\data\\pawl.db"])("%s stays as it is", (url) => {
    expect(shownUrl(url)).toBe(url);
  });
});
