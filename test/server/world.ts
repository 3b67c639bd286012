// A server without a socket over a memory store, and somebody of each role who may ask it.
import { onTestFinished } from "vitest";
import { Pawl } from "../../src/client/pawl.ts";
import type { PawlOptions } from "../../src/client/pawl-options.ts";
import type { Store } from "../../src/core/store.ts";
import { type App, type AppOptions, createApp } from "../../src/server/app.ts";
import { type Credential, newCredential, ROLES, type Role } from "../../src/server/credentials.ts";

export const HOST = "127.0.0.1:7295";

/** The people of the tests: one of each role in each store. */
export type Person = Role | "nobody" | `${Role}@${string}`;

export interface Asked {
  readonly as?: Person;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface World {
  readonly app: App;
  readonly pawl: Pawl;
  /** The stores, by name. */
  readonly tenants: Readonly<Record<string, Pawl>>;
  token(person: Person): string;
  /** Sends "GET /api/runs", with JSON as its body. */
  ask(what: string, asked?: Asked): Promise<Response>;
  /** The same, and gives the JSON that came back. */
  json<T = Record<string, never>>(what: string, asked?: Asked): Promise<T>;
}

interface WorldOptions extends Omit<AppOptions, "pawl" | "tenants" | "credentials"> {
  readonly engine?: PawlOptions;
  /** Names of other stores. */
  readonly others?: readonly string[];
  readonly stores?: Readonly<Record<string, string | Store>>;
}

export async function serverWorld({
  engine = {},
  others = [],
  stores = {},
  ...options
}: WorldOptions = {}): Promise<World> {
  const open = (name: string) =>
    Pawl.open(stores[name] ?? "memory:", { ...engine, handleSignals: false, poll: "20ms" });
  const pawl = await open("default");
  const tenants = Object.fromEntries(await Promise.all(others.map(async (name) => [name, await open(name)] as const)));
  const tokens = new Map<string, string>();
  const credentials: Credential[] = [];
  for (const store of [undefined, ...others])
    for (const role of ROLES) {
      const { token, credential } = newCredential(`${role}-of-${store ?? "default"}`, [role]);
      tokens.set(store === undefined ? role : `${role}@${store}`, token);
      credentials.push({ ...credential, groups: ["physician"], ...(store !== undefined && { store }) });
    }
  const app = createApp({ web: null, ...options, pawl, tenants, credentials });
  onTestFinished(async () => {
    await app.stop();
    await Promise.all([pawl, ...Object.values(tenants)].map((one) => one.close({ drain: 0 })));
  });
  const token = (person: Person) => tokens.get(person) ?? "";
  const ask = (what: string, { as = "admin", body, headers = {} }: Asked = {}) => {
    const [method = "GET", path = "/"] = what.split(" ");
    return app.fetch(
      new Request(`http://${HOST}${path}`, {
        method,
        headers: {
          host: HOST,
          ...(as !== "nobody" && { authorization: `Bearer ${token(as)}` }),
          ...(body !== undefined && { "content-type": "application/json" }),
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      }),
    );
  };
  const json = async <T>(what: string, asked?: Asked) => (await (await ask(what, asked)).json()) as T;
  return { app, pawl, tenants: { default: pawl, ...tenants }, token, ask, json };
}
