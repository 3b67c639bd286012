import type { JSX } from "preact";
import { post } from "../api.ts";
import { plural, shortId } from "../format.ts";
import { Empty, Loaded, NotAvailable } from "../notice.tsx";
import { useRefreshing, useResource } from "../resource.ts";
import { query, setQuery } from "../router.ts";
import { may } from "../session.ts";
import { Status, type Tone } from "../status.tsx";
import { Ago } from "../time.tsx";
import { say, sayFailure } from "../toast.tsx";
import type { WireAlert, WireAlerts } from "../wire.ts";

const TONES: Readonly<Record<WireAlert["status"], Tone>> = {
  firing: "failed",
  acknowledged: "waiting",
  resolved: "succeeded",
};
const TABS = [
  ["", "Open"],
  ["firing", "Firing"],
  ["acknowledged", "Acknowledged"],
  ["resolved", "Resolved"],
  ["all", "All"],
] as const;
const REFRESH_MS = 10_000;

export function Alerts(): JSX.Element {
  const status = query.value.get("status") ?? "";
  const list = useResource<WireAlerts>(`/api/alerts${status === "" ? "" : `?status=${status}`}`, { keep: true });
  useRefreshing(list.reload, REFRESH_MS);
  return (
    <div class="page">
      <div class="page-head">
        <h1>Alerts</h1>
      </div>
      <Loaded of={list} missing={<NotAvailable what="Alerts" />}>
        {({ alerts }) => (
          <>
            <nav class="tabs" aria-label="Status">
              {TABS.map(([value, name]) => (
                <button
                  key={value}
                  type="button"
                  class="tab"
                  aria-pressed={value === status}
                  onClick={() => setQuery({ status: value })}
                >
                  {name}
                </button>
              ))}
            </nav>
            {alerts.length === 0 && (
              <Empty title={status === "" || status === "firing" ? "All quiet." : "None."}>
                Retry storms, stuck approvals, parked and stranded runs and budgets that run out are told here.
              </Empty>
            )}
            <ul class="alerts">
              {alerts.map((alert) => (
                <li key={alert.id}>
                  <Alert alert={alert} reload={list.reload} />
                </li>
              ))}
            </ul>
          </>
        )}
      </Loaded>
    </div>
  );
}

const SAYS = {
  acknowledge: "Acknowledged: it stays quiet until it is over.",
  resolve: "Resolved: it fires again if the same happens again.",
} as const;

function Alert({ alert, reload }: { readonly alert: WireAlert; reload(): Promise<void> }): JSX.Element {
  const act = async (what: keyof typeof SAYS) => {
    try {
      await post(`/api/alerts/${encodeURIComponent(alert.id)}/${what}`);
      say(SAYS[what]);
      await reload();
    } catch (error) {
      sayFailure(error);
    }
  };
  return (
    <article class="alert">
      <div class="alert-head">
        <Status tone={TONES[alert.status]}>{alert.status}</Status>
        <b>{alert.kind.replaceAll("_", " ")}</b>
        <span class="dim">
          <Ago at={alert.firedAt} />
          {alert.count > 1 && (
            <>
              , seen {plural(alert.count, "time")}, last <Ago at={alert.lastAt} />
            </>
          )}
        </span>
      </div>
      <p>{alert.summary}</p>
      <p class="dim">
        {alert.workflow !== null && (
          <a href={`/runs?workflow=${encodeURIComponent(alert.workflow)}`}>{alert.workflow}</a>
        )}{" "}
        {alert.runs.slice(0, 5).map((run) => (
          <a key={run} class="tag mono" href={`/runs/${encodeURIComponent(run)}`}>
            {shortId(run)}
          </a>
        ))}
        {alert.owner !== null && <> Owner: {alert.owner}.</>}
        {alert.acknowledgedBy !== null && <> Acknowledged by {alert.acknowledgedBy}.</>}
      </p>
      {alert.status !== "resolved" && may("operator") && (
        <div class="choices">
          {alert.status === "firing" && (
            <button type="button" onClick={() => void act("acknowledge")}>
              Acknowledge
            </button>
          )}
          <button type="button" onClick={() => void act("resolve")}>
            Resolve
          </button>
        </div>
      )}
    </article>
  );
}
