import { PawlError } from "./errors.ts";

export const SECRET_TAG = "$secret";

export const SECRET_CLASS = "[object Pawl.Secret]";

const NAME = /^[A-Za-z0-9][A-Za-z0-9_./-]{0,199}$/;

/** A handle on a secret: its name. What it stands for is known inside a step only, by `info.secret(handle)`. */
export class Secret {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
    Object.freeze(this);
  }

  get [Symbol.toStringTag](): string {
    return "Pawl.Secret";
  }

  toString(): string {
    return `[secret ${this.name}]`;
  }
}

/**
 * A handle that may stand in inputs, arguments and results: it is recorded as its name.
 *
 * ```ts
 * await pawl.start(sync, { account: "a-1", token: secret("CRM_TOKEN") });
 * await ctx.step("fetch", async (info) => crm.fetch(await info.secret(input.token)));
 * ```
 */
export function secret(name: string): Secret {
  if (isSecretName(name)) return new Secret(name);
  throw new PawlError(
    "invalid_name",
    `A secret cannot be called ${JSON.stringify(name)}. Give it a name of up to 200 letters, digits, _ . / and -, such as STRIPE_KEY.`,
    { fields: { name } },
  );
}

export function isSecretName(name: unknown): name is string {
  return typeof name === "string" && NAME.test(name) && !name.split("/").includes("..");
}
