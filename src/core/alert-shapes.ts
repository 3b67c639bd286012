// Shapes of what is read for alerts
// Whoever can reach the store can leave a message for the run of the alerts, or change what it keeps. What does not have its shape counts as not
// there: one odd value must not stop all alerts.
import { ALERT_KINDS, type Report } from "./alert.ts";
import type { AlertBookState, KnownEffect } from "./alert-book.ts";
import { isPlainRecord } from "./stable-digest.ts";
import { statesOf } from "./state-machine.ts";
import { ALERT } from "./state-machines.ts";

type Fields = Readonly<Record<string, unknown>>;
type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string";
const isTextOrNull: Check = (value) => value === null || isText(value);
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) > 0;
const isLevel: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isKind: Check = (value) => (ALERT_KINDS as readonly unknown[]).includes(value);
/** One that a `Date` can have: people are shown it. */
const isTime: Check = (value) => typeof value === "number" && !Number.isNaN(new Date(value).getTime());

const isTimeOrNull: Check = (value) => value === null || isTime(value);

function listOf(is: Check): Check {
  return (value) => Array.isArray(value) && value.every(is);
}

function has(checks: Readonly<Record<string, Check>>): Check {
  return (value) => isPlainRecord(value) && Object.entries(checks).every(([field, is]) => is((value as Fields)[field]));
}

const isTexts = listOf(isText);

const CONDITION = {
  kind: isKind,
  subject: isText,
  level: isLevel,
  workflow: isTextOrNull,
  runs: isTexts,
  summary: isText,
  detail: isPlainRecord,
};

const MENTION = { run: isText, effect: isText };

const SHAPES: Readonly<Record<Report["kind"], Check>> = {
  seen: has({ at: isTime, condition: has(CONDITION), owner: isTextOrNull }),
  over: has({ at: isTime, alert: isKind, subject: isText }),
  retries: has({ at: isTime, workflow: isText, tool: isText, count: isCount, runs: isTexts, owner: isTextOrNull }),
  effect: has({
    at: isTime,
    action: isText,
    workflow: isText,
    record: has(MENTION),
    owner: isTextOrNull,
  }),
  duplicates: has({ at: isTime, workflow: isText, count: isCount, runs: isTexts }),
  acknowledge: has({ at: isTime, id: isText, by: isText }),
  resolve: has({ at: isTime, id: isText, by: isText }),
};

export function isReport(value: unknown): value is Report {
  const kind: unknown = isPlainRecord(value) ? (value as Fields)["kind"] : null;
  return typeof kind === "string" && Object.hasOwn(SHAPES, kind) && SHAPES[kind as Report["kind"]](value);
}

const isAlert = has({
  ...CONDITION,
  // Another version may know more of them.
  kind: isText,
  id: isText,
  status: (value) => (statesOf(ALERT) as readonly unknown[]).includes(value),
  owner: isTextOrNull,
  firedAt: isTime,
  lastAt: isTime,
  count: isCount,
  acknowledgedAt: isTimeOrNull,
  acknowledgedBy: isTextOrNull,
  resolvedAt: isTimeOrNull,
  resolvedBy: isTextOrNull,
  isRepeat: (value) => typeof value === "boolean",
});

const isTally = has({
  workflow: isText,
  tool: isText,
  counts: listOf((one) => Array.isArray(one) && one.length === 2 && isTime(one[0]) && isCount(one[1])),
  runs: isTexts,
  owner: isTextOrNull,
});

const isDay = has({ day: isTime, workflow: isText, count: isCount, runs: isTexts });
const isEffect = has({ ...MENTION, action: isText, at: isTime });

/** What of a value has the shape that it was written in. */
export interface Sound<T> {
  readonly value: T;
  readonly isWhole: boolean;
}

export function soundBook(given: unknown): Sound<AlertBookState> {
  const read = <T>(list: string, is: Check) => soundList<T>(isPlainRecord(given) ? given[list] : null, is);
  const alerts = read<AlertBookState["alerts"][number]>("alerts", isAlert);
  const tallies = read<AlertBookState["tallies"][number]>("tallies", isTally);
  const duplicates = read<AlertBookState["duplicates"][number]>("duplicates", isDay);
  return {
    value: { alerts: alerts.value, tallies: tallies.value, duplicates: duplicates.value },
    isWhole: alerts.isWhole && tallies.isWhole && duplicates.isWhole,
  };
}

export function soundEffects(given: unknown): Sound<KnownEffect[]> {
  return soundList<KnownEffect>(given, isEffect);
}

function soundList<T>(given: unknown, is: Check): Sound<T[]> {
  if (!Array.isArray(given)) return { value: [], isWhole: false };
  const value = given.filter(is) as T[];
  return { value, isWhole: value.length === given.length };
}
