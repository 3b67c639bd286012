// What a run has cost, call by call, and how its budget stands.
import type { JSX } from "preact";
import { amount, clockTime } from "../format.ts";
import { Empty, Loaded } from "../notice.tsx";
import type { WireStatus } from "../wire.ts";
import type { RunView } from "./view.ts";

export function CostTab({ run, line }: RunView): JSX.Element {
  const total = Object.entries(run.cost ?? {});
  return (
    <section aria-label="Cost and budget">
      {run.budget !== undefined && <Budget budget={run.budget} own={run.budget.run === run.id} />}
      {total.length === 0 && run.budget === undefined && (
        <Empty title="No cost is recorded.">
          A workflow records what it spends with <code>ctx.cost(&#123; usd: 0.02 &#125;)</code>, and may have a budget.
        </Empty>
      )}
      {total.length > 0 && (
        <>
          <h2>Spent by this run</h2>
          <p class="figures">
            {total.map(([unit, value]) => (
              <span key={unit} class="figure num">
                {amount(value, unit)}
              </span>
            ))}
          </p>
        </>
      )}
      <Loaded of={line}>
        {({ notes }) => {
          const costs = notes.filter(({ kind }) => kind === "cost" || kind === "refused");
          if (costs.length === 0) return null;
          return (
            <>
              <h2>One by one</h2>
              <ol class="log">
                {costs.map(({ seq, at, text, kind }) => (
                  <li key={seq}>
                    <span class="num dim">{clockTime(at)}</span>
                    <span class={kind === "refused" ? "error-text" : ""}>{text}</span>
                  </li>
                ))}
              </ol>
            </>
          );
        }}
      </Loaded>
    </section>
  );
}

function Budget({
  budget,
  own,
}: {
  readonly budget: NonNullable<WireStatus["budget"]>;
  readonly own: boolean;
}): JSX.Element {
  const { limits, spent, reserved } = budget;
  return (
    <>
      <h2>Budget</h2>
      {!own && (
        <p class="dim">
          It is that of <a href={`/runs/${encodeURIComponent(budget.run)}`}>a run above this one</a>.
        </p>
      )}
      <ul class="meters">
        {Object.entries(limits).map(([unit, limit]) => {
          const used = spent[unit] ?? 0;
          const held = reserved[unit] ?? 0;
          return (
            <li key={unit}>
              <span class="meter-name">{unit}</span>
              <Meter used={used} held={held} limit={limit} name={unit} />
              <span class="num">
                {amount(used, unit)} of {amount(limit, unit)}
                {held > 0 && <span class="dim"> ({amount(held, unit)} reserved)</span>}
              </span>
            </li>
          );
        })}
      </ul>
    </>
  );
}

interface MeterProps {
  readonly used: number;
  readonly held: number;
  readonly limit: number;
  readonly name: string;
}

function Meter({ used, held, limit, name }: MeterProps): JSX.Element {
  const part = (value: number) => Math.min(100, limit === 0 ? 100 : (value / limit) * 100);
  return (
    <svg
      class={used >= limit ? "meter is-full" : "meter"}
      viewBox="0 0 100 8"
      preserveAspectRatio="none"
      role="img"
      aria-label={`${name}: ${Math.round(part(used))}% used`}
    >
      <rect class="meter-back" width="100" height="8" />
      <rect class="meter-held" width={part(used + held)} height="8" />
      <rect class="meter-used" width={part(used)} height="8" />
    </svg>
  );
}
