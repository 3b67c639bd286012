// Callbacks, as people see them: a one-time address that an outside system can answer to, and what the engine keeps of it.

/** What `ctx.callback` gives: an address for an outside system, and the wait for its answer. */
export interface Callback<T> {
  /** For people: `pawl why` and the run's waits name it by this. Nobody can answer with it. */
  readonly id: string;
  /**
   * The secret that answers it, once. Pass it on inside a step or an effect, so that it is recorded nowhere; it is the same in every replay.
   */
  readonly token: string;
  /** Waits for the answer, however long that takes; one that has come before counts. */
  value(): Promise<T>;
}

/** Makes and recognises tokens. The secrets behind it are a process's configuration and never reach a store. */
export interface CallbackSecrets {
  /** Names the secret that new tokens are made with; says nothing about it. */
  readonly current: string;
  /** The part of a token that cannot be guessed; `null` if the secret of that name is not known here. */
  proof(secret: string, id: string): string | null;
  /** Whether this was made for that id, by any of the secrets. */
  isProof(id: string, proof: string): boolean;
}

/** The payload of `callback.opened`. */
export interface CallbackOpened {
  readonly id: string;
  /** The name of the secret that its token was made with. */
  readonly secret: string;
  readonly due: number | null;
}

/** An answer as it lies in the inbox. */
export type CallbackAnswer =
  | { readonly status: "answered"; readonly value: unknown }
  /** Outside it went wrong, or a person has revoked the address. */
  | { readonly status: "failed"; readonly reason: string; readonly detail?: unknown };

/** The payload of `callback.ended`: the one outcome of a callback. */
export type CallbackEnded =
  /** `error`: the value did not fit the schema, and this is what the body sees instead. */
  | (AnsweredBy & { readonly status: "answered"; readonly value: unknown; readonly error?: unknown })
  | (AnsweredBy & { readonly status: "failed"; readonly reason: string; readonly detail?: unknown })
  | { readonly id: string; readonly status: "expired" };

interface AnsweredBy {
  readonly id: string;
  /** Of the answer as it came: the same one sent again is recognised by it. */
  readonly digest: string;
}

const SEPARATOR = ".";

/** What an outside system is given: the id leads to the run, the proof cannot be guessed. */
export function tokenOf(id: string, proof: string): string {
  return `${id}${SEPARATOR}${proof}`;
}

export function readToken(token: unknown): { readonly id: string; readonly proof: string } | null {
  if (typeof token !== "string") return null;
  const [id = "", proof = "", ...more] = token.split(SEPARATOR);
  return id === "" || proof === "" || more.length > 0 ? null : { id, proof };
}

export function isCallbackAnswer(value: unknown): value is CallbackAnswer {
  if (typeof value !== "object" || value === null) return false;
  const { status, reason } = value as { readonly status?: unknown; readonly reason?: unknown };
  return status === "answered" ? "value" in value : status === "failed" && typeof reason === "string";
}
