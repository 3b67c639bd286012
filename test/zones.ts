// Twenty zones whose clocks do what clocks do: forwards and back, by an hour or by half of one, at midnight, on both halves of the earth, or never.

export const ZONES: readonly string[] = [
  "UTC",
  "Europe/Berlin",
  "Europe/London",
  "Europe/Dublin",
  "Europe/Chisinau",
  "Atlantic/Azores",
  "America/New_York",
  "America/Los_Angeles",
  "America/St_Johns",
  "America/Havana",
  "America/Santiago",
  "America/Asuncion",
  "America/Nuuk",
  "Africa/Casablanca",
  "Africa/Cairo",
  "Asia/Jerusalem",
  "Asia/Beirut",
  "Asia/Kathmandu",
  "Australia/Lord_Howe",
  "Pacific/Chatham",
];

export function errorOf(fn: () => unknown): Error {
  try {
    fn();
  } catch (error) {
    return error as Error;
  }
  throw new Error("it did not throw");
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** What the clocks of a zone are ahead of UTC at a moment, in milliseconds. */
export function offsetAt(zone: string, time: number): number {
  const known = formats.get(zone);
  const format = known ?? new Intl.DateTimeFormat("en-US", { ...PARTS, timeZone: zone });
  if (known === undefined) formats.set(zone, format);
  const part = new Map<string, number>(format.formatToParts(time).map(({ type, value }) => [type, Number(value)]));
  const of = (type: string) => part.get(type) ?? 0;
  return Date.UTC(of("year"), of("month") - 1, of("day"), of("hour") % 24, of("minute"), of("second")) - time;
}

const PARTS: Intl.DateTimeFormatOptions = {
  hourCycle: "h23",
  year: "numeric",
  month: "numeric",
  day: "numeric",
  hour: "numeric",
  minute: "numeric",
  second: "numeric",
};

export interface ClockChange {
  /** The first moment with the new offset. */
  readonly at: number;
  readonly before: number;
  readonly after: number;
}

/** All changes of a zone's clocks between two moments, to the second. */
export function clockChanges(zone: string, from: number, until: number): ClockChange[] {
  const day = 86_400_000;
  const changes: ClockChange[] = [];
  let before = offsetAt(zone, from);
  for (let time = from; time < until; time += day) {
    const after = offsetAt(zone, time + day);
    if (after === before) continue;
    let [low, high] = [time, time + day];
    while (high - low > 1000) {
      const middle = low + Math.floor((high - low) / 2000) * 1000;
      if (offsetAt(zone, middle) === before) low = middle;
      else high = middle;
    }
    changes.push({ at: high, before, after });
    before = after;
  }
  return changes;
}
