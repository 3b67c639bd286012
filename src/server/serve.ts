// The server on a socket
//
//   SV1. Without credentials it listens on this machine alone, and whoever opens the printed address first is signed in, once (Q1).
//   SV2. Slow senders lose their connection: headers and requests have to arrive in time (Q16).
//   SV3. To stop is to close event streams, to finish what is under way, and then to go.
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { userInfo } from "node:os";
import { createAdaptorServer } from "@hono/node-server";
import { PawlError } from "../base/errors.ts";
import { isName } from "../base/ids.ts";
import { type App, type AppOptions, createApp } from "./app.ts";
import { OWN_STORE, type Who } from "./credentials.ts";
import { isLoopback } from "./same-origin.ts";

export interface ServeOptions extends AppOptions {
  /** Default 7295. 0: any that is free. */
  readonly port?: number;
  /** Default 127.0.0.1. Any other needs credentials. */
  readonly host?: string;
  /** Who it is that uses the one-time token of a server without credentials. Default: the user of this process. */
  readonly user?: string;
}

export interface Served {
  readonly port: number;
  /** Where people reach it; with a one-time token, the first to open it is signed in. */
  readonly url: string;
  readonly app: App;
  /** Makes another one-time token, in an address to open; `null` where credentials are configured. */
  link(): string | null;
  /** Lets requests that are under way finish, and stops. The engines stay open. */
  stop(): Promise<void>;
}

export const DEFAULT_PORT = 7295;

export async function serve(options: ServeOptions): Promise<Served> {
  const { port = DEFAULT_PORT, host = "127.0.0.1" } = options;
  const hasCredentials = (options.credentials ?? []).length > 0;
  if (!hasCredentials && !isLoopback(host)) throw openToAll(host);
  const app = createApp({ ...options, hosts: [...(options.hosts ?? []), ...(isAny(host) ? [] : [bracketed(host)])] });
  const server = listenerOf(app);
  await listening(server, port, host);
  const { port: actual } = server.address() as AddressInfo;
  const base = options.publicUrl ?? `http://${isAny(host) ? "127.0.0.1" : bracketed(host)}:${actual}`;
  const link = () => {
    if (hasCredentials) return null;
    return `${base.replace(/\/$/, "")}/#token=${app.parts.credentials.createOnce(localUser(options.user))}`;
  };
  return { port: actual, url: base, app, link, stop: () => stop(server, app) };
}

function listenerOf(app: App): Server {
  const { limits } = app.parts;
  const server = createAdaptorServer({
    fetch: (request, env) => app.fetch(request, env as Parameters<App["fetch"]>[1]),
    overrideGlobalObjects: false,
    serverOptions: {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.keepAliveMs,
      // How often the two above are looked at.
      connectionsCheckingInterval: Math.max(50, Math.min(5000, limits.headersMs / 2)),
    },
  }) as Server;
  server.maxConnections = limits.connections;
  return server;
}

function listening(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(unavailable(error, port, host)));
    server.listen(port, host, () => resolve());
  });
}

/** How long requests that are under way may take when the server stops. */
const STOP_MS = 10_000;
const SWEEP_MS = 20;

async function stop(server: Server, app: App): Promise<void> {
  const recorded = app.stop();
  if (!server.listening) return recorded;
  // A connection whose request has just been answered would be kept for the next one.
  const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
  const late = setTimeout(() => server.closeAllConnections(), STOP_MS);
  await new Promise<void>((resolve) => server.close(() => resolve()));
  clearInterval(sweep);
  clearTimeout(late);
  await recorded;
}

function isAny(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

function bracketed(host: string): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}

function localUser(given: string | undefined): Who {
  return { name: given ?? systemUser(), roles: ["admin"], groups: [], store: OWN_STORE };
}

function systemUser(): string {
  try {
    const { username } = userInfo();
    return isName(username) ? username : "local";
  } catch {
    // A user without an entry in the system's list, as in some containers.
    return "local";
  }
}

function openToAll(host: string): PawlError {
  return new PawlError(
    "invalid_argument",
    `Without credentials the server listens on this machine only, not on ${host}: everybody who reaches it could act. Set PAWL_AUTH to a file of credentials (\`pawl serve --new-token NAME ROLE\` makes one), or leave --host out.`,
    { fields: { host } },
  );
}

function unavailable(error: NodeJS.ErrnoException, port: number, host: string): PawlError {
  const why = error.code === "EADDRINUSE" ? "something else listens there" : error.message;
  return new PawlError(
    "invalid_argument",
    `The server cannot listen on ${host}:${port}: ${why}. Give another --port, or 0 for any that is free.`,
    { fields: { host, port }, cause: error },
  );
}
