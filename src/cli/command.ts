// What all commands share: the options every one has, help with an example, and one way to run and to fail.
import type { Command } from "commander";
import { Pawl } from "../client/pawl.ts";
import type { PawlOptions } from "../client/pawl-options.ts";
import type { Log } from "../core/context.ts";
import { environmentOptions } from "./environment.ts";
import type { ExitCode } from "./exit-codes.ts";
import { reportFailure } from "./failure.ts";
import { createOutput, type Output } from "./output.ts";
import { assertStoreExists, storeUrl } from "./store-url.ts";

export interface CommonOptions {
  readonly json?: boolean;
  readonly store?: string;
}

export interface Call<O> {
  readonly options: O & CommonOptions;
  readonly out: Output;
  /** The store this call is about. */
  readonly url: string;
  /** What was called, such as "pawl cancel". */
  readonly command: string;
  /** All that was given with it, as text. */
  readonly given: string;
}

/** Adds a command with the options that all have, and examples in its help. */
export function addCommand(
  program: Command,
  usage: string,
  summary: string,
  examples: readonly string[],
  storeHelp: string = STORE_HELP,
): Command {
  const command = program
    .command(usage)
    .summary(summary)
    .description(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`);
  const title = examples.length === 1 ? "Example" : "Examples";
  command.addHelpText("after", `\n${title}:\n${examples.map((line) => `  $ ${line}`).join("\n")}`);
  return command.option("--json", JSON_HELP).option("--store <url>", storeHelp);
}

export const JSON_HELP = "print the result as JSON, for programs";
export const STORE_HELP =
  "the store: a file, sqlite:path, postgres://…, file:dir (default: PAWL_STORE, else .pawl/pawl.db)";

/** Wraps what a command does: gives it its options and output, and turns what it returns or throws into the exit code. */
export function action<O, A extends readonly unknown[]>(
  body: (call: Call<O>, ...args: A) => Promise<ExitCode>,
): (...params: unknown[]) => Promise<void> {
  return async (...params) => {
    const command = params.at(-1) as Command;
    const args = params.slice(0, -2) as unknown as A;
    const options = { ...optionsAbove(command), ...command.opts<O & CommonOptions>() };
    const out = createOutput(options.json === true);
    try {
      const url = storeUrl(options.store);
      const given = JSON.stringify({ args, options });
      process.exitCode = await body({ options, out, url, command: pathOf(command), given }, ...args);
    } catch (error) {
      process.exitCode = reportFailure(error, out);
    }
  };
}

/** The words of a command, from the first. */
function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** What all commands have may be given before them. */
function optionsAbove({ parent }: Command): CommonOptions {
  return parent === null ? {} : { ...optionsAbove(parent), ...parent.opts<CommonOptions>() };
}

/** Opens the store as a client for as long as `body` takes. */
export async function withClient<T>(
  call: Call<unknown>,
  body: (pawl: Pawl) => Promise<T>,
  how: { readonly create?: boolean; readonly logger?: Log } = {},
): Promise<T> {
  if (how.create !== true) assertStoreExists(call.url);
  return withPawl(call, { logger: how.logger ?? silentLog }, body);
}

export async function withPawl<T>(
  call: Call<unknown>,
  options: PawlOptions,
  body: (pawl: Pawl) => Promise<T>,
): Promise<T> {
  const pawl = await Pawl.open(call.url, { ...environmentOptions(), ...options, handleSignals: false });
  try {
    return await body(pawl);
  } finally {
    const progress = call.out.progress("Letting running steps finish");
    await pawl.close().finally(progress.done);
  }
}

const silentLog: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
