import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { post } from "../api.ts";
import { duration } from "../format.ts";
import { Empty, Loaded } from "../notice.tsx";
import { useRefreshing, useResource } from "../resource.ts";
import { may } from "../session.ts";
import { Status } from "../status.tsx";
import { Ago } from "../time.tsx";
import { say, sayFailure } from "../toast.tsx";
import type { WireSchedule } from "../wire.ts";

interface WireSchedules {
  readonly schedules: readonly WireSchedule[];
}

const REFRESH_MS = 10_000;

export function Schedules(): JSX.Element {
  const list = useResource<WireSchedules>("/api/schedules");
  useRefreshing(list.reload, REFRESH_MS);
  return (
    <div class="page">
      <div class="page-head">
        <h1>Schedules</h1>
      </div>
      <Loaded of={list}>
        {({ schedules }) =>
          schedules.length === 0 ? (
            <Empty title="No schedules.">
              <code>pawl.schedule(name, workflow, &#123; cron: "0 6 * * *" &#125;)</code> makes one.
            </Empty>
          ) : (
            <table class="list stack">
              <thead>
                <tr>
                  <th>Schedule</th>
                  <th>Workflow</th>
                  <th>When</th>
                  <th class="num">Next</th>
                  <th class="num">Last</th>
                  <th class="num">Skipped</th>
                  <th>
                    <span class="unseen">Act</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {schedules.map((one) => (
                  <Row key={one.name} schedule={one} reload={list.reload} />
                ))}
              </tbody>
            </table>
          )
        }
      </Loaded>
    </div>
  );
}

function Row({ schedule, reload }: { readonly schedule: WireSchedule; reload(): Promise<void> }): JSX.Element {
  const { name, workflow, paused, next, lastRun, lastSlot, skipped } = schedule;
  const [isBusy, setBusy] = useState(false);
  const act = async (what: "pause" | "resume") => {
    setBusy(true);
    try {
      await post(`/api/schedules/${encodeURIComponent(name)}/${what}`);
      say(what === "pause" ? `"${name}" is paused: slots start nothing.` : `"${name}" goes on with the next slot.`);
      await reload();
    } catch (error) {
      sayFailure(error);
    }
    setBusy(false);
  };
  return (
    <tr>
      <td>
        <b>{name}</b> {paused && <Status tone="parked">paused</Status>}
      </td>
      <td data-name="Workflow">
        <a href={`/runs?tag=${encodeURIComponent(`schedule:${name}`)}`}>{workflow}</a>
      </td>
      <td data-name="When">{whenOf(schedule)}</td>
      <td data-name="Next" class="num">
        {next === null ? "never" : <Ago at={next} />}
      </td>
      <td data-name="Last" class="num">
        {lastRun === null ? (
          "none yet"
        ) : (
          <a href={`/runs/${encodeURIComponent(lastRun)}`}>
            <Ago at={lastSlot} />
          </a>
        )}
      </td>
      <td data-name="Skipped" class="num">
        {skipped}
      </td>
      <td class="act">
        {may("operator") && (
          <button type="button" disabled={isBusy} onClick={() => void act(paused ? "resume" : "pause")}>
            {paused ? "Resume" : "Pause"}
          </button>
        )}
      </td>
    </tr>
  );
}

function whenOf({ cron, zone, everyMs }: WireSchedule): JSX.Element {
  if (cron === undefined) return <>every {duration(everyMs ?? 0)}</>;
  return (
    <span>
      <span class="mono">{cron}</span> <span class="dim">{zone}</span>
    </span>
  );
}
