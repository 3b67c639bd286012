// Webhooks
// Signed by Standard Webhooks; sent to public addresses, over https, unless something else is allowed; no redirect is followed, and nothing of the
// answer but its status is looked at (Q11, Q12).
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { type Duration, toMs } from "../base/duration.ts";
import { PawlError, RetryableError, TerminalError } from "../base/errors.ts";
import { shownUrl } from "../base/shown-url.ts";
import type { Notification, Notifier } from "../core/notification.ts";
import { type Address, addressFor, type Resolve } from "./public-address.ts";
import { keyOf, signWebhook } from "./webhook-signature.ts";

export interface WebhookNotifierOptions {
  /** Where it goes, with https. */
  readonly url: string;
  /** "whsec_…" in base64; several while one is replaced by another. */
  readonly secret: string | readonly string[];
  /** Unique among the notifiers of a process. */
  readonly name?: string;
  /** How long one attempt may take. Default 10 s. */
  readonly timeout?: Duration;
  /** Private, loopback and link-local addresses are refused unless this is true. Default false. */
  readonly allowPrivate?: boolean;
  /** Without encryption everybody on the way can read what is sent. Default false. */
  readonly allowHttp?: boolean;
  /** How names become addresses. Default: as the system does. */
  readonly resolve?: Resolve;
}

/** Answers that another attempt will not change. */
const FINAL = (status: number): boolean =>
  status >= 300 && status < 500 && status !== 408 && status !== 425 && status !== 429;

/** Posts each notification to an address, signed. */
export function webhookNotifier(options: WebhookNotifierOptions): Notifier {
  const url = urlOf(options);
  const secrets = typeof options.secret === "string" ? [options.secret] : options.secret;
  if (secrets.length === 0) throw new PawlError("invalid_argument", "`secret` of the webhook is empty. Give one.");
  for (const secret of secrets) keyOf(secret);
  const timeoutMs = toMs(options.timeout ?? "10s", "timeout");
  return {
    name: options.name ?? "webhook",
    async notify(notification, { signal }) {
      const within = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
      const address = await unless(within, addressFor(url.hostname, options.allowPrivate === true, options.resolve));
      const status = await post(url, address, messageOf(notification, secrets), within);
      if (status >= 200 && status < 300) return;
      const message = `The webhook of ${url.host} answered ${status}${status < 400 ? ": redirects are not followed" : ""}.`;
      throw FINAL(status) ? new TerminalError(message) : new RetryableError(message);
    },
  };
}

function urlOf({ url: text, allowHttp = false }: WebhookNotifierOptions): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol === "https:" || (url?.protocol === "http:" && allowHttp)) return url;
  throw new PawlError(
    "invalid_argument",
    `\`url\` of the webhook is ${shownUrl(text)}. Give an address with https, or with http and allowHttp: true.`,
    { fields: { url: shownUrl(text) } },
  );
}

/** A name service takes no signal, and may not answer either. */
function unless<T>(signal: AbortSignal, looking: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    looking.then(resolve, reject);
  });
}

interface Signed {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

function messageOf(notification: Notification, secrets: readonly string[]): Signed {
  const { id, event, at } = notification;
  const timestamp = Math.floor(Date.now() / 1000);
  const body = JSON.stringify({ type: event, timestamp: new Date(at).toISOString(), data: notification });
  return {
    body,
    headers: {
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(body)),
      "user-agent": "pawl",
      "webhook-id": id,
      "webhook-timestamp": String(timestamp),
      "webhook-signature": signWebhook(secrets, { id, timestamp, body }),
    },
  };
}

/** The status of the answer. The connection goes to `address`, whatever the name leads to by now. */
function post(url: URL, { address, family }: Address, { body, headers }: Signed, signal: AbortSignal): Promise<number> {
  const send = url.protocol === "https:" ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const request = send(
      url,
      {
        method: "POST",
        headers,
        signal,
        agent: false,
        lookup: (_host, { all }, done) =>
          all === true ? done(null, [{ address, family }]) : done(null, address, family),
      },
      (response) => {
        // What it says is for nobody; the connection closes with it.
        response.destroy();
        resolve(response.statusCode ?? 0);
      },
    );
    request.on("error", reject);
    request.end(body);
  });
}
