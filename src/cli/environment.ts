// What commands take from the environment for the engine that they open: keys and secrets are never arguments, which everybody on the machine can read.
import { PawlError } from "../base/errors.ts";
import type { EncryptionKey } from "../client/keyring.ts";
import type { PawlOptions } from "../client/pawl-options.ts";
import type { SecretOrigin } from "../client/secrets.ts";

type FromEnvironment = Pick<PawlOptions, "encryption" | "publicUrl" | "secret" | "secrets">;

export function environmentOptions(): FromEnvironment {
  return { ...secretOption(), ...encryptionOption(), ...secretsOption(), ...publicUrlOption() };
}

/** Where people reach the server, from `PAWL_PUBLIC_URL`: notifications of approvals then have links to decide with. */
export function publicUrlOption(): Pick<PawlOptions, "publicUrl"> {
  const [publicUrl] = listOf("PAWL_PUBLIC_URL");
  return publicUrl === undefined ? {} : { publicUrl };
}

/** What tokens of callbacks are made with, from `PAWL_SECRET`: the one for new ones first, those it has replaced behind it. */
function secretOption(): Pick<PawlOptions, "secret"> {
  const secret = listOf("PAWL_SECRET");
  return secret.length === 0 ? {} : { secret };
}

/**
 * From `PAWL_KEYS`, id:base64 with commas between, the one that seals first; `PAWL_TENANT`; `PAWL_NAMES_KEY`, the id of the key for names; and
 * `PAWL_PLAIN`, what becomes of values that are not sealed.
 */
function encryptionOption(): Pick<PawlOptions, "encryption"> {
  const keys = listOf("PAWL_KEYS").map(keyOf);
  if (keys.length === 0) return {};
  const [tenant] = listOf("PAWL_TENANT");
  const [names] = listOf("PAWL_NAMES_KEY");
  const plain = plainOption();
  return {
    encryption: {
      keys,
      ...(tenant !== undefined && { tenant }),
      ...(names !== undefined && { names }),
      ...(plain !== null && { plain }),
    },
  };
}

function plainOption(): "read" | "refuse" | null {
  const [plain] = listOf("PAWL_PLAIN");
  if (plain === undefined) return null;
  if (plain === "read" || plain === "refuse") return plain;
  throw new PawlError("invalid_argument", `PAWL_PLAIN is "${plain}". Give read or refuse.`, {
    fields: { variable: "PAWL_PLAIN" },
  });
}

function keyOf(text: string, index: number): EncryptionKey {
  const end = text.indexOf(":");
  if (end > 0) return { id: text.slice(0, end), key: text.slice(end + 1) };
  // What it is stays unsaid: it may be a key.
  throw new PawlError(
    "invalid_argument",
    `PAWL_KEYS has no id at place ${index + 1}. Write id:key, as \`pawl keys new\` prints it, with commas between several.`,
    { fields: { variable: "PAWL_KEYS" } },
  );
}

/** From `PAWL_SECRETS`: names of variables that steps may have, and folders with a file for each secret, which have a slash. */
function secretsOption(): Pick<PawlOptions, "secrets"> {
  const given = listOf("PAWL_SECRETS");
  if (given.length === 0) return {};
  const environment = given.filter((text) => !text.includes("/"));
  const folders = given.filter((text) => text.includes("/"));
  return { secrets: [{ environment }, ...folders.map((folder): SecretOrigin => ({ folder }))] };
}

function listOf(variable: string): string[] {
  const text = process.env[variable] ?? "";
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}
