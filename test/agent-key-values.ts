// Servers of values under keys, for `keyValueStore`: a table in an SQLite file, and an object store that speaks HTTP with entity tags.
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { KeyValue } from "../src/agent/key-value-store.ts";
import { loadDriver } from "../src/stores/sqlite/driver.ts";

export function sqliteKeyValue(path: string): KeyValue & { close(): void } {
  const file = loadDriver().open(path);
  file.exec("pragma synchronous = off");
  file.exec("create table if not exists kv (key text primary key, value blob not null, version integer not null)");
  const get = file.prepare("select value, version from kv where key = ?");
  const insert = file.prepare("insert into kv values (?, ?, 1) on conflict do nothing");
  const update = file.prepare("update kv set value = ?, version = version + 1 where key = ? and version = ?");
  const remove = file.prepare("delete from kv where key = ? and version = ?");
  const list = file.prepare("select key from kv where substr(key, 1, length(?)) = ? order by key");
  return {
    async get(key) {
      const row = get.get(key);
      return row === undefined
        ? null
        : { value: new Uint8Array(row["value"] as Uint8Array), version: String(row["version"]) };
    },
    async put(key, value, expected) {
      const bytes = Buffer.from(value);
      if (expected === null) return Number(insert.run(key, bytes).changes) === 1 ? "1" : null;
      return Number(update.run(bytes, key, Number(expected)).changes) === 1 ? String(Number(expected) + 1) : null;
    },
    delete: async (key, expected) => Number(remove.run(key, Number(expected)).changes) === 1,
    list: async (prefix) => list.all(prefix, prefix).map((row) => String(row["key"])),
    close: () => file.close(),
  };
}

/** An object store on loopback: what is there is replaced or deleted only by its entity tag. */
export class ObjectStore {
  readonly #objects = new Map<string, { readonly body: Buffer; readonly tag: string }>();
  readonly #server: Server = createServer((request, response) => void this.#serve(request, response));
  #count = 0;

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://localhost");
    const prefix = url.searchParams.get("prefix");
    if (prefix !== null) {
      const keys = [...this.#objects.keys()].filter((key) => key.startsWith(prefix)).sort();
      response.end(JSON.stringify(keys));
      return;
    }
    const key = decodeURIComponent(url.pathname.slice(1));
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const found = this.#objects.get(key);
    const isRefused =
      (request.headers["if-none-match"] === "*" && found !== undefined) ||
      (request.headers["if-match"] !== undefined && request.headers["if-match"] !== found?.tag);
    if (isRefused) response.writeHead(412).end();
    else if (request.method === "PUT") {
      const tag = `"${createHash("md5").update(body).digest("hex")}-${++this.#count}"`;
      this.#objects.set(key, { body, tag });
      response.writeHead(200, { etag: tag }).end();
    } else if (request.method === "DELETE") {
      this.#objects.delete(key);
      response.writeHead(204).end();
    } else if (found === undefined) response.writeHead(404).end();
    else response.writeHead(200, { etag: found.tag }).end(found.body);
  }
}

export function httpKeyValue(base: string): KeyValue {
  const address = (key: string) => `${base}/${encodeURIComponent(key)}`;
  return {
    async get(key) {
      const answer = await fetch(address(key));
      if (answer.status === 404) return null;
      return { value: new Uint8Array(await answer.arrayBuffer()), version: answer.headers.get("etag") ?? "" };
    },
    async put(key, value, expected) {
      const headers: Record<string, string> = expected === null ? { "if-none-match": "*" } : { "if-match": expected };
      const answer = await fetch(address(key), { method: "PUT", headers, body: Buffer.from(value) });
      return answer.status === 412 ? null : answer.headers.get("etag");
    },
    async delete(key, expected) {
      const answer = await fetch(address(key), { method: "DELETE", headers: { "if-match": expected } });
      return answer.status !== 412;
    },
    async list(prefix) {
      const answer = await fetch(`${base}/?prefix=${encodeURIComponent(prefix)}`);
      return (await answer.json()) as string[];
    },
  };
}
