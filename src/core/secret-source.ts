import { PawlError } from "../base/errors.ts";
import { isSecretName, type Secret } from "../base/secret.ts";
import type { KnownSecrets } from "./redactor.ts";

/** Where the values of secrets come from. */
export interface SecretSource extends KnownSecrets {
  /** `null`: nobody has it. Its value is hidden from then on. */
  resolve(name: string): Promise<string | null>;
}

interface Asking {
  readonly run: string;
  readonly call: { readonly key: string };
}

/** What a secret stands for, for a step that asks for it. */
export async function secretFor(
  source: SecretSource | null,
  { run, call }: Asking,
  secret: string | Secret,
): Promise<string> {
  const name: unknown = typeof secret === "string" ? secret : secret?.name;
  if (!isSecretName(name))
    throw new PawlError(
      "invalid_argument",
      `Step "${call.key}" of run ${run} asks for a secret that has no name. Give a name, or a handle made by secret("NAME").`,
      { fields: { run, step: call.key } },
    );
  const value = source === null ? null : await source.resolve(name);
  if (value !== null) return value;
  const next =
    source === null
      ? "This process has no providers: give Pawl.open `secrets`, such as environmentSecrets([…])."
      : "None of this process's providers has it: add it there, or check its name.";
  throw new PawlError("secret_missing", `Step "${call.key}" of run ${run} asks for the secret "${name}". ${next}`, {
    fields: { run, step: call.key, secret: name },
  });
}
