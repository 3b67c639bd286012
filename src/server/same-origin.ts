// Whose page it is
// What a browser says about where a request comes from, and what is believed of it. A page of somebody else's can make a browser send requests, with
// its cookies; it cannot make it lie about these headers (Q2).
//
//   SO1. A request names a host that the server answers for, before anything else is looked at: names that lead to a loopback address by a trick of
//        the domain name system are none of them.
//   SO2. A request that changes something comes from a page of this very origin, or from no page at all. With a cookie it must say so.
import { forbidden } from "./failure.ts";

const LOOPBACK: readonly string[] = ["127.0.0.1", "localhost", "[::1]"];

/** The hosts that the server answers for. */
export class Hosts {
  readonly #names: ReadonlySet<string>;
  readonly #publicOrigin: string | null;

  constructor(names: readonly string[], publicUrl: string | null) {
    const url = publicUrl === null ? null : new URL(publicUrl);
    this.#publicOrigin = url?.origin ?? null;
    this.#names = new Set([...LOOPBACK, ...names, ...(url === null ? [] : [url.hostname])].map((n) => n.toLowerCase()));
  }

  /** SO1. */
  assertKnown(host: string | null): void {
    if (host !== null && this.#names.has(hostName(host))) return;
    throw forbidden(
      "The server does not answer for the host that the request names. Use the address that it has printed, or start it with --allow-host.",
      { field: "host" },
    );
  }

  /** SO2. */
  assertOwnPage(headers: Headers, hasCookie: boolean): void {
    const origin = headers.get("origin");
    const site = headers.get("sec-fetch-site");
    const isSameSite = site === "same-origin";
    if (site !== null && !isSameSite) throw foreign("sec-fetch-site");
    // A page that sends no referrer has the origin "null" in its forms; then the browser's own word must be there.
    const isOwn = origin === null || origin === "null" ? isSameSite : this.#isOwn(origin, headers.get("host"));
    if (origin !== null && !isOwn) throw foreign("origin");
    if (hasCookie && !isOwn) throw foreign("origin");
  }

  #isOwn(origin: string, host: string | null): boolean {
    if (origin === this.#publicOrigin) return true;
    return origin === `http://${host}` || origin === `https://${host}`;
  }
}

export function isLoopback(host: string): boolean {
  return LOOPBACK.includes(host.toLowerCase()) || host === "::1";
}

/** Without the port. */
function hostName(host: string): string {
  return host.toLowerCase().replace(/:\d{1,5}$/, "");
}

function foreign(field: string): Error {
  return forbidden("The request did not come from a page of this server. Nothing was changed.", { field });
}
