// A client of the HTTP API
// Needs nothing but `fetch`: it runs in browsers as well. What goes in and out of each route is checked by the compiler.
import type { PawlError } from "../base/errors.ts";
import type { Api } from "./api.ts";
import { errorIn, readEvents } from "./event-reader.ts";
import type { ParamsOf } from "./route.ts";

export type { Api, RunFilterText, SessionFacts, StartText } from "./api.ts";

/** A value of the library as JSON has it. */
export type Json<T> = T extends Date
  ? string
  : T extends readonly (infer I)[]
    ? readonly Json<I>[]
    : T extends object
      ? { readonly [K in keyof T]: Json<T[K]> }
      : T;

type PathOf<K extends string> = K extends `${string} ${infer P}` ? P : never;
type Given<T, K extends string> = K extends keyof T
  ? Partial<T[K]> extends T[K]
    ? { readonly [P in K]?: T[K] }
    : { readonly [P in K]: T[K] }
  : unknown;
type Params<K extends string> =
  unknown extends ParamsOf<PathOf<K>> ? unknown : { readonly params: ParamsOf<PathOf<K>> };

/** What a call of a route needs. */
export type CallInput<K extends keyof Api> = Params<K> & Given<Api[K], "query"> & Given<Api[K], "body">;

type Arguments<K extends keyof Api> =
  Record<never, never> extends CallInput<K> ? [input?: CallInput<K>] : [input: CallInput<K>];

type Answered = { [K in keyof Api]: Api[K] extends { answer: unknown } ? K : never }[keyof Api];
type Followed = { [K in keyof Api]: Api[K] extends { events: unknown } ? K : never }[keyof Api];
type AnswerOf<K extends keyof Api> = Api[K] extends { answer: infer A } ? Json<A> : never;
type EventOf<K extends keyof Api> = Api[K] extends { events: infer E } ? Json<E> : never;

export interface ClientOptions {
  /** Where the server is: `http://127.0.0.1:7295`. Default, in a browser: where its page came from. */
  readonly url?: string;
  /** Of a credential. A browser that has signed in needs none. */
  readonly token?: string;
  /** What `POST /api/session` gave: a browser's changes need it. */
  readonly csrf?: string;
  /** What requests are sent with. */
  readonly fetch?: typeof globalThis.fetch;
}

export interface Client {
  /** Calls a route: `call("GET /api/runs/:id", { params: { id } })`. Throws a `PawlError` with the code of the server's. */
  call<K extends Answered>(route: K, ...input: Arguments<K>): Promise<AnswerOf<K>>;
  /** Follows a live view until it ends. Goes on by itself where a connection breaks: no event is left out, none comes twice. */
  follow<K extends Followed>(
    route: K,
    input: CallInput<K> & { readonly signal?: AbortSignal },
  ): AsyncIterable<EventOf<K>>;
}

interface Input {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

export function createClient(options: ClientOptions = {}): Client {
  const { url = "", token, csrf, fetch: send = globalThis.fetch } = options;
  const request = async (
    route: string,
    { params = {}, query = {}, body, signal }: Input,
    more: Readonly<Record<string, string>> = {},
  ) => {
    const [method = "GET", path = "/"] = route.split(" ");
    const filled = path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
    const response = await send(`${url.replace(/\/$/, "")}${filled}${queryText(query)}`, {
      method,
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(csrf !== undefined && { "x-pawl-csrf": csrf }),
        ...(body !== undefined && { "content-type": "application/json" }),
        ...more,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal !== undefined && { signal }),
    });
    if (!response.ok) throw await errorOf(response);
    return response;
  };
  return {
    call: async (route, ...[input = {}]) => (await request(route, input as Input)).json() as never,
    follow: (route, input) =>
      readEvents((headers) => request(route, input as Input, headers), (input as Input).signal) as never,
  };
}

function queryText(query: NonNullable<Input["query"]>): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as [string, string]],
  );
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}

async function errorOf(response: Response): Promise<PawlError> {
  return errorIn(await response.json().catch(() => null), response.status);
}
