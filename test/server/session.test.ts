import { expect, it } from "vitest";
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
