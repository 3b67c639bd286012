import type { JSX } from "preact";
import { Empty } from "../notice.tsx";
import { Value } from "../value.tsx";
import type { RunView } from "./view.ts";

export function StateTab({ run }: RunView): JSX.Element {
  const keys = Object.keys(run.data);
  return (
    <section aria-label="State">
      {keys.length === 0 ? (
        <Empty title="This run has no state that others may read.">
          A workflow makes values readable with <code>ctx.set(key, value)</code>.
        </Empty>
      ) : (
        <Value value={run.data} name="the state" />
      )}
    </section>
  );
}
