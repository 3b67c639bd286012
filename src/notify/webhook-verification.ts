// Webhooks that come in
// Whether a message is its sender's own, as it was sent, and of now (Q12). The signature is over the bytes as they came: whoever parses and writes
// them again has other bytes. Signatures are compared in constant time, and each with every secret, so that secrets can be changed without a gap.
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { type Duration, toMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import { keyOf } from "./webhook-signature.ts";

export const WEBHOOK_SCHEMES = ["standard", "github", "stripe"] as const;
/** How the sender signs: by Standard Webhooks, or as GitHub or Stripe do. GitHub signs neither the time nor the id of a delivery. */
export type WebhookScheme = (typeof WEBHOOK_SCHEMES)[number];

export const WEBHOOK_DEDUPES = ["body", "delivery"] as const;
/** What makes a delivery of GitHub one that has come before: its body, which is signed, or the id of the delivery, which anybody can change. */
export type WebhookDedupe = (typeof WEBHOOK_DEDUPES)[number];

/** As Node or a `Request` has them. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface ReceivedWebhook {
  /** Those of the request, by lower-case name. */
  readonly headers: WebhookHeaders;
  /** The body as it came, byte for byte. */
  readonly body: Uint8Array;
  /** One or several while one is replaced by another: "whsec_…" for Standard Webhooks, any text for the others. */
  readonly secret: string | readonly string[];
  /** How the sender signs. Default "standard". */
  readonly scheme?: WebhookScheme;
  /** For GitHub: what a delivery is known again by. Default "body". */
  readonly dedupe?: WebhookDedupe;
  /** How old it may be, and how far ahead the sender's clock. Default 5 min. */
  readonly tolerance?: Duration;
  /** The time to compare with. Default: now. */
  readonly now?: number;
}

/** A message that is its sender's own. */
export interface VerifiedWebhook {
  /** Of the delivery: one that comes again has the same. For GitHub, a hash of the body, since that is all that is signed. */
  readonly id: string;
  /** What has happened, where the sender says so. */
  readonly type: string | null;
  /** The body, read as JSON. */
  readonly body: unknown;
}

const TOLERANCE_MS = 300_000;
const ID_LENGTH = 1000;

/** Checks a message that came in; throws `webhook_refused` with the reason. */
export function verifyWebhook(received: ReceivedWebhook): VerifiedWebhook {
  const secrets = typeof received.secret === "string" ? [received.secret] : received.secret;
  if (secrets.length === 0 || secrets.includes(""))
    throw new PawlError("invalid_argument", "`secret` of the webhook is empty. Give one.");
  const scheme = SCHEMES[received.scheme ?? "standard"];
  return scheme(received, secrets, (name) => headerOf(received.headers, name));
}

type Header = (name: string) => string;
type Scheme = (received: ReceivedWebhook, secrets: readonly string[], header: Header) => VerifiedWebhook;

const SCHEMES: Readonly<Record<WebhookScheme, Scheme>> = {
  standard(received, secrets, header) {
    const id = idOf(header("webhook-id"));
    const time = header("webhook-timestamp");
    const given = header("webhook-signature")
      .split(" ")
      .flatMap((part) => (part.startsWith("v1,") ? [part.slice("v1,".length)] : []));
    const keys = secrets.map(keyOf);
    assertSigned(given, macs(keys, [`${id}.${time}.`, received.body], "base64"));
    assertRecent(received, time);
    const body = jsonOf(received.body);
    return { id, type: textAt(body, "type"), body };
  },
  github(received, secrets, header) {
    const signature = header("x-hub-signature-256");
    assertSigned([signature.replace(/^sha256=/, "")], macs(secrets, [received.body], "hex"));
    const body = jsonOf(received.body);
    const id = received.dedupe === "delivery" ? idOf(header("x-github-delivery")) : sha256(received.body);
    return { id, type: header("x-github-event"), body };
  },
  stripe(received, secrets, header) {
    const parts = header("stripe-signature")
      .split(",")
      .map((part) => part.trim().split("=", 2));
    const valuesOf = (name: string) => parts.flatMap(([key, value = ""]) => (key === name ? [value] : []));
    const [time = ""] = valuesOf("t");
    assertSigned(valuesOf("v1"), macs(secrets, [`${time}.`, received.body], "hex"));
    assertRecent(received, time);
    const body = jsonOf(received.body);
    return { id: idOf(textAt(body, "id") ?? ""), type: textAt(body, "type"), body };
  },
};

/** Not the signature: that would be another once the secret is. */
function sha256(body: Uint8Array): string {
  return `sha256-${createHash("sha256").update(body).digest("hex")}`;
}

function headerOf(headers: WebhookHeaders, name: string): string {
  const given = headers instanceof Headers ? headers.get(name) : headers[name];
  if (typeof given === "string" && given !== "") return given;
  throw refused("missing", `It has no header ${name}`, "Let the sender sign what it sends");
}

function macs(
  keys: readonly (string | Uint8Array)[],
  signed: readonly (string | Uint8Array)[],
  encoding: "hex" | "base64",
): string[] {
  return keys.map((key) => {
    const mac = createHmac("sha256", key);
    for (const part of signed) mac.update(part);
    return mac.digest(encoding);
  });
}

/** All are compared, so that the time tells nothing. */
function assertSigned(given: readonly string[], expected: readonly string[]): void {
  const matches = given.flatMap((one) => expected.map((other) => isEqual(one, other)));
  if (matches.includes(true)) return;
  throw refused(
    "signature",
    "Its signature does not fit",
    "Compare the secret with the sender's, and sign the bytes that are sent",
  );
}

function isEqual(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function assertRecent({ now = Date.now(), tolerance }: ReceivedWebhook, text: string): void {
  const toleranceMs = tolerance === undefined ? TOLERANCE_MS : toMs(tolerance, "tolerance");
  const sentAt = /^\d{1,12}$/.test(text) ? Number(text) * 1000 : Number.NaN;
  if (Math.abs(now - sentAt) <= toleranceMs) return;
  throw refused(
    "old",
    "It was sent too long ago, or in the future",
    "Send it again with the time of now, and set the clocks",
  );
}

function idOf(id: string): string {
  if (id !== "" && id.length <= ID_LENGTH) return id;
  throw refused("missing", "It has no id of its delivery", `Give it one of up to ${ID_LENGTH} characters`);
}

function jsonOf(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw refused("malformed", "Its body is not JSON", "Send JSON in UTF-8");
  }
}

function textAt(body: unknown, field: string): string | null {
  if (typeof body !== "object" || body === null || !Object.hasOwn(body, field)) return null;
  const value = (body as Record<string, unknown>)[field];
  return typeof value === "string" ? value : null;
}

function refused(reason: "missing" | "malformed" | "old" | "signature", what: string, action: string): PawlError {
  return new PawlError("webhook_refused", `The webhook was not taken. ${what}. ${action}.`, { fields: { reason } });
}
