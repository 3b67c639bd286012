// The ledger: what a run has done outside, and what became of it.
import type { JSX } from "preact";
import { oneLine } from "../format.ts";
import { Empty, Loaded } from "../notice.tsx";
import { useReloading } from "../resource.ts";
import { Word } from "../status.tsx";
import { Ago } from "../time.tsx";
import type { WireEffect } from "../wire.ts";
import type { RunView } from "./view.ts";

type WireEffects = readonly WireEffect[] | { readonly effects: readonly WireEffect[] };

export function EffectsTab({ run, change }: RunView): JSX.Element {
  const effects = useReloading<WireEffects>(`/api/runs/${encodeURIComponent(run.id)}/effects`, change);
  return (
    <section aria-label="Effects">
      <Loaded of={effects}>{(data) => <Effects effects={"effects" in data ? data.effects : data} />}</Loaded>
    </section>
  );
}

function Effects({ effects }: { readonly effects: readonly WireEffect[] }): JSX.Element {
  if (effects.length === 0)
    return (
      <Empty title="Nothing that this run did outside is in its ledger.">
        <code>ctx.effect(name, …)</code> and steps with <code>undo</code> are listed here.
      </Empty>
    );
  return (
    <table class="list stack">
      <thead>
        <tr>
          <th>Effect</th>
          <th>Status</th>
          <th>Class</th>
          <th>Guard</th>
          <th class="num">Attempts</th>
          <th>Key</th>
          <th>Result</th>
          <th class="num">Planned</th>
        </tr>
      </thead>
      <tbody>
        {effects.map((one) => (
          <tr key={`${one.effect} ${one.plannedAt}`}>
            <td>
              <b>{one.effect}</b>
              {one.undo && <span class="dim"> can be undone</span>}
            </td>
            <td>
              <Word word={one.status} />
            </td>
            <td data-name="Class">{one.class}</td>
            <td data-name="Guard">{one.guard}</td>
            <td data-name="Attempts" class="num">
              {one.attempts}
            </td>
            <td data-name="Key" class="mono wrap">
              {one.key}
            </td>
            <td data-name="Result" class="wrap">
              {one.error === undefined ? oneLine(one.value, 120) : <span class="error-text">{one.error}</span>}
            </td>
            <td data-name="Planned" class="num">
              <Ago at={one.plannedAt} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
