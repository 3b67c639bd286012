import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openPostgres, POSTGRES_MODULE, systemBinaries } from "./postgres.ts";

const isHere = systemBinaries() !== null && process.env["TEST_PG_URL"] === undefined;
// The first bytes of a client that asks for encryption; every server answers with one byte.
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
const LIMIT_MS = 60_000;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pawl-test-"));
  chmodSync(folder, 0o755); // Run by root, the server is another user.
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

// Without PostgreSQL on this machine its binaries would have to be downloaded, which a test does not do.
describe.skipIf(!isHere)("the PostgreSQL server for tests", { timeout: LIMIT_MS }, () => {
  it("answers, stops and leaves no files", async () => {
    const server = await openPostgres({ folder });
    expect(readdirSync(folder)).toHaveLength(1);
    const client = await greet(server.url);
    const cut = once(client, "close");
    await server.stop();
    await cut;
    expect(readdirSync(folder)).toEqual([]);
    await expect(greet(server.url)).rejects.toThrow("ECONNREFUSED");
  });

  it("ends, with its files, when the process that opened it is killed", async () => {
    const script = `
    const { openPostgres } = await import(${JSON.stringify(POSTGRES_MODULE)});
    const { url } = await openPostgres({ folder: ${JSON.stringify(folder)} });
    console.log(url);
    setInterval(() => {}, 1000);
  `;
    const owner = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [output] = await once(owner.stdout, "data");
    const url = String(output).trim();
    const client = await greet(url);
    const cut = once(client, "close");
    owner.kill("SIGKILL");
    await cut;
    await expect.poll(() => readdirSync(folder), { timeout: LIMIT_MS }).toEqual([]);
    await expect(greet(url)).rejects.toThrow("ECONNREFUSED");
  });
});

/** Opens a connection and waits until the server has said something on it. */
async function greet(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  socket.write(SSL_REQUEST);
  await once(socket, "data");
  return socket;
}
