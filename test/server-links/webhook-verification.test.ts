import { createHash, createHmac } from "node:crypto";
import { type ReceivedWebhook, signWebhook, verifyWebhook } from "pawl/notify";
import { expect, it } from "vitest";

const SECRET = `whsec_${Buffer.from("a secret of thirty-two bytes, yes").toString("base64")}`;
const OTHER = `whsec_${Buffer.from("another one, which will replace it").toString("base64")}`;
const NOW = 1_800_000_000_000;
const TEXT = '{"type":"order.paid","id":"evt_1","data":{"name":"Åse"}}';
const bytes = (text: string) => new TextEncoder().encode(text);

function standard(
  change: { secrets?: string[]; id?: string; text?: string; timestamp?: number } = {},
): ReceivedWebhook {
  const { secrets = [SECRET], id = "msg_1", text = TEXT, timestamp = NOW / 1000 } = change;
  const headers = {
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": signWebhook(secrets, { id, timestamp, body: text }),
  };
  return { headers, body: bytes(text), secret: SECRET, now: NOW };
}

/** Why it is not taken; "taken" if it is. */
function verdict(received: ReceivedWebhook): unknown {
  try {
    verifyWebhook(received);
    return "taken";
  } catch (error) {
    return (error as { fields: { reason: unknown } }).fields.reason;
  }
}

it("Q12 takes what is signed by Standard Webhooks, with its id, type and body; headers as Node or as fetch has them", () => {
  const received = standard();
  const taken = { id: "msg_1", type: "order.paid", body: JSON.parse(TEXT) };
  expect(verifyWebhook(received)).toEqual(taken);
  const headers = new Headers(received.headers as Record<string, string>);
  expect(verifyWebhook({ ...received, headers })).toEqual(taken);
});

it("Q12 knows two secrets on either side while one replaces the other, and no third", () => {
  expect(verdict({ ...standard({ secrets: [OTHER] }), secret: [SECRET, OTHER] })).toBe("taken");
  expect(verdict(standard({ secrets: [OTHER, SECRET] }))).toBe("taken");
  expect(verdict(standard({ secrets: [OTHER] }))).toBe("signature");
  const body = (secret: readonly string[]) => () => verifyWebhook({ ...standard(), secret });
  expect(body([])).toThrow(/secret/);
  expect(body(["whsec_short"])).toThrow(/24 random bytes/);
});

it("Q12 refuses what was tampered with: body, id, time, signature", () => {
  const { headers, ...rest } = standard();
  const bent = (name: string, value: string) => verdict({ ...rest, headers: { ...headers, [name]: value } as never });
  expect(verdict({ ...standard(), body: bytes(TEXT.replace("paid", "lost")) })).toBe("signature");
  // The same JSON in other bytes is not what was signed.
  expect(verdict({ ...standard(), body: bytes(JSON.stringify(JSON.parse(TEXT), null, 1)) })).toBe("signature");
  expect(bent("webhook-id", "msg_2")).toBe("signature");
  expect(bent("webhook-timestamp", String(NOW / 1000 + 1))).toBe("signature");
  const signature = (headers as Record<string, string>)["webhook-signature"] ?? "";
  for (const value of ["v1,", "v1", "v1a,x", signature.replace("v1,", "v2,"), signature.slice(0, -4), `${signature}A`])
    expect([value, bent("webhook-signature", value)]).toEqual([value, "signature"]);
});

it("Q12 refuses what is old, from the future, or has no sensible time", () => {
  const at = (timestamp: number) => verdict(standard({ timestamp }));
  expect([at(NOW / 1000 - 300), at(NOW / 1000 + 300)]).toEqual(["taken", "taken"]);
  expect([at(NOW / 1000 - 301), at(NOW / 1000 + 301), at(0), at(1e300), at(-1)]).toEqual(Array(5).fill("old"));
  expect(verdict({ ...standard({ timestamp: NOW / 1000 - 60 }), tolerance: "30s" })).toBe("old");
});

it("Q12 refuses what has no signature, id or time, or no JSON", () => {
  const { headers, ...rest } = standard();
  for (const name of Object.keys(headers)) {
    expect(verdict({ ...rest, headers: { ...headers, [name]: undefined } as never })).toBe("missing");
    expect(verdict({ ...rest, headers: { ...headers, [name]: ["a", "b"] } as never })).toBe("missing");
  }
  expect(verdict(standard({ id: "x".repeat(1001) }))).toBe("missing");
  expect(verdict(standard({ text: "{" }))).toBe("malformed");
});

it("Q12 takes what GitHub and Stripe sign, and nothing else under their names", () => {
  const hex = (secret: string, ...parts: string[]) => createHmac("sha256", secret).update(parts.join("")).digest("hex");
  const github = (signature: string) =>
    ({
      scheme: "github",
      secret: ["old", "new"],
      headers: { "x-hub-signature-256": signature, "x-github-delivery": "d-1", "x-github-event": "push" },
      body: bytes(TEXT),
    }) as const;
  const signature = `sha256=${hex("new", TEXT)}`;
  const id = `sha256-${createHash("sha256").update(TEXT).digest("hex")}`;
  expect(verifyWebhook(github(signature))).toMatchObject({ id, type: "push" });
  expect(verifyWebhook(github(`sha256=${hex("old", TEXT)}`)).id).toBe(id);
  expect(verifyWebhook({ ...github(signature), dedupe: "delivery" }).id).toBe("d-1");
  expect(verdict(github(`sha256=${hex("other", TEXT)}`))).toBe("signature");
  const time = NOW / 1000;
  const stripe = (header: string) =>
    ({ scheme: "stripe", secret: "s", headers: { "stripe-signature": header }, body: bytes(TEXT), now: NOW }) as const;
  const signed = hex("s", `${time}.`, TEXT);
  expect(verifyWebhook(stripe(`t=${time},v1=${"0".repeat(64)},v1=${signed}`))).toMatchObject({
    id: "evt_1",
    type: "order.paid",
  });
  expect(verdict(stripe(`t=${time + 1},v1=${signed}`))).toBe("signature");
  expect(verdict(stripe(`t=${time},v0=${signed}`))).toBe("signature");
  expect(verdict(stripe(`t=${time - 400},v1=${hex("s", `${time - 400}.`, TEXT)}`))).toBe("old");
});
