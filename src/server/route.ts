// Routes
// The table of what the server answers is made of values: a method, a path, who may use it, and what goes in and out. The server, the document of
// the API and the tests of permissions read the same table, so a route without a rule cannot be.
import type { Pawl } from "../client/pawl.ts";
import type { Role, Who } from "./credentials.ts";
import type { ServerParts } from "./server-parts.ts";
import type { Fields, Shape, ValuesOf } from "./shape.ts";

export type Method = "GET" | "POST" | "PUT" | "DELETE";

/** Who may use a route. "public": everybody. "own": the route itself checks what it is given, such as a signature. */
export type Access = Role | "public" | "own";

/** How the body of a request is read. "json": by the fields of `body`. "form": by them, as a form of a page sends it. "bytes": as it is. */
export type Reads = "json" | "form" | "bytes";

type NameIn<S extends string> = S extends `${infer Name}/${string}` ? Name : S;

/** The names behind colons in a path. */
export type ParamsOf<P extends string> = P extends `${string}:${infer Rest}`
  ? { readonly [K in NameIn<Rest>]: string } & ParamsOf<Rest extends `${NameIn<Rest>}${infer More}` ? More : "">
  : unknown;

/** A request that may be answered: everything in it has been checked. */
export interface Call<Params = unknown, Query = unknown, Body = unknown> {
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  /** The body as it came. */
  readonly bytes: Uint8Array;
  readonly headers: Headers;
  /** Where it came from: an address. */
  readonly from: string;
  /** Aborted when whoever asked has gone. */
  readonly signal: AbortSignal;
  readonly url: URL;
  /** Drops the connection, whatever is under way on it. */
  cutOff(): void;
  /** Whether the session that it was asked in still is: nobody has signed out, and it was used lately. */
  isStillIn(): boolean;
  /** `null`: nobody has signed in; only where access is "public" or "own". */
  readonly who: Who | null;
  readonly server: ServerParts;
}

/** A request of somebody who has signed in, to the store that is theirs. */
export interface SignedCall<Params = unknown, Query = unknown, Body = unknown> extends Call<Params, Query, Body> {
  readonly who: Who;
  readonly pawl: Pawl;
}

export interface RouteSpec<P extends string, A extends Access, Q extends Fields, B extends Fields> {
  readonly method: Method;
  readonly path: P;
  readonly role: A;
  /** One sentence for the document of the API. */
  readonly summary: string;
  readonly query?: Q;
  readonly body?: B;
  /** Default: "json" where there is a `body`, else a body is refused. */
  readonly reads?: Reads;
  /** Of a good answer. Default 200. */
  readonly status?: 200 | 201 | 202;
  /** Of the JSON in a good answer. */
  readonly answer?: Shape;
  /** What a good answer is instead of JSON. */
  readonly answers?: "text/event-stream" | "text/html" | "text/plain" | "application/json";
}

type CallOf<P extends string, A extends Access, Q extends Fields, B extends Fields> = A extends Role
  ? SignedCall<ParamsOf<P>, ValuesOf<Q>, ValuesOf<B>>
  : Call<ParamsOf<P>, ValuesOf<Q>, ValuesOf<B>>;

/** A line of the table. */
export interface Route {
  readonly spec: RouteSpec<string, Access, Fields, Fields>;
  /** Gives a value, which is sent as JSON, or a whole response. */
  handle(call: SignedCall): Promise<unknown>;
}

/** A line of the table: what it is for, and what it does. */
export function route<
  const P extends string,
  A extends Access,
  Q extends Fields = Record<never, never>,
  B extends Fields = Record<never, never>,
>(spec: RouteSpec<P, A, Q, B>, handle: (call: CallOf<P, A, Q, B>) => unknown): Route {
  return { spec, handle: async (call) => handle(call as unknown as CallOf<P, A, Q, B>) };
}

/** What changes nothing may be asked from anywhere that its answer cannot be read from. */
export function isWrite({ spec }: Route): boolean {
  return spec.method !== "GET";
}
