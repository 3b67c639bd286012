import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { PawlError } from "../base/errors.ts";
import { shownUrl } from "../base/shown-url.ts";
import { Pawl } from "../client/pawl.ts";
import type { PawlOptions } from "../client/pawl-options.ts";
import type { Credential, Hooks, Served, ServeOptions } from "../server/index.ts";
import { action, addCommand, type Call } from "./command.ts";
import { environmentOptions, publicUrlOption } from "./environment.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { wholeNumber } from "./input.ts";
import { onInterrupt } from "./interrupt.ts";
import { loadWork } from "./load.ts";

interface ServeCommandOptions {
  readonly port?: string;
  readonly host?: string;
  readonly auth?: string;
  readonly allowHost?: readonly string[];
  readonly publicUrl?: string;
  readonly trustProxy?: boolean;
  readonly hooks?: string;
  readonly newToken?: readonly string[];
}

export function addServe(program: Command): void {
  addCommand(program, "serve [files...]", "serve the dashboard and the HTTP API of a store, until it is stopped", [
    "pawl serve",
    "pawl serve workflows/*.ts --port 8080   # works on these workflows, too",
    "pawl serve --new-token ann operator",
    "PAWL_AUTH=auth.json pawl serve --host 0.0.0.0 --public-url https://pawl.example.com --trust-proxy",
  ])
    .option("--port <n>", "where to listen; 0: any that is free (default: 7295)")
    .option("--host <address>", "where to listen (default: 127.0.0.1); any other needs credentials")
    .option("--auth <file>", "the credentials: a JSON file (default: PAWL_AUTH)")
    .option("--allow-host <name...>", "names that people reach it by, besides that of --public-url")
    .option("--public-url <url>", "where people reach it, behind a proxy")
    .option("--trust-proxy", "believe the address in X-Forwarded-For: only behind a proxy that sets it")
    .option("--hooks <file>", "webhooks that start runs: a JSON file (default: PAWL_HOOKS)")
    .option(
      "--new-token <name role...>",
      "make a token for somebody, print it with the line for the file of credentials, and stop",
    )
    .addHelpText("after", AUTH_HELP)
    .action(
      action<ServeCommandOptions, [string[]]>(async (call, files) => {
        if (call.options.newToken !== undefined) return printToken(call, call.options.newToken);
        return serveHere(call, files);
      }),
    );
}

const AUTH_HELP = `
Without credentials it listens on this machine only and prints an address that signs in whoever opens it first. The file of
credentials is a list: [{ "name": "ann", "role": "operator", "tokenSha256": "…", "groups": ["physician"], "store": "postgres://…" }].
Roles are viewer, operator, approver and admin, one or a list of them; "groups" count for approvers such as role:physician; "store"
gives that person another store than the one that is served.

The file of webhooks names them: { "shop": { "workflow": "order", "secret": "whsec_…", "scheme": "standard" } }. A sender posts to
/api/hooks/shop; its scheme is standard (Standard Webhooks), github or stripe, and "secret" may be a list while one replaces another.`;

async function printToken(
  { out }: Call<ServeCommandOptions>,
  [name = "", ...roles]: readonly string[],
): Promise<ExitCode> {
  const { newCredential } = await import("../server/index.ts");
  const { token, credential } = newCredential(name, roles);
  if (out.isJson) out.json({ token, credential });
  else {
    out.print(`Token of ${name}, shown once: ${token}`);
    out.print(`For the file of credentials: ${JSON.stringify(credential)}`);
  }
  return EXIT.ok;
}

async function serveHere(call: Call<ServeCommandOptions>, files: readonly string[]): Promise<ExitCode> {
  const { options, out, url } = call;
  const interrupt = onInterrupt();
  const credentials = await readAuth(options.auth ?? process.env.PAWL_AUTH);
  const hooks = readHooks(options.hooks ?? process.env.PAWL_HOOKS);
  const work = files.length === 0 ? null : await loadWork(files);
  const stores = [...new Set(credentials.flatMap(({ store }) => (store === undefined ? [] : [store])))];
  const opened: Pawl[] = [];
  const open = async (where: string, more: PawlOptions) => {
    const given = publicUrlOption().publicUrl ?? options.publicUrl;
    const publicUrl = given === undefined ? {} : { publicUrl: given };
    const pawl = await Pawl.open(where, { ...environmentOptions(), ...publicUrl, ...more, handleSignals: false });
    opened.push(pawl);
    return pawl;
  };
  try {
    const pawl = await open(url, work === null ? {} : { workflows: work.workflows, notifiers: work.notifiers });
    const names = storeNames(stores);
    const nameOf = (store: string) => names.get(store) ?? store;
    const tenants = Object.fromEntries(
      await Promise.all(stores.map(async (store) => [nameOf(store), await open(store, {})] as const)),
    );
    const { serve } = await import("../server/index.ts");
    const served = await serve({
      ...serveOptions(options),
      hooks: withStores(hooks, nameOf),
      pawl,
      tenants,
      credentials: credentials.map((one) => (one.store === undefined ? one : { ...one, store: nameOf(one.store) })),
      workflows: work?.workflows ?? [],
    });
    tell(call, served);
    await interrupt.asked;
    await served.stop();
  } finally {
    await Promise.all(opened.map((pawl) => pawl.close()));
    interrupt.forget();
  }
  if (out.isJson) out.json({ event: "stopped" });
  else out.note("Stopped.");
  return EXIT.ok;
}

function serveOptions({ port, host, allowHost, publicUrl, trustProxy }: ServeCommandOptions): ServeOptions {
  return {
    ...(port !== undefined && { port: wholeNumber(port, "--port", 0) }),
    ...(host !== undefined && { host }),
    ...(allowHost !== undefined && { hosts: allowHost }),
    ...(publicUrl !== undefined && { publicUrl: webAddress(publicUrl) }),
    ...(trustProxy === true && { trustProxy }),
  };
}

function webAddress(text: string): string {
  try {
    const { protocol, origin } = new URL(text);
    if (protocol === "https:" || protocol === "http:") return origin;
  } catch {
    // Said below.
  }
  throw new PawlError(
    "invalid_argument",
    `--public-url ${text} is no address. Give one such as https://pawl.example.com.`,
    {
      fields: { option: "--public-url" },
    },
  );
}

async function readAuth(file: string | undefined): Promise<readonly Credential[]> {
  if (file === undefined || file === "") return [];
  const { readCredentials } = await import("../server/index.ts");
  return readCredentials(textOf(file, "credentials", "PAWL_AUTH or --auth"), file);
}

function readHooks(file: string | undefined): Hooks {
  if (file === undefined || file === "") return {};
  const text = textOf(file, "webhooks", "PAWL_HOOKS or --hooks");
  try {
    return JSON.parse(text) as Hooks;
  } catch (cause) {
    throw new PawlError("invalid_argument", `${file} is no JSON. Give { "name": { "workflow": …, "secret": … } }.`, {
      fields: { file },
      cause,
    });
  }
}

/** Stores by the names that people see: without their passwords, and each with one of its own, so that nobody gets another one's. */
export function storeNames(stores: readonly string[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const taken = new Set(["default"]);
  for (const store of stores) {
    const shown = shownUrl(store);
    let name = shown;
    for (let n = 2; taken.has(name); n++) name = `${shown} (${n})`;
    taken.add(name);
    names.set(store, name);
  }
  return names;
}

function withStores(hooks: Hooks, nameOf: (store: string) => string): Hooks {
  const named = (hook: Hooks[string]) => (hook?.store === undefined ? hook : { ...hook, store: nameOf(hook.store) });
  return Object.fromEntries(Object.entries(hooks).map(([name, hook]) => [name, named(hook)]));
}

function textOf(file: string, what: string, where: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new PawlError("invalid_argument", `The file of ${what} ${file} cannot be read. Correct ${where}.`, {
      fields: { file },
      cause,
    });
  }
}

function tell({ out, url }: Call<ServeCommandOptions>, served: Served): void {
  const link = served.link();
  if (out.isJson) return out.json({ event: "serving", url: served.url, port: served.port, link, pid: process.pid });
  out.note(`Serving ${shownUrl(url)}. Ctrl-C stops it.`);
  out.print(link ?? served.url);
  if (link !== null) out.note("The address signs in whoever opens it first: keep it to yourself.");
}
