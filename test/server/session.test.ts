import { describe, expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { workflow } from "../../src/core/workflow.ts";
import { EventStreams } from "../../src/server/event-stream.ts";
import { SERVER_LIMITS, type ServerLimits } from "../../src/server/server-limits.ts";
import { HOST, serverWorld } from "./world.ts";

it("Q2 a browser signs in once, and every change it makes needs its own page and the session's token", async () => {
  const { app, ask } = await serverWorld();
  const once = app.parts.credentials.createOnce({ name: "ann", roles: ["admin"], groups: [], store: "default" });
  const signIn = () => ask("POST /api/session", { as: "nobody", body: { token: once } });
  const first = await signIn();
  expect(first.status).toBe(200);
  const cookie = first.headers.get("set-cookie") ?? "";
  expect(cookie).toMatch(/^pawl_session_7295=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
  const session = (await first.json()) as { user: string; csrf: string };
  expect(session).toMatchObject({ user: "ann", role: "admin", store: "default" });
  expect((await signIn()).status).toBe(401);
  const [kept = ""] = cookie.split(";");
  const read = await ask("GET /api/session", { as: "nobody", headers: { cookie: kept } });
  expect(await read.json()).toEqual(session);
  const leave = (headers: Record<string, string>) =>
    ask("DELETE /api/session", { as: "nobody", headers: { cookie: kept, ...headers } });
  const own = { origin: `http://${HOST}`, "x-pawl-csrf": session.csrf };
  expect((await leave({ "x-pawl-csrf": session.csrf })).status).toBe(403);
  expect((await leave({ origin: `http://${HOST}` })).status).toBe(403);
  expect((await leave({ ...own, origin: "http://evil.test" })).status).toBe(403);
  expect((await leave({ ...own, "sec-fetch-site": "cross-site" })).status).toBe(403);
  expect((await leave({ ...own, "x-pawl-csrf": "wrong" })).status).toBe(403);
  expect((await leave(own)).status).toBe(200);
  expect((await ask("GET /api/session", { as: "nobody", headers: { cookie: kept } })).status).toBe(401);
});

describe("event streams of a session", () => {
  const waiting = workflow("waiting", (ctx) => ctx.waitFor("go"));

  /** Somebody who has signed in, and what they follow. */
  async function following(limits: Partial<ServerLimits> = {}) {
    const world = await serverWorld({ engine: { workflows: [waiting] }, limits });
    const { ask, app, pawl } = world;
    await pawl.start(waiting, undefined, { id: "w" });
    await pawl.idle();
    const answer = await ask("POST /api/session", { as: "nobody", body: { token: world.token("viewer") } });
    const [cookie = ""] = (answer.headers.get("set-cookie") ?? "").split(";");
    const { csrf } = (await answer.json()) as { csrf: string };
    const follow = async (what: string, headers: Record<string, string> = { cookie }) =>
      (await ask(`GET ${what}`, { as: "nobody", headers })).text();
    const texts = ["/api/runs/w/events", "/api/runs/w/stream", "/api/changes"].map((what) => follow(what));
    const other = follow("/api/runs/w/events", { authorization: `Bearer ${world.token("viewer")}` });
    await expect.poll(() => app.parts.streams.count).toBe(4);
    return { ...world, cookie, csrf, texts, other };
  }

  it("Q3 ES4 a sign-out ends them, and no others; what happens from then on is not told", async () => {
    const { ask, app, pawl, cookie, csrf, texts, other } = await following();
    const headers = { cookie, origin: `http://${HOST}`, "x-pawl-csrf": csrf };
    expect((await ask("DELETE /api/session", { as: "nobody", headers })).status).toBe(200);
    await pawl.signal("w", "go", "afterwards");
    for (const text of await Promise.all(texts)) expect(text).not.toMatch(/afterwards|event: end/);
    expect(await other).toContain("afterwards");
    expect(app.parts.streams.count).toBe(0);
  });

  it("Q3 ES4 a session that nobody has used for too long ends them as well, though they were read all the time", async () => {
    const { app, pawl, texts, other } = await following({ sessionIdleMs: 300 });
    for (const text of await Promise.all(texts)) expect(text).not.toContain("event: end");
    expect(app.parts.streams.count).toBe(1);
    await pawl.signal("w", "go");
    expect(await other).toContain("event: end");
  });
});

it("Q3 ES4 who takes nothing is cut off when they are no longer signed in; without streams nobody looks", async () => {
  const clock = manualClock();
  const streams = new EventStreams(clock, SERVER_LIMITS);
  let isIn = true;
  let cuts = 0;
  const who = { name: "ann", roles: ["viewer"], groups: [], store: "default" } as const;
  const reader = { who, cutOff: () => void cuts++, isStillIn: () => isIn };
  streams.answer(reader, async function* () {
    yield { event: "entry", data: {} };
  });
  clock.advance(5000);
  expect([streams.count, cuts]).toEqual([1, 0]);
  isIn = false;
  clock.advance(1000);
  expect([streams.count, cuts, clock.nextDue()]).toEqual([0, 1, Number.POSITIVE_INFINITY]);
});

it("Q2 a host that the server does not answer for is refused before anything else", async () => {
  const { ask } = await serverWorld({ publicUrl: "https://pawl.example.com", hosts: ["pawl.lan"] });
  const status = async (host: string) => (await ask("GET /api/health", { as: "nobody", headers: { host } })).status;
  for (const host of ["evil.test", "127.0.0.1.evil.test", "localhost.evil.test:7295", "evil.test:7295", ""])
    expect(await status(host), host).toBe(403);
  for (const host of ["localhost", "LOCALHOST:1", "[::1]:7295", "pawl.example.com", "pawl.lan"])
    expect(await status(host), host).toBe(200);
});

it("Q3 runs are listed to whoever has signed in, and to nobody else", async () => {
  const { ask, json, pawl } = await serverWorld();
  const run = await pawl.start("hello", { to: "ann" }, { version: "1.0.0", tags: ["a"] });
  expect((await ask("GET /api/runs", { as: "nobody" })).status).toBe(401);
  expect(await json("GET /api/runs", { as: "viewer" })).toMatchObject({ runs: [{ id: run.id }], cursor: null });
  expect(await json(`GET /api/runs/${run.id}`, { as: "viewer" })).toMatchObject({ id: run.id, input: { to: "ann" } });
  expect(await json("GET /api/runs/none", { as: "viewer" })).toMatchObject({ error: { code: "run_not_found" } });
});
