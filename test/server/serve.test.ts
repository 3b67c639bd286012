// `pawl serve` as a process: how it begins, who may sign in, and what a reader of events sees when it is killed.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { Pawl } from "../../src/client/pawl.ts";
import { workflow } from "../../src/core/workflow.ts";
import { createClient } from "../../src/server/client.ts";
import { newCredential } from "../../src/server/credentials.ts";
import { begin, hosted, project, type Running } from "../fixtures/cli/command.ts";

interface Serving {
  readonly url: string;
  readonly port: number;
  readonly link: string | null;
}

async function serving(running: Running, count = 1): Promise<Serving> {
  return JSON.parse(await running.nth(/"event":"serving"/, count)) as Serving;
}

it("Q1 without credentials it listens here alone, and its address signs in once", async () => {
  const folder = project();
  const refused = await hosted(folder, ["serve", "--host", "0.0.0.0", "--port", "0"]);
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain("PAWL_AUTH");
  const running = begin(folder, ["serve", "--port", "0", "--json"]);
  const { url, link, port } = await serving(running);
  expect(url).toBe(`http://127.0.0.1:${port}`);
  const token = link?.split("#token=")[1] ?? "";
  expect(token).toMatch(/^[\w-]{43}$/);
  expect((await fetch(`${url}/api/runs`)).status).toBe(401);
  expect((await fetch(`${url}/api/runs`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(401);
  const signIn = () =>
    fetch(`${url}/api/session`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token }),
    });
  const first = await signIn();
  expect(await first.json()).toMatchObject({ role: "admin", store: "default" });
  expect((await signIn()).status).toBe(401);
  const cookie = (first.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  expect((await fetch(`${url}/api/runs`, { headers: { cookie } })).status).toBe(200);
  const page = await fetch(`${url}/runs/whatever`, { headers: { accept: "text/html" } });
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(page.headers.get("cache-control")).toBe("no-cache");
  expect(await page.text()).toContain("<title>Pawl");
  running.kill("SIGTERM");
  expect((await running.ended).code).toBe(0);
});

it("Q1 Q4 credentials are made by the command, and one of another store sees that one alone", async () => {
  const folder = project();
  const made = await hosted(folder, ["serve", "--new-token", "ann", "operator", "--json"]);
  const { token, credential } = JSON.parse(made.stdout) as { token: string; credential: { tokenSha256: string } };
  expect(made.stdout).not.toContain(`"tokenSha256":"${token}"`);
  expect((await hosted(folder, ["serve", "--new-token", "ann", "king"])).code).toBe(2);
  const other = newCredential("bob", ["viewer"]);
  const file = join(folder, "auth.json");
  writeFileSync(file, JSON.stringify([credential, { ...other.credential, store: join(folder, "other.db") }]));
  const running = begin(folder, ["serve", "--port", "0", "--auth", file, "--host", "0.0.0.0", "--json"]);
  const { port, link } = await serving(running);
  expect(link).toBe(null);
  const url = `http://127.0.0.1:${port}`;
  const ann = createClient({ url, token });
  const bob = createClient({ url, token: other.token });
  const { id } = await ann.call("POST /api/runs", { body: { workflow: "later", options: { version: "1.0.0" } } });
  expect((await ann.call("GET /api/runs")).runs.map((run) => run.id)).toEqual([id]);
  expect((await bob.call("GET /api/runs")).runs).toEqual([]);
  await expect(bob.call("GET /api/runs/:id", { params: { id } })).rejects.toMatchObject({ code: "run_not_found" });
  await expect(bob.call("POST /api/runs", { body: { workflow: "later" } })).rejects.toMatchObject({
    code: "forbidden",
  });
  writeFileSync(file, '[{"name":"ann","role":"operator","tokenSha256":"abc"}]');
  expect((await hosted(folder, ["serve", "--port", "0", "--auth", file])).stderr).toContain("tokenSha256");
  running.kill("SIGTERM");
  await running.ended;
});

/** The packages that a built file loads when it is imported, with everything that it imports. */
function packagesOf(file: string, seen: Set<string> = new Set()): string[] {
  if (seen.has(file)) return [];
  seen.add(file);
  const imports = readFileSync(file, "utf8").matchAll(/^(?:import|export)\b[^;"']*?["']([^"']+)["']/gm);
  return [...imports].flatMap(([, name = ""]) =>
    name.startsWith(".") ? packagesOf(join(dirname(file), name), seen) : [name],
  );
}

it("the library and the command load nothing of the server, and its client nothing of Node", () => {
  const dist = (name: string) => packagesOf(fileURLToPath(new URL(`../../dist/${name}`, import.meta.url)));
  const isServer = (name: string) => name.includes("hono");
  expect(dist("server/index.js").filter(isServer).sort()).toEqual(["@hono/node-server", "hono"]);
  expect([...dist("index.js"), ...dist("cli/main.js")].filter(isServer)).toEqual([]);
  expect(dist("server/client.js")).toEqual([]);
});

const counting = workflow("counting", async (ctx) => {
  for (let n = 0; n < 6; n++) await ctx.waitFor("next");
});

it("X-19 X-31 a reader goes on when the server was killed and is back: no entry is left out, none comes twice", async () => {
  const folder = project();
  const store = join(folder, "runs.db");
  const engine = await Pawl.open(store, { workflows: [counting], handleSignals: false });
  const run = await engine.start(counting, undefined);
  const { token, credential } = newCredential("ann", ["viewer"]);
  writeFileSync(join(folder, "auth.json"), JSON.stringify([credential]));
  const args = ["serve", "--store", store, "--auth", "auth.json", "--json"];
  const first = begin(folder, [...args, "--port", "0"]);
  const { url, port } = await serving(first);
  const seen: number[] = [];
  let waits = 0;
  for await (const { data } of createClient({ url, token }).follow("GET /api/runs/:id/events", {
    params: { id: run.id },
  })) {
    seen.push(data.seq);
    if (data.type !== "signal.awaited") continue;
    waits++;
    if (waits === 3) {
      first.kill("SIGKILL");
      await first.ended;
      // What is written while nobody serves comes afterwards.
      await engine.signal(run.id, "next");
      await engine.idle();
      await serving(begin(folder, [...args, "--port", String(port)]));
    } else await engine.signal(run.id, "next");
  }
  expect(seen).toEqual((await run.journal()).map(({ seq }) => seq));
  expect(waits).toBe(6);
  await engine.close();
});
