// Event streams and connections, on real sockets.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { encode } from "../../src/base/codec.ts";
import { Pawl } from "../../src/client/pawl.ts";
import type { Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { createClient } from "../../src/server/client.ts";
import { newCredential } from "../../src/server/credentials.ts";
import { type Served, type ServeOptions, serve } from "../../src/server/serve.ts";
import { memoryStore } from "../../src/stores/memory/memory-store.ts";

const counting = workflow("counting", async (ctx) => {
  for (let n = 0; n < 5; n++) await ctx.waitFor("next");
  return "done";
});

interface Live {
  readonly pawl: Pawl;
  readonly served: Served;
  readonly token: string;
}

async function live(options: ServeOptions = {}, store: Store = memoryStore()): Promise<Live> {
  const pawl = await Pawl.open(store, { workflows: [counting], handleSignals: false, poll: "20ms" });
  const { token, credential } = newCredential("ann", ["admin"]);
  const served = await serve({ port: 0, web: null, ...options, pawl, credentials: [credential] });
  onTestFinished(async () => {
    await served.stop();
    await pawl.close({ drain: 0 });
  });
  return { pawl, served, token };
}

/** A store whose journals are what this says. */
function withJournal(
  journal: (kept: Store, ...args: Parameters<Store["journal"]>) => ReturnType<Store["journal"]>,
): Store {
  return new Proxy(memoryStore(), {
    get(kept, name) {
      if (name === "journal") return (...args: Parameters<Store["journal"]>) => journal(kept, ...args);
      const value: unknown = Reflect.get(kept, name, kept);
      return typeof value === "function" ? value.bind(kept) : value;
    },
  });
}

function follow({ served, token }: Live, id: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${served.url}/api/runs/${id}/events`, { headers: { authorization: `Bearer ${token}`, ...headers } });
}

/** Everything that a stream says until it ends. */
async function idsIn(response: Response): Promise<string[]> {
  const text = await response.text();
  return [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => id ?? "");
}

it("X-19 entries come as they are written; whoever comes back gets what follows, without a gap and without a double", async () => {
  const world = await live();
  const { pawl, served, token } = world;
  const run = await pawl.start(counting, undefined);
  const client = createClient({ url: served.url, token });
  const seen: number[] = [];
  const types: string[] = [];
  for await (const { data } of client.follow("GET /api/runs/:id/events", { params: { id: run.id } })) {
    seen.push(data.seq);
    types.push(data.type);
    if (data.type === "signal.awaited") await pawl.signal(run.id, "next");
  }
  const journal = await run.journal();
  expect(seen).toEqual(journal.map(({ seq }) => seq));
  expect(types.at(-1)).toBe("run.succeeded");
  expect(await idsIn(await follow(world, run.id, { "last-event-id": "3" }))).toEqual(
    journal.slice(4).map(({ seq }) => String(seq)),
  );
  expect(await idsIn(await follow(world, run.id, { "last-event-id": String(journal.length - 1) }))).toEqual([]);
});

it("X-19 a cursor that leads nowhere any more is an error, never a gap", async () => {
  let trimmedTo = 0;
  const store = withJournal((kept, run, { from = 0, ...range } = {}) =>
    kept.journal(run, { from: Math.max(from, trimmedTo), ...range }),
  );
  const world = await live({}, store);
  const run = await world.pawl.start(counting, undefined);
  await world.pawl.idle();
  const ahead = await follow(world, run.id, { "last-event-id": "99" });
  expect(ahead.status).toBe(410);
  expect(await ahead.json()).toMatchObject({ error: { code: "cursor_expired", fields: { run: run.id, after: 99 } } });
  await world.pawl.signal(run.id, "next");
  await world.pawl.idle();
  trimmedTo = 3;
  expect((await follow(world, run.id, { "last-event-id": "1" })).status).toBe(410);
  const entire = await follow(world, run.id, { "last-event-id": "2" });
  expect(entire.status).toBe(200);
  await entire.body?.cancel();
  expect((await follow(world, run.id, { "last-event-id": "x" })).status).toBe(400);
  expect((await follow(world, "none")).status).toBe(404);
  trimmedTo = 0;
});

it("X-31 a list stays up to date: what is new, what changes, and what no longer fits", async () => {
  const { pawl, served, token } = await live();
  const client = createClient({ url: served.url, token });
  const stop = new AbortController();
  const changes = client.follow("GET /api/changes", { query: { status: "waiting" }, signal: stop.signal });
  const all = changes[Symbol.asyncIterator]();
  expect((await all.next()).value).toMatchObject({ event: "runs", data: { runs: [] } });
  const run = await pawl.start(counting, undefined);
  const next = async () => ((await all.next()).value as { data: { runs: { id: string; status: string }[] } }).data.runs;
  expect(await next()).toMatchObject([{ id: run.id, status: "waiting" }]);
  await pawl.cancel(run.id);
  expect(await next()).toMatchObject([{ id: run.id, status: "cancelled" }]);
  stop.abort();
  await all.return?.();
});

it("Q16 a reader who takes nothing is cut off, more streams than there may be are refused, and a stop closes all", async () => {
  // A journal that never ends, of entries that no buffer between here and there has room for.
  let isEndless = true;
  const data = encode({ text: "x".repeat(1_000_000) });
  const store = withJournal(async (kept, run, { from = 0, ...range } = {}) =>
    isEndless ? [{ seq: from, at: 0, type: "note", key: null, data, hash: "" }] : kept.journal(run, { from, ...range }),
  );
  const world = await live({ limits: { streamStallMs: 150, streamsPerCredential: 2 } }, store);
  const { pawl, served, token } = world;
  const { streams } = served.app.parts;
  const quiet = await pawl.start(counting, undefined);
  const socket = await asking(served, `GET /api/runs/${quiet.id}/events`, token);
  await expect.poll(() => streams.count).toBe(1);
  await expect.poll(() => streams.count, { timeout: 10_000 }).toBe(0);
  socket.resume();
  await once(socket, "close");
  isEndless = false;
  const open = [await follow(world, quiet.id), await follow(world, quiet.id)];
  const third = await follow(world, quiet.id);
  expect(third.status).toBe(429);
  expect(third.headers.get("retry-after")).toBe("5");
  const texts = open.map((one) => one.text());
  await served.stop();
  expect(streams.count).toBe(0);
  for (const text of await Promise.all(texts)) expect(text).not.toContain("event: end");
});

/** A connection that has asked for something and reads nothing. */
async function asking({ port }: Served, what: string, token: string): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  await once(socket, "connect");
  const [method, path] = what.split(" ");
  socket.pause();
  socket.write(`${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\n\r\n`);
  return socket;
}

/** Sends this, and gives all that comes back until the server closes the connection. */
async function answerTo({ port }: Served, text: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let answer = "";
  socket.setEncoding("utf8").on("data", (part: string) => {
    answer += part;
  });
  socket.on("error", () => {});
  socket.write(text);
  await once(socket, "close");
  return answer;
}

it("Q1 without credentials only this machine is listened to; a port that is taken is told of", async () => {
  const { pawl, served } = await live();
  for (const host of ["0.0.0.0", "::", "192.0.2.1", "example.com", "127.0.0.1.evil.test"])
    await expect(serve({ pawl, host, port: 0, web: null }), host).rejects.toMatchObject({ code: "invalid_argument" });
  await expect(serve({ pawl, port: served.port, web: null })).rejects.toThrow("something else listens there");
  const local = await serve({ pawl, host: "localhost", port: 0, web: null, user: "ann" });
  expect(local.link()).toMatch(/^http:\/\/localhost:\d+\/#token=[\w-]{43}$/);
  await local.stop();
});

it("Q16 senders who are slow, or whose headers do not end, lose their connection", async () => {
  const { served } = await live({ limits: { headersMs: 100, requestMs: 200, keepAliveMs: 100 } });
  const line = "GET /api/health HTTP/1.1\r\nhost: 127.0.0.1\r\n";
  expect(await answerTo(served, line)).toMatch(/^HTTP\/1\.1 408 |^$/);
  expect(
    await answerTo(
      served,
      `POST /api/session HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{"tok`,
    ),
  ).toMatch(/^HTTP\/1\.1 408 |^$/);
  expect(await answerTo(served, `${line}x: ${"a".repeat(20_000)}\r\n\r\n`)).toMatch(/^HTTP\/1\.1 431 /);
  expect(await answerTo(served, `${line}${"x: 1\r\n".repeat(9000)}\r\n`)).toMatch(/^HTTP\/1\.1 431 /);
  const chunked = `POST /api/session HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`;
  const chunk = `10000\r\n${"a".repeat(0x10000)}\r\n`;
  expect(await answerTo(served, `${chunked}${chunk.repeat(20)}0\r\n\r\n`)).toMatch(/^HTTP\/1\.1 413 |^$/);
  expect(await answerTo(served, "GET / HTTP/1.1\r\nhost: evil.test\r\nconnection: close\r\n\r\n")).toMatch(
    /^HTTP\/1\.1 403 /,
  );
  expect(
    await answerTo(served, "GET /../../package.json HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"),
  ).toMatch(/^HTTP\/1\.1 40[04] /);
});

it("Q16 whoever asks too often is told when to come again; others are not held up by it", async () => {
  const bucket = { burst: 3, perSecond: 0.5 };
  const { served, token } = await live({ limits: { perCredential: bucket, perAddress: bucket } });
  const status = async (headers: Record<string, string>) => {
    const answer = await fetch(`${served.url}/api/session`, { headers });
    return `${answer.status} ${answer.headers.get("retry-after")}`;
  };
  const ann = { authorization: `Bearer ${token}` };
  const statuses: string[] = [];
  for (let n = 0; n < 5; n++) statuses.push(await status(ann));
  expect(statuses).toEqual(["200 null", "200 null", "200 null", "429 2", "429 2"]);
  expect(await status({})).toBe("401 null");
  expect(await status({ authorization: "Bearer wrong" })).toBe("401 null");
});
