// Credentials
// Who may do what, and in which store. A credential is a name, a role and the hash of a token; the token itself is kept by whoever uses it.
//
//   CR1. The store of a request comes from its credential and from nothing else (Q4).
//   CR2. Tokens are random, kept as SHA-256 and compared in constant time; a one-time token is gone once it was used.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";

/** What a credential allows: viewers look; operators act on runs; approvers decide about approvals; admins may do everything. */
export const ROLES = ["viewer", "operator", "approver", "admin"] as const;
export type Role = (typeof ROLES)[number];

export interface Credential {
  /** Who it is: stands beside every decision that was made with it. */
  readonly name: string;
  readonly role: Role | readonly Role[];
  /** What they are when they decide about approvals: "physician" counts for the approver "role:physician". */
  readonly groups?: readonly string[];
  /** SHA-256 of the token, in hexadecimal digits. */
  readonly tokenSha256: string;
  /** The store that it is for. Default: the server's own. */
  readonly store?: string;
}

/** Whoever made a request. */
export interface Who {
  readonly name: string;
  readonly roles: readonly Role[];
  readonly groups: readonly string[];
  /** The tenant that it belongs to. */
  readonly store: string;
}

/** Whether somebody may use what needs this role. */
export function isAllowed(who: Pick<Who, "roles">, role: Role): boolean {
  return who.roles.some((own) => own === "admin" || own === role || role === "viewer");
}

export function newToken(): string {
  return randomBytes(32).toString("base64url");
}

export function tokenHash(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** A new credential, and its token: nobody has that but whoever is given it. */
export function newCredential(name: string, roles: readonly string[]): { token: string; credential: Credential } {
  const token = newToken();
  const [first, ...others] = roles as Role[];
  const role = first !== undefined && others.length === 0 ? first : (roles as Role[]);
  const credential = { name, role, tokenSha256: tokenHash(token) };
  whoOf(credential, 0, "");
  return { token, credential };
}

export class Credentials {
  readonly #known: readonly (readonly [hash: Buffer, who: Who])[];
  #once: { readonly hash: Buffer; readonly who: Who } | null = null;

  constructor(credentials: readonly Credential[], ownStore: string) {
    this.#known = credentials.map((one, index) => [hashOf(one, index), whoOf(one, index, ownStore)]);
  }

  get isEmpty(): boolean {
    return this.#known.length === 0;
  }

  /** Whose token this is. */
  find(token: string): Who | null {
    const given = sha256(token);
    let found: Who | null = null;
    // All of them, whichever it is: how long it takes tells nothing.
    for (const [hash, who] of this.#known) if (timingSafeEqual(hash, given)) found ??= who;
    return found;
  }

  /** A token that can be used for one session. The one before it is void. */
  createOnce(who: Who): string {
    const token = newToken();
    this.#once = { hash: sha256(token), who };
    return token;
  }

  /** Whose one-time token this is; from now on, nobody's. */
  takeOnce(token: string): Who | null {
    if (this.#once === null || !timingSafeEqual(this.#once.hash, sha256(token))) return null;
    const { who } = this.#once;
    this.#once = null;
    return who;
  }
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function hashOf({ tokenSha256 }: Credential, index: number): Buffer {
  if (typeof tokenSha256 !== "string" || !/^[0-9a-f]{64}$/i.test(tokenSha256))
    throw invalid(index, "tokenSha256", "Give the 64 hexadecimal digits that `pawl serve --new-token` prints");
  return Buffer.from(tokenSha256, "hex");
}

function whoOf({ name, role, groups = [], store }: Credential, index: number, ownStore: string): Who {
  const roles = [role].flat() as Role[];
  if (roles.length === 0 || !roles.every((one) => ROLES.includes(one)))
    throw invalid(index, "role", `Give one or some of: ${ROLES.join(", ")}`);
  if (!Array.isArray(groups)) throw invalid(index, "groups", "Give a list of names");
  for (const group of groups) assertName("a group of a credential", group);
  if (store !== undefined && typeof store !== "string") throw invalid(index, "store", "Give the URL of a store");
  assertName("the name of a credential", name);
  return { name, roles, groups, store: store ?? ownStore };
}

function invalid(index: number, field: string, action: string): PawlError {
  return new PawlError("invalid_argument", `\`${field}\` of credential ${index + 1} cannot be used. ${action}.`, {
    fields: { field: `credentials[${index}].${field}` },
  });
}

/** The credentials that a configuration file lists. */
export function readCredentials(json: string, file: string): Credential[] {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw new PawlError("invalid_argument", `${file} is no JSON. Give a list of credentials.`, {
      fields: { file },
      cause,
    });
  }
  if (!Array.isArray(value) || value.some((one) => typeof one !== "object" || one === null))
    throw new PawlError(
      "invalid_argument",
      `${file} is no list of credentials: [{ "name": "ann", "role": "operator", "tokenSha256": "…" }].`,
      { fields: { file } },
    );
  const known = new Set(["name", "role", "groups", "tokenSha256", "store"]);
  for (const [index, one] of value.entries()) {
    const odd = Object.keys(one).find((key) => !known.has(key));
    if (odd !== undefined) throw invalid(index, odd, `Known are: ${[...known].join(", ")}`);
  }
  return value as Credential[];
}
