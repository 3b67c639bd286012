// Who is signed in. The one-time token comes in the fragment of the address, which no server ever sees in a log; it is given away once, for a
// cookie that no script can read, and cleared before anything else happens.
import { signal } from "@preact/signals";

export interface Session {
  readonly user: string;
  readonly role: string;
  readonly roles: readonly string[];
  /** What the credential leads to: a name for people. */
  readonly store: string;
  /** Goes with every request that changes something. */
  readonly csrf: string;
}

/** `undefined`: not known yet; `null`: nobody is. */
export const session = signal<Session | null | undefined>(undefined);

/** Why somebody has to sign in, if there is something to say. */
export const signInReason = signal<string | null>(null);

const ENDED =
  "Your session has ended: it was not used for long, or the server was started again. Sign in to go on here.";
const UNREACHABLE = "The server does not answer. Is it still running?";

export async function beginSession(): Promise<void> {
  const token = takeToken();
  const refused = token === null ? null : await signIn(token).catch(() => UNREACHABLE);
  if (session.value) return;
  const response = await fetch("/api/session", { headers: { accept: "application/json" } }).catch(() => null);
  // Whoever has a session keeps it, whatever became of the token in the address.
  const kept = response?.ok ? ((await response.json()) as Session) : null;
  if (kept === null) signInReason.value = response === null ? UNREACHABLE : refused;
  session.value = kept;
}

/** The server no longer knows the session: whoever had one is told so, and stays where they are. */
export function endSession(): void {
  if (session.value) signInReason.value = ENDED;
  session.value = null;
}

/** Why it was refused, or `null`. */
export async function signIn(token: string): Promise<string | null> {
  const response = await fetch("/api/session", {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify({ token }),
  });
  const answer = (await response.json().catch(() => ({}))) as Session & { error?: { message?: string } };
  if (!response.ok) return answer.error?.message ?? `The server answered ${response.status}.`;
  signInReason.value = null;
  session.value = answer;
  return null;
}

export async function signOut(): Promise<void> {
  const csrf = session.value?.csrf ?? "";
  await fetch("/api/session", { method: "DELETE", headers: { "x-pawl-csrf": csrf } }).catch(() => null);
  session.value = null;
}

function takeToken(): string | null {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token !== null) history.replaceState(null, "", location.pathname + location.search);
  return token;
}

/** Whether what needs this role is offered. The server decides in any case. */
export function may(role: "operator" | "approver" | "admin"): boolean {
  const roles = session.value?.roles ?? [];
  return roles.includes(role) || roles.includes("admin");
}
