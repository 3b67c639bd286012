// Webhooks that come in
// Each hook has a name, the secrets of its sender and a workflow. A delivery starts one run, with the id of the delivery as its key, or what stands for it where
// the id is not signed: whoever has got hold of a delivery could send it again under another one. The run is durable
// before the sender is answered, so that a sender that gets no answer can send again without a second run (Q12, S2-51).
import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import { deliveryKey } from "../client/events.ts";
import type { Pawl } from "../client/pawl.ts";
import { isPlainRecord } from "../core/stable-digest.ts";
import { keyOf } from "../notify/webhook-signature.ts";
import {
  verifyWebhook,
  WEBHOOK_DEDUPES,
  WEBHOOK_SCHEMES,
  type WebhookDedupe,
  type WebhookScheme,
} from "../notify/webhook-verification.ts";
import { nodeHost } from "../worker/node-host.ts";

export interface Hook {
  /** The workflow that a delivery starts, by its name. */
  readonly workflow: string;
  /** What the sender signs with; several while one is replaced by another. */
  readonly secret: string | readonly string[];
  /** How the sender signs. Default "standard". */
  readonly scheme?: WebhookScheme;
  /** For GitHub, which signs the body alone: "body" (default), so that the same body is the same delivery, or "delivery", so that its id says so, which is not signed. */
  readonly dedupe?: WebhookDedupe;
  /** The store that its runs are in, as credentials name it. Default: the server's own. */
  readonly store?: string;
}

export type Hooks = Readonly<Record<string, Hook>>;

export interface Delivery {
  readonly headers: Headers;
  readonly bytes: Uint8Array;
}

/** Starts the run of a delivery, or finds the one that it has started before. */
export async function receive(name: string, hook: Hook, pawl: Pawl, delivery: Delivery): Promise<{ id: string }> {
  const { headers, bytes } = delivery;
  const { id, type, body } = verifyWebhook({
    headers,
    body: bytes,
    secret: hook.secret,
    ...(hook.scheme !== undefined && { scheme: hook.scheme }),
    ...(hook.dedupe !== undefined && { dedupe: hook.dedupe }),
  });
  const run = await pawl.start(hook.workflow, body, {
    key: deliveryKey(nodeHost, `hook:${name}`, id),
    tags: [`hook:${name}`, ...(type === null ? [] : [`event:${type}`])],
  });
  return { id: run.id };
}

/** A hook, and which store it is for. */
export type KnownHook = Hook & { readonly store: string };

/** Hooks by their names; a mistake shows when the server starts and not when the first delivery is lost. */
export function hooksOf(given: Hooks, stores: ReadonlyMap<string, Pawl>, ownStore: string): Map<string, KnownHook> {
  if (!isPlainRecord(given)) throw invalid("", "Give { name: { workflow, secret } }");
  return new Map(Object.entries(given).map(([name, hook]) => [name, knownHook(name, hook, stores, ownStore)]));
}

const FIELDS: ReadonlySet<string> = new Set(["workflow", "secret", "scheme", "dedupe", "store"]);

function knownHook(name: string, hook: Hook, stores: ReadonlyMap<string, Pawl>, ownStore: string): KnownHook {
  assertName("name of a hook", name);
  if (!isPlainRecord(hook)) throw invalid(name, "Give { workflow, secret }");
  const odd = Object.keys(hook).find((field) => !FIELDS.has(field));
  if (odd !== undefined) throw invalid(`${name}.${odd}`, `Known are: ${[...FIELDS].join(", ")}`);
  const { workflow, secret, scheme = "standard", dedupe, store = ownStore } = hook as Partial<Hook>;
  assertName(`workflow of hook "${name}"`, workflow);
  if (!WEBHOOK_SCHEMES.includes(scheme)) throw invalid(`${name}.scheme`, `Give one of: ${WEBHOOK_SCHEMES.join(", ")}`);
  if (dedupe !== undefined && (scheme !== "github" || !WEBHOOK_DEDUPES.includes(dedupe)))
    throw invalid(
      `${name}.dedupe`,
      `Give one of: ${WEBHOOK_DEDUPES.join(", ")}, for a hook of GitHub, or leave it out`,
    );
  if (!stores.has(store)) throw invalid(`${name}.store`, "Give one of the stores that are served");
  const secrets = typeof secret === "string" ? [secret] : secret;
  if (!Array.isArray(secrets) || secrets.length === 0 || secrets.some((one) => typeof one !== "string" || one === ""))
    throw invalid(`${name}.secret`, "Give the text that the sender signs with, or a list of two");
  if (scheme === "standard") for (const one of secrets as readonly string[]) keyOf(one);
  return { ...hook, store };
}

function invalid(field: string, action: string): PawlError {
  return new PawlError("invalid_argument", `\`hooks${field === "" ? "" : `.${field}`}\` cannot be used. ${action}.`, {
    fields: { field: `hooks.${field}` },
  });
}
