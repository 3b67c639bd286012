// The state document: phases and steps with their statuses, and the whole of it as JSON.
import type { JSX } from "preact";
import type { PhaseRecord } from "../../../src/core/state-document.ts";
import { clockTime } from "../format.ts";
import { Loaded } from "../notice.tsx";
import { useReloading } from "../resource.ts";
import { Status, type Tone } from "../status.tsx";
import { Value } from "../value.tsx";
import type { WireDocument } from "../wire.ts";
import type { RunView } from "./view.ts";

export function DocumentTab({ run, change }: RunView): JSX.Element {
  const document = useReloading<WireDocument>(`/api/runs/${encodeURIComponent(run.id)}/document`, change);
  return (
    <section aria-label="State document">
      <Loaded of={document}>
        {(data) => (
          <>
            {data.phase_order.map((name) => {
              const phase = data.phases[name];
              return phase === undefined ? null : <Phase key={name} name={name} phase={phase} />;
            })}
            <section class="part">
              <h2>The document</h2>
              <Value value={data} name="the document" />
            </section>
          </>
        )}
      </Loaded>
    </section>
  );
}

const TONES: Readonly<Record<string, Tone>> = {
  pending: "quiet",
  in_progress: "running",
  done: "succeeded",
  failed: "failed",
};

function Phase({ name, phase }: { readonly name: string; readonly phase: PhaseRecord }): JSX.Element {
  const steps = phase.step_order ?? Object.keys(phase.steps ?? {});
  return (
    <section class="phase">
      <h2>
        {name} <StatusWord status={phase.status} />
      </h2>
      {steps.length > 0 && (
        <ol class="phase-steps">
          {steps.map((step) => {
            const record = phase.steps?.[step];
            if (record === undefined) return null;
            return (
              <li key={step}>
                <StatusWord status={record.status} />
                <span>{step}</span>
                {record.error !== undefined && <span class="error-text">{record.error}</span>}
                {record.skipped !== undefined && <span class="dim">skipped: {record.skipped}</span>}
                <span class="dim num">{clockTime(record.completed_at ?? record.started_at)}</span>
              </li>
            );
          })}
        </ol>
      )}
    </section>
  );
}

function StatusWord({ status }: { readonly status: string }): JSX.Element {
  return <Status tone={TONES[status] ?? "quiet"}>{status.replace("_", " ")}</Status>;
}
