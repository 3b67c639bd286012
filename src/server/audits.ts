// What the audit log says of requests
// Every request of somebody who is known that changes something is recorded before it is done and after; every one that is refused before it comes so
// far is recorded as that. What has no credential is recorded in the server's own store, if there is one, and as far as `Refusals` lets it.
import { audited, type Deed, recordRefusal } from "../client/audited.ts";
import { OWN_STORE, type Who } from "./credentials.ts";
import { notFound } from "./failure.ts";
import { NOBODY } from "./refusals.ts";
import type { Call, Route, SignedCall } from "./route.ts";
import type { ServerParts } from "./server-parts.ts";
import type { NewSession } from "./sessions.ts";

const AGENT_LENGTH = 200;

/** Where somebody is: the address, and what the browser says about itself. */
export function placeOf(from: string, headers: Headers): string {
  const agent = headers.get("user-agent") ?? "";
  return agent === "" ? from : `${from}, ${agent.slice(0, AGENT_LENGTH)}`;
}

interface Facts {
  readonly who: Who | null;
  readonly from: string;
  readonly headers: Headers;
  readonly params: unknown;
  readonly bytes: Uint8Array;
}

function deedOf({ spec }: Route, { who, from, headers, params, bytes }: Facts): Deed {
  const values = Object.values((params ?? {}) as Record<string, string>);
  return {
    who: who?.name ?? NOBODY,
    action: `${spec.method} ${spec.path}`,
    // A token in a path is a secret; what it stands for is recorded where it is known.
    subject: spec.path.includes(":token") ? null : (values.at(-1) ?? null),
    from: placeOf(from, headers),
    payload: bytes,
    ...(who !== null && { detail: { roles: who.roles } }),
  };
}

/** Answers a request that changes something. */
export function auditedAnswer(route: Route, call: SignedCall, work: () => Promise<unknown>): Promise<unknown> {
  const { log } = call.server;
  return audited(call.pawl.store, deedOf(route, call), work, (message, error) => log.error(message, { error }));
}

/** Records a request that was refused. Whoever asked is refused all the same, also where that cannot be recorded. */
export async function auditedRefusal(
  route: Route,
  { tenants, log, refusals }: Pick<ServerParts, "tenants" | "log" | "refusals">,
  facts: Facts,
  error: unknown,
): Promise<void> {
  const pawl = tenants.get(facts.who?.store ?? OWN_STORE);
  if (pawl === undefined) return;
  if (facts.who === null) return refusals.add(pawl.store, facts.from, deedOf(route, facts), error);
  try {
    await recordRefusal(pawl.store, deedOf(route, facts), error);
  } catch (fault) {
    log.error(`A refused ${route.spec.method} ${route.spec.path} could not be recorded`, { error: fault });
  }
}

/** Begins a session of a browser, which the log of their store has first. */
export async function signedIn(
  { server, headers, from }: Pick<Call, "server" | "headers" | "from">,
  who: Who,
): Promise<NewSession> {
  const { tenants, sessions, log } = server;
  const pawl = tenants.get(who.store);
  if (pawl === undefined) throw notFound("store of this credential");
  const deed = { who: who.name, action: "sign in", subject: null, from: placeOf(from, headers), payload: null };
  const tell = (message: string, error: unknown) => log.error(message, { error });
  return audited(pawl.store, { ...deed, detail: { roles: who.roles } }, async () => sessions.create(who), tell);
}
