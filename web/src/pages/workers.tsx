import type { JSX } from "preact";
import { duration, plural } from "../format.ts";
import { Empty, Loaded } from "../notice.tsx";
import { useRefreshing, useResource } from "../resource.ts";
import { Word } from "../status.tsx";
import { Ago } from "../time.tsx";
import type { WireQueues, WireWorkers } from "../wire.ts";

const REFRESH_MS = 5000;

export function Workers(): JSX.Element {
  const workers = useResource<WireWorkers>("/api/workers");
  const queues = useResource<WireQueues>("/api/queues");
  useRefreshing(workers.reload, REFRESH_MS);
  useRefreshing(queues.reload, REFRESH_MS);
  return (
    <div class="page">
      <div class="page-head">
        <h1>Workers</h1>
      </div>
      <Loaded of={workers}>
        {({ workers: all, stranded }) => (
          <>
            {all.length === 0 && (
              <Empty title="No worker. Nothing moves until one starts.">
                <code>pawl worker FILE…</code> works on the runs of the workflows in these files.
              </Empty>
            )}
            {all.length > 0 && <WorkerTable workers={all} />}
            {stranded?.map(({ workflow, version, runs, example }) => (
              <p key={`${workflow} ${version}`} class="stale" role="alert">
                {plural(runs, "run")} of {workflow} {version} cannot be taken by any live worker, for example{" "}
                <a href={`/runs/${encodeURIComponent(example)}`}>this one</a>.
              </p>
            ))}
          </>
        )}
      </Loaded>
      <h2>Queues</h2>
      <Loaded of={queues} missing={<Empty title="Queues are not available on this server." />}>
        {({ queues: lines }) =>
          lines.length === 0 ? (
            <Empty title="Nothing stands in line.">
              Runs that wait for a slot or for their turn within a rate are counted here.
            </Empty>
          ) : (
            <QueueTable queues={lines} />
          )
        }
      </Loaded>
    </div>
  );
}

function WorkerTable({ workers }: { readonly workers: WireWorkers["workers"] }): JSX.Element {
  return (
    <table class="list stack">
      <thead>
        <tr>
          <th>Worker</th>
          <th>Health</th>
          <th class="num">Runs</th>
          <th class="num">Lease left</th>
          <th class="num">Process id</th>
          <th class="num">Since</th>
          <th>Workflows</th>
        </tr>
      </thead>
      <tbody>
        {workers.map((worker) => (
          <tr key={worker.id}>
            <td>
              <b>{worker.name}</b>
            </td>
            <td>
              <Word word={worker.health} />
            </td>
            <td data-name="Runs" class="num">
              <a href="/runs?status=running">{worker.runs}</a>
            </td>
            <td data-name="Lease left" class="num">
              {worker.leaseLeftMs < 0 ? "over" : duration(worker.leaseLeftMs)}
            </td>
            <td data-name="Process id" class="num">
              {worker.pid}
            </td>
            <td data-name="Since" class="num">
              <Ago at={worker.startedAt} />
            </td>
            <td data-name="Workflows" class="tags">
              {worker.workflows.map(({ name, version }) => (
                <a key={`${name} ${version}`} class="tag" href={`/runs?workflow=${encodeURIComponent(name)}`}>
                  {name} {version}
                </a>
              ))}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function QueueTable({ queues }: { readonly queues: WireQueues["queues"] }): JSX.Element {
  return (
    <table class="list stack">
      <thead>
        <tr>
          <th>Line</th>
          <th>For</th>
          <th class="num">Limit</th>
          <th class="num">Under way</th>
          <th class="num">In line</th>
          <th class="num">Since</th>
        </tr>
      </thead>
      <tbody>
        {queues.map((line) => (
          <tr key={`${line.kind} ${line.name}`}>
            <td>
              <b>{line.name}</b>
            </td>
            <td data-name="For">{LINES[line.kind]}</td>
            <td data-name="Limit" class="num">
              {line.limit ?? "none"}
              {line.perMs !== null && ` in ${duration(line.perMs)}`}
            </td>
            <td data-name="Under way" class="num">
              {line.running}
            </td>
            <td data-name="In line" class="num">
              {line.waiting}
            </td>
            <td data-name="Since" class="num">
              {line.since !== null && <Ago at={line.since} />}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const LINES = { workflow: "a worker", slot: "a slot", rate: "its turn within a rate" } as const;
