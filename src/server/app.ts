// The server, without a socket
// One way for every request: host, route, who it is, how often, from which page, which role, what it says, and only then the route itself.
//
//   AP1. Deny by default: whatever is not in the table of routes is not there, and who is not known gets nothing but what is public (Q3).
//   AP2. The store comes from the credential (CR1). No id in a path, a query or a body leads anywhere else (Q4).
//   AP3. Nothing of a body is parsed before its sender may send it (Q2, Q16).
//   AP4. Every answer has the headers that keep a browser from making more of it than it is (Q17).
//   AP5. What changes something is in the audit log before it is done, and what is refused is there as that (Q20).
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Context, Hono } from "hono";
import { systemClock } from "../base/clock.ts";
import { messageWithCause, PawlError } from "../base/errors.ts";
import { jsonable } from "../base/jsonable.ts";
import { consoleLog, harmless } from "../client/console-log.ts";
import { packageVersion } from "../client/package-version.ts";
import type { Pawl } from "../client/pawl.ts";
import type { Log } from "../core/context.ts";
import type { Workflow } from "../core/workflow.ts";
import { auditedAnswer, auditedRefusal } from "./audits.ts";
import { type Credential, Credentials, isAllowed, newToken, OWN_STORE, type Role, type Who } from "./credentials.ts";
import { EventStreams } from "./event-stream.ts";
import { failureOf, forbidden, notFound, unauthenticated } from "./failure.ts";
import { networkOf } from "./network.ts";
import { readQuery } from "./query.ts";
import { RateLimit } from "./rate-limits.ts";
import { Refusals } from "./refusals.ts";
import { assertType, parseBody, readBytes } from "./request-body.ts";
import { type Call, isWrite, type Route, type SignedCall } from "./route.ts";
import { ALL_ROUTES, PAGES } from "./routes/all.ts";
import { Hosts } from "./same-origin.ts";
import { SERVER_LIMITS, type ServerLimits } from "./server-limits.ts";
import type { ServerParts } from "./server-parts.ts";
import { cookieName, cookieOf } from "./session-cookie.ts";
import { isSameSecret, type Session, Sessions } from "./sessions.ts";
import { misfitOf, object } from "./shape.ts";
import { type Web, webOf } from "./web.ts";
import { type Hooks, hooksOf } from "./webhooks.ts";

export interface AppOptions {
  /** The engine whose store is served, to every credential that names no other. */
  readonly pawl?: Pawl;
  /** Other stores, by the name that credentials give as `store`. */
  readonly tenants?: Readonly<Record<string, Pawl>>;
  /** Who may ask. None: only whoever has a one-time token. */
  readonly credentials?: readonly Credential[];
  /** Names that people reach the server by, besides those of this machine and that of `publicUrl`. */
  readonly hosts?: readonly string[];
  /** Where people reach it, behind a proxy: `https://pawl.example.com`. */
  readonly publicUrl?: string;
  /** Believe the last address of `X-Forwarded-For`. Only behind a proxy that sets it. Default false. */
  readonly trustProxy?: boolean;
  /** How much it takes on: of bodies, connections, requests and event streams. */
  readonly limits?: Partial<ServerLimits>;
  /** Webhooks that start runs, by the name that senders call: `POST /api/hooks/NAME`. */
  readonly hooks?: Hooks;
  /** Whose code is known here: their graphs can be drawn. */
  readonly workflows?: readonly Workflow<never, unknown>[];
  /** The folder of the dashboard. Default: the one that Pawl brings along. `null`: none. */
  readonly web?: string | null;
  /** Where faults are told. Default: stderr. */
  readonly logger?: Log;
}

export interface App {
  /** Answers a request; `env` is what Node has of it. */
  fetch(request: Request, env?: NodeEnv): Promise<Response>;
  readonly parts: ServerParts;
  /** Closes event streams, and records what is still to be. Requests that are under way may finish. */
  stop(): Promise<void>;
}

export interface NodeEnv {
  readonly incoming?: IncomingMessage;
  readonly outgoing?: ServerResponse;
}

export function createApp(options: AppOptions): App {
  const limits = { ...SERVER_LIMITS, ...options.limits };
  const log = harmless(options.logger ?? consoleLog);
  const tenants = tenantsOf(options);
  const clock = systemClock;
  const credentials = new Credentials(options.credentials ?? [], OWN_STORE);
  for (const one of options.credentials ?? []) assertTenant(one, tenants);
  const parts: ServerParts = {
    tenants,
    credentials,
    sessions: new Sessions(clock, limits),
    streams: new EventStreams(clock, limits),
    refusals: new Refusals(clock, limits, log),
    hooks: hooksOf(options.hooks ?? {}, tenants, OWN_STORE),
    routes: ALL_ROUTES,
    workflows: (options.workflows ?? []) as readonly Workflow[],
    publicUrl: options.publicUrl ?? null,
    version: packageVersion(),
    limits,
    clock,
    log,
  };
  const server = new Server(parts, new Hosts(options.hosts ?? [], parts.publicUrl), options, webOf(options.web));
  const app = server.app();
  return {
    parts,
    fetch: async (request, env) => app.fetch(request, env ?? {}),
    stop: () => {
      parts.streams.stop();
      return parts.refusals.stop();
    },
  };
}

function tenantsOf({ pawl, tenants = {} }: AppOptions): ReadonlyMap<string, Pawl> {
  return new Map([...(pawl === undefined ? [] : [[OWN_STORE, pawl] as const]), ...Object.entries(tenants)]);
}

function assertTenant({ name, store = OWN_STORE }: Credential, tenants: ReadonlyMap<string, Pawl>): void {
  if (tenants.has(store)) return;
  throw new PawlError("invalid_argument", `The store of credential "${name}" is none of those that are served.`, {
    fields: { field: "store", credential: name },
  });
}

/** Somebody, and how they have shown it; `null`: nobody. */
type Shown = { readonly who: Who; readonly session: Session | null } | null;

class Server {
  readonly #parts: ServerParts;
  readonly #hosts: Hosts;
  readonly #trustsProxy: boolean;
  readonly #web: Web;
  readonly #perAddress: RateLimit;
  readonly #perCredential: RateLimit;
  readonly #perTenant: RateLimit;

  constructor(parts: ServerParts, hosts: Hosts, { trustProxy = false }: AppOptions, web: Web) {
    const { clock, limits } = parts;
    this.#parts = parts;
    this.#hosts = hosts;
    this.#trustsProxy = trustProxy;
    this.#web = web;
    this.#perAddress = new RateLimit(clock, limits.perAddress);
    this.#perCredential = new RateLimit(clock, limits.perCredential);
    this.#perTenant = new RateLimit(clock, limits.perTenant);
  }

  app(): Hono<{ Bindings: NodeEnv }> {
    const app = new Hono<{ Bindings: NodeEnv }>();
    app.use("*", async (context, next) => {
      this.#hosts.assertKnown(context.req.raw.headers.get("host"));
      await next();
    });
    for (const route of [...this.#parts.routes, ...PAGES])
      app.on(route.spec.method, route.spec.path, (context) => this.#answer(route, context));
    app.notFound((context) => this.#notThere(context));
    app.onError((error, context) => this.#failed(error, context));
    return app;
  }

  async #answer(route: Route, context: Context<{ Bindings: NodeEnv }>): Promise<Response> {
    const { raw: request } = context.req;
    const from = this.#addressOf(context);
    const shown = this.#shown(context, from);
    if (!isWrite(route)) {
      const answer = await this.#handled(route, await this.#admitted(route, context, shown, from));
      // Nobody reads what is not sent: an event stream would stay open.
      if (request.method === "HEAD") await answer.body?.cancel();
      return answer;
    }
    const who = shown instanceof PawlError ? null : (shown?.who ?? null);
    let call: SignedCall | null = null;
    try {
      call = await this.#admitted(route, context, shown, from);
      if (isSigned(route)) return await this.#handled(route, call, auditedAnswer);
      return await this.#handled(route, call);
    } catch (error) {
      if (call === null || !isSigned(route)) {
        const bytes = call?.bytes ?? new Uint8Array();
        const facts = { who, from, headers: request.headers, params: context.req.param(), bytes };
        await auditedRefusal(route, this.#parts, facts, error);
      }
      throw error;
    }
  }

  async #handled(route: Route, call: SignedCall, around: typeof auditedAnswer = alone): Promise<Response> {
    const value = await around(route, call, () => route.handle(call));
    return guarded(value instanceof Response ? value : json(value, route.spec.status ?? 200));
  }

  /** AP1 to AP3, in this order. */
  async #admitted(
    route: Route,
    context: Context<{ Bindings: NodeEnv }>,
    shown: Shown | PawlError,
    from: string,
  ): Promise<SignedCall> {
    const { raw: request } = context.req;
    if (shown instanceof PawlError) throw shown;
    if (isWrite(route)) this.#assertOwnPage(route, request.headers, shown);
    this.#assertRole(route, shown);
    const query = readQuery(route.spec.query ?? {}, new URL(request.url).searchParams);
    const { body, bytes } = await this.#read(route, request);
    const call: Call & { readonly pawl: Pawl | undefined } = {
      params: context.req.param(),
      query,
      body,
      bytes,
      headers: request.headers,
      from,
      signal: request.signal,
      url: new URL(request.url),
      cutOff: () => void context.env.outgoing?.destroy(),
      isStillIn: () => shown?.session == null || this.#parts.sessions.isOpen(shown.session),
      who: shown?.who ?? null,
      server: this.#parts,
      pawl: shown === null ? undefined : this.#parts.tenants.get(shown.who.store),
    };
    // Where a role is needed there is somebody, and with them their store (AP2).
    return call as SignedCall;
  }

  #addressOf({ env, req }: Context<{ Bindings: NodeEnv }>): string {
    const forwarded = this.#trustsProxy ? req.header("x-forwarded-for")?.split(",").at(-1)?.trim() : undefined;
    return (forwarded ?? env.incoming?.socket.remoteAddress ?? "unknown").slice(0, 64);
  }

  /**
   * Whoever asks, as often as they may: who asks too often fills nothing, not even the audit log. A wrong token is nobody's, and not for free either;
   * what is refused for it is recorded like any other refusal.
   */
  #shown({ req }: Context, from: string): Shown | PawlError {
    const { headers } = req.raw;
    const [, token] = /^Bearer ([\w.~+/-]+=*)$/.exec(headers.get("authorization") ?? "") ?? [];
    const shown = token === undefined ? this.#sessionOf(headers) : this.#holderOf(token);
    this.#assertRate(shown, from);
    const isStranger = shown === null && token !== undefined;
    return isStranger ? unauthenticated("This token is not known here. Ask for another one.") : shown;
  }

  #holderOf(token: string): Shown {
    const who = this.#parts.credentials.find(token);
    return who === null ? null : { who, session: null };
  }

  #sessionOf(headers: Headers): Shown {
    const cookie = cookieOf(headers, cookieName(headers.get("host") ?? undefined));
    const session = cookie === null ? null : this.#parts.sessions.find(cookie);
    return session === null ? null : { who: session.who, session };
  }

  #assertRate(shown: Shown, from: string): void {
    const waits =
      shown === null
        ? [this.#perAddress.take(networkOf(from))]
        : [this.#perCredential.take(`${shown.who.store}\n${shown.who.name}`), this.#perTenant.take(shown.who.store)];
    const retryAfter = waits.find((wait) => wait !== null);
    if (retryAfter == null) return;
    throw new PawlError("rate_limited", `Too many requests. Come again in ${retryAfter} s.`, {
      fields: { retryAfter },
    });
  }

  #assertOwnPage({ spec }: Route, headers: Headers, shown: Shown): void {
    const session = shown?.session ?? null;
    this.#hosts.assertOwnPage(headers, session !== null);
    if (session === null || spec.role === "own") return;
    const csrf = headers.get("x-pawl-csrf");
    if (csrf !== null && isSameSecret(csrf, session.csrf)) return;
    throw forbidden("The request lacks the session's own token. Send what GET /api/session gives as x-pawl-csrf.", {
      field: "x-pawl-csrf",
    });
  }

  #assertRole({ spec }: Route, shown: Shown): void {
    if (spec.role === "public" || spec.role === "own") return;
    if (shown === null)
      throw unauthenticated(
        "Sign in first: send a token as `Authorization: Bearer TOKEN`, or open the printed address.",
      );
    const role: Role = spec.role;
    if (isAllowed(shown.who, role)) return;
    throw forbidden(`${shown.who.name} may not do this: it needs the role ${role}.`, { role });
  }

  async #read(route: Route, request: Request): Promise<{ body: unknown; bytes: Uint8Array }> {
    const { limits } = this.#parts;
    const { body: fields, reads = fields === undefined ? null : "json" } = route.spec;
    if (!isWrite(route) || (reads === null && request.body === null)) return { body: {}, bytes: new Uint8Array() };
    if (reads !== "bytes") assertType(request.headers, reads ?? "json");
    const bytes = await readBytes(request, limits);
    if (reads === "bytes") return { body: {}, bytes };
    const body = parseBody(bytes, reads ?? "json", limits);
    const misfit = misfitOf(object("", fields ?? {}).schema, body);
    if (misfit === null) return { body, bytes };
    const what = misfit.path === "" ? "The body" : `\`${misfit.path}\` of the body`;
    throw new PawlError("invalid_argument", `${what} ${misfit.why}. Correct it and send it again.`, {
      fields: { field: misfit.path },
    });
  }

  async #notThere(context: Context<{ Bindings: NodeEnv }>): Promise<Response> {
    const { raw: request } = context.req;
    const shown = this.#shown(context, this.#addressOf(context));
    if (shown instanceof PawlError) throw shown;
    const { pathname } = new URL(request.url);
    const page =
      request.method === "GET" || request.method === "HEAD" ? this.#web.find(pathname, request.headers) : null;
    if (page !== null) return guarded(page);
    if (shown === null && pathname.startsWith("/api/")) throw unauthenticated("Sign in first.");
    throw notFound("such page or route");
  }

  #failed(error: unknown, { req }: Context): Response {
    const note = newToken().slice(0, 8);
    const { status, body, retryAfter } = failureOf(error, note);
    // The token of a link is worth a decision: no log has it.
    const path = req.path.replace(/^\/approve\/[^/]+/, "/approve/:token");
    if (status >= 500)
      this.#parts.log.error(`${note}: ${req.method} ${path} failed: ${messageWithCause(error)}`, { error });
    const response = json(body, status);
    if (retryAfter !== null) response.headers.set("retry-after", String(retryAfter));
    if (status === 401) response.headers.set("www-authenticate", "Bearer");
    return guarded(response);
  }
}

/** Whether it is for people of a role, whose store is known. */
function isSigned({ spec }: Route): boolean {
  return spec.role !== "public" && spec.role !== "own";
}

const alone: typeof auditedAnswer = (_route, _call, work) => work();

function json(value: unknown, status: number): Response {
  const headers = { "content-type": "application/json; charset=utf-8" };
  return new Response(JSON.stringify(jsonable(value) ?? null), { status, headers });
}

const CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** AP4. What is not said otherwise is kept by nobody. */
function guarded(response: Response): Response {
  const { headers } = response;
  headers.set("content-security-policy", CSP);
  headers.set("x-content-type-options", "nosniff");
  headers.set("referrer-policy", "no-referrer");
  headers.set("x-frame-options", "DENY");
  headers.set("cross-origin-opener-policy", "same-origin");
  headers.set("cross-origin-resource-policy", "same-origin");
  if (!headers.has("cache-control")) headers.set("cache-control", "no-store");
  return response;
}
