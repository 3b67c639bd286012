// Secrets of a process: where they come from, and which of them its steps have been given.
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { PawlError } from "../base/errors.ts";
import type { SecretSource } from "../core/secret-source.ts";
import { formsOf } from "./secret-forms.ts";
import { SecretSearch } from "./secret-search.ts";

/** What a secret stands for; nothing if it does not have it. */
export type SecretProvider = (name: string) => string | null | undefined | Promise<string | null | undefined>;

/** What is shorter would be found in texts that have nothing to do with it. */
const LEAST_CHARACTERS = 8;

/** A function, variables of the environment by name, or a folder with a file for each secret, as orchestrators mount them. */
export type SecretOrigin = SecretProvider | { readonly environment: readonly string[] } | { readonly folder: string };

/** Asks where secrets come from, in order, and remembers what was given: whatever is recorded from then on is searched for it. */
export function secretSource(given: SecretOrigin | readonly SecretOrigin[] | undefined): SecretSource | null {
  if (given === undefined) return null;
  const providers = (Array.isArray(given) ? (given as readonly SecretOrigin[]) : [given as SecretOrigin]).map(
    providerOf,
  );
  const search = new SecretSearch();
  const known = new Set<string>();
  return {
    hide: (text) => search.hide(text),
    async resolve(name) {
      for (const provider of providers) {
        const value = await provider(name);
        if (value === null || value === undefined) continue;
        assertSecret(name, value);
        if (!known.has(value)) search.add(formsOf(value));
        known.add(value);
        return value;
      }
      return null;
    },
  };
}

function providerOf(origin: SecretOrigin): SecretProvider {
  if (typeof origin === "function") return origin;
  const { environment, folder } = (origin ?? {}) as { environment?: unknown; folder?: unknown };
  if (typeof folder === "string") return fromFolder(folder);
  if (Array.isArray(environment)) return fromEnvironment(new Set<unknown>(environment));
  throw new PawlError(
    "invalid_argument",
    '`secrets` has something that gives none. Give { environment: ["STRIPE_KEY"] }, { folder: "/run/secrets" }, or a function (name) => value.',
    { fields: { option: "secrets" } },
  );
}

/** Only those that were named: whoever may name any could have every one. */
function fromEnvironment(names: ReadonlySet<unknown>): SecretProvider {
  return (name) => (names.has(name) ? process.env[name] : null);
}

/** A line break at the end of a file does not count. Names lead to no other folder (`isSecretName`). */
function fromFolder(folder: string): SecretProvider {
  const root = resolve(folder);
  return async (name) => {
    try {
      return (await readFile(join(root, name), "utf8")).replace(/\r?\n$/, "");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
  };
}

/** What it is stays unsaid. */
function assertSecret(name: string, value: unknown): void {
  if (typeof value === "string" && value.length >= LEAST_CHARACTERS) return;
  throw new PawlError(
    "invalid_argument",
    `The secret "${name}" has fewer than ${LEAST_CHARACTERS} characters: it could not be told from other text, and so not be kept out of the journal. Use a longer one.`,
    { fields: { secret: name } },
  );
}
