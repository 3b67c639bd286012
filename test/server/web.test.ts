import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { serverWorld } from "./world.ts";

const PAGE = { accept: "text/html,application/xhtml+xml" };

it("Q7 Q17 the dashboard's files are found by their exact path; its page stands for every other path that a browser wants to see", async () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-web-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "assets"));
  writeFileSync(join(folder, "index.html"), "<title>page</title>");
  writeFileSync(join(folder, "assets", "index-Bq3_x9Zk.js"), "1;");
  writeFileSync(join(folder, "icon.svg"), "<svg/>");
  const { ask } = await serverWorld({ web: folder });
  const look = async (path: string, headers: Record<string, string> = {}) => {
    const answer = await ask(`GET ${path}`, { as: "nobody", headers });
    return [
      answer.status,
      answer.headers.get("content-type"),
      answer.headers.get("cache-control"),
      await answer.text(),
    ];
  };
  const page = [200, "text/html; charset=utf-8", "no-cache", "<title>page</title>"];
  for (const path of ["/", "/index.html", "/runs/0193", "/a/b/c", "/assets/gone.js"])
    expect(await look(path, PAGE), path).toEqual(page);
  expect(await look("/assets/index-Bq3_x9Zk.js")).toEqual([
    200,
    "text/javascript; charset=utf-8",
    "public, max-age=31536000, immutable",
    "1;",
  ]);
  expect((await look("/icon.svg")).slice(0, 3)).toEqual([200, "image/svg+xml", "no-cache"]);
  expect((await look("/assets/gone.js"))[0]).toBe(404);
  expect((await look("/api/gone", PAGE))[0]).toBe(401);
  const first = await ask("GET /icon.svg", { as: "nobody" });
  const again = await ask("GET /icon.svg", {
    as: "nobody",
    headers: { "if-none-match": first.headers.get("etag") ?? "" },
  });
  expect(again.status).toBe(304);
  expect(first.headers.get("content-security-policy")).toContain("script-src 'self'");
});

it("Q16 behind a proxy that is trusted, the address that it has added is the sender's", async () => {
  const bucket = { burst: 1, perSecond: 0.001 };
  const status = async (trustProxy: boolean) => {
    const { ask } = await serverWorld({ trustProxy, limits: { perAddress: bucket } });
    const from = async (forwarded: string) =>
      (await ask("GET /api/health", { as: "nobody", headers: { "x-forwarded-for": forwarded } })).status;
    // What the sender itself says stands in front, and may say anything.
    return [await from("10.0.0.1"), await from("10.0.0.2"), await from("1.2.3.4, 10.0.0.1")];
  };
  expect(await status(true)).toEqual([200, 200, 429]);
  expect(await status(false)).toEqual([200, 429, 429]);
});
