import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { errorText } from "../format.ts";
import { Empty, Loaded } from "../notice.tsx";
import { Value } from "../value.tsx";
import { CallDetail } from "./call-detail.tsx";
import { TimelineChart } from "./timeline-chart.tsx";
import type { RunView } from "./view.ts";

export function TimelineTab({ run, line, ask }: RunView): JSX.Element {
  const [chosen, setChosen] = useState<number | null>(null);
  return (
    <Loaded of={line}>
      {(data) => (
        <>
          {data.steps.length + data.waits.length + data.children.length === 0 ? (
            <Empty title="Nothing has been recorded yet.">A step appears here as soon as it begins.</Empty>
          ) : (
            <div class={chosen === null ? "with-detail" : "with-detail has-detail"}>
              <TimelineChart line={data} chosen={chosen} choose={setChosen} />
              {chosen !== null && <CallDetail line={data} seq={chosen} ask={ask} onClose={() => setChosen(null)} />}
            </div>
          )}
          <div class="columns">
            <section class="part">
              <h2>Input</h2>
              <Value value={run.input} name="the input" />
            </section>
            {run.output !== undefined && (
              <section class="part">
                <h2>Output</h2>
                <Value value={run.output} name="the output" />
              </section>
            )}
            {run.error !== undefined && (
              <section class="part">
                <h2>Error</h2>
                <p class="error-text">{errorText(run.error)}</p>
                <Value value={run.error} name="the error" />
              </section>
            )}
          </div>
        </>
      )}
    </Loaded>
  );
}
