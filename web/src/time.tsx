import type { JSX } from "preact";
import { now } from "./clock.ts";
import { duration, fullTime, type Moment, msOf, relative } from "./format.ts";

/** How long ago, with the exact time for whoever points at it. */
export function Ago({ at }: { readonly at: Moment }): JSX.Element | null {
  const ms = msOf(at);
  if (ms === null) return null;
  return (
    <time dateTime={new Date(ms).toISOString()} title={fullTime(ms)}>
      {relative(ms, now.value)}
    </time>
  );
}

/** How long it took, or takes so far. */
export function Took({ from, to }: { readonly from: Moment; readonly to: Moment }): JSX.Element | null {
  const start = msOf(from);
  if (start === null) return null;
  return <span class="num">{duration((msOf(to) ?? now.value) - start)}</span>;
}
