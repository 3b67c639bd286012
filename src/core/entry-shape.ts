// The shape of entries
// What an entry's payload must look like for replay to trust it. A checksum proves that a row is what was written, not that it makes sense.
import { isDemand } from "./demands.ts";
import { type Entry, isKnownType } from "./journal.ts";

type Check = (payload: Record<string, unknown>) => boolean;

const isNumber = (value: unknown): boolean => typeof value === "number" && Number.isFinite(value);
const isText = (value: unknown): boolean => typeof value === "string";
const isDue = (value: unknown): boolean => value === null || isNumber(value);

const areAmounts = (value: unknown): boolean =>
  typeof value === "object" && value !== null && Object.values(value).every(isNumber);

/** Types that carry an object, and what must be in it. Types that are not here may carry anything. */
const SHAPES: ReadonlyMap<string, Check> = new Map<string, Check>([
  ["run.started", (p) => isText(p["workflow"]) && isText(p["version"]) && isText(p["seed"])],
  [
    "run.continued",
    (p) => isNumber(p["generation"]) && typeof p["state"] === "object" && typeof p["cost"] === "object",
  ],
  ["run.compensating", (p) => "error" in p],
  ["effect.planned", (p) => isText(p["class"]) && isText(p["key"]) && isText(p["guard"])],
  ["effect.unknown", (p) => isNumber(p["attempt"])],
  ["run.cancelling", (p) => (p["cause"] === "cancel" || p["cause"] === "deadline") && isText(p["reason"])],
  ["run.forked", (p) => isText(p["from"]) && isText(p["seed"])],
  ["outcome.recorded", (p) => isText(p["type"]) && "value" in p],
  ["run.parked", (p) => isText(p["reason"]) && isText(p["message"])],
  ["run.resolved", (p) => isText(p["choice"])],
  ["step.failed", (p) => isNumber(p["attempt"]) && isDue(p["retryAt"]) && "error" in p],
  ["step.refused", (p) => isText(p["budget"]) && isText(p["unit"])],
  ["step.reserved", (p) => p["spend"] === null || areAmounts(p["spend"])],
  ["step.spent", areAmounts],
  ["checkpoint", (p) => isNumber(p["attempt"]) && "value" in p],
  ["timer.set", (p) => isNumber(p["due"])],
  ["signal.awaited", (p) => isDue(p["due"])],
  ["signal.received", (p) => isText(p["id"])],
  ["approval.requested", (p) => isText(p["id"]) && isText(p["hash"]) && isNumber(p["expiresAt"])],
  ["approval.escalated", (p) => isText(p["id"]) && isNumber(p["due"]) && isDue(p["next"])],
  ["approval.decided", (p) => isText(p["id"]) && isText(p["decision"]) && isNumber(p["at"])],
  ["callback.opened", (p) => isText(p["id"]) && isText(p["secret"]) && isDue(p["due"])],
  ["callback.ended", (p) => isText(p["id"]) && ["answered", "failed", "expired"].includes(String(p["status"]))],
  ["child.started", (p) => isText(p["child"]) && isText(p["workflow"]) && isText(p["digest"])],
  ["child.ended", (p) => isText(p["child"]) && ["succeeded", "failed", "cancelled"].includes(String(p["status"]))],
]);

const KEYED = /^((step|effect|timer|signal|child|approval|callback|outcome)\.|checkpoint$)/;

/** Whether the entry can be what the engine wrote. */
export function isWellFormed(entry: Entry): boolean {
  const { type, key, payload, seq } = entry;
  if ((seq === 0) !== (type === "run.started")) return false;
  if (!isKnownType(type)) return true;
  const isKeyed = key !== null && !isDemand(key);
  if (KEYED.test(type) !== isKeyed && type !== "state.patched" && type !== "patched") return false;
  if (type === "step.started") return payload === null || (isRecord(payload) && isNumber(payload["attempt"]));
  if (type === "timer.fired") return payload === null || (isRecord(payload) && payload["wait"] === true);
  const check = SHAPES.get(type);
  return check === undefined || (isRecord(payload) && check(payload));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
