// Where a run stands, in words: what it waits for, who has it, and what can be done.
import type { ComponentChildren, JSX } from "preact";
import { clockTime } from "../format.ts";
import { may } from "../session.ts";
import { RunState } from "../status.tsx";
import { Ago, Took } from "../time.tsx";
import { Copy } from "../value.tsx";
import type { WireStatus, WireWhy } from "../wire.ts";
import type { RunAction } from "./actions.tsx";

interface HeaderProps {
  readonly run: WireStatus;
  readonly why: WireWhy | null;
  readonly isLive: boolean;
  ask(action: RunAction): void;
}

export function RunHeader({ run, why, isLive, ask }: HeaderProps): JSX.Element {
  return (
    <header class="run-head">
      <p class="crumbs">
        <a href="/runs">Runs</a> <span aria-hidden="true">/</span>{" "}
        <a href={`/runs?workflow=${encodeURIComponent(run.workflow)}`}>{run.workflow}</a>
      </p>
      <div class="run-title">
        <h1>
          {run.workflow} <span class="dim version">{run.version}</span>
        </h1>
        <RunState run={run} />
        {run.endedAt === null && (
          <span class={isLive ? "live is-live" : "live"} role="status">
            {isLive ? "Live" : "Connecting…"}
          </span>
        )}
        <Actions run={run} ask={ask} />
      </div>
      <Facts run={run} why={why} />
      <Why run={run} why={why} ask={ask} />
    </header>
  );
}

function Actions({ run, ask }: Pick<HeaderProps, "run" | "ask">): JSX.Element | null {
  const hasEnded = run.endedAt !== null;
  return (
    <div class="run-actions">
      {may("operator") && (run.status === "failed" || run.status === "cancelled") && (
        <button type="button" class="primary" onClick={() => ask({ kind: "retry" })}>
          Retry…
        </button>
      )}
      {may("operator") && !hasEnded && (
        <>
          <button type="button" onClick={() => ask({ kind: "signal" })}>
            Signal…
          </button>
          <button type="button" onClick={() => ask({ kind: "cancel" })}>
            Cancel…
          </button>
        </>
      )}
      {may("operator") && (
        <button type="button" onClick={() => ask({ kind: "fork", at: "" })}>
          Fork…
        </button>
      )}
      <a class="button" href={`/api/runs/${encodeURIComponent(run.id)}/export`} download={`${run.id}.json`}>
        Export
      </a>
    </div>
  );
}

function Facts({ run, why }: Pick<HeaderProps, "run" | "why">): JSX.Element {
  return (
    <dl class="facts">
      <Fact name="Run">
        <span class="mono">{run.id}</span> <Copy text={() => run.id} what="the run's id" />
      </Fact>
      <Fact name="Started">
        <Ago at={run.createdAt} /> <span class="dim">({clockTime(run.createdAt)})</span>
      </Fact>
      <Fact name={run.endedAt === null ? "For" : "Took"}>
        <Took from={run.createdAt} to={run.endedAt} />
      </Fact>
      {run.key !== null && <Fact name="Key">{run.key}</Fact>}
      {run.tags.length > 0 && (
        <Fact name="Tags">
          {run.tags.map((tag) => (
            <a key={tag} class="tag" href={`/runs?tag=${encodeURIComponent(tag)}`}>
              {tag}
            </a>
          ))}
        </Fact>
      )}
      {why?.owner != null && (
        <Fact name="Worker">
          <a href="/workers">{why.owner.name}</a> <span class="dim">({why.owner.health})</span>
        </Fact>
      )}
      <RunLink name="Parent" id={run.parent} />
      <RunLink name="Goes on from" id={run.origin} />
      <Fact name="Trace">
        <span class="mono dim" title={run.traceId}>
          {run.traceId.slice(0, 8)}…
        </span>{" "}
        <Copy text={() => run.traceId} what="the trace id" />
      </Fact>
    </dl>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function RunLink({ name, id }: { readonly name: string; readonly id: string | null }): JSX.Element | null {
  if (id === null) return null;
  return (
    <Fact name={name}>
      <a class="mono" href={`/runs/${encodeURIComponent(id)}`} title={id}>
        {id.length > 24 ? `${id.slice(0, 8)}…${id.slice(-8)}` : id}
      </a>
    </Fact>
  );
}

/** Sentences of `why` name the run they are about, and times as programs write them; here the one is known, and the other is for people. */
function sentence(text: string, run: WireStatus): string {
  const name = `Run ${run.id} of ${run.workflow} ${run.version} `;
  const told = (text.startsWith(name) ? `It ${text.slice(name.length)}` : text)
    .replaceAll(`Run ${run.id}`, "It")
    .replaceAll(`run ${run.id}`, "this run");
  return told.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, clockTime);
}

function Why({ run, why, ask }: Pick<HeaderProps, "run" | "why" | "ask">): JSX.Element | null {
  if (why === null) return null;
  const approvals = run.waits.filter(({ kind }) => kind === "approval");
  const tone = run.state === "parked" ? "parked" : run.status;
  const commands = why.next.filter((line) => line.includes("pawl "));
  const advice = why.next.filter((line) => !line.includes("pawl "));
  return (
    <section class={`why tone-${tone}`} aria-label="Why it is where it is">
      <p class="why-summary">{sentence(why.summary, run)}</p>
      {why.present.map((line) => (
        <p key={line}>{sentence(line, run)}</p>
      ))}
      {advice.map((line) => (
        <p key={line} class="dim">
          {sentence(line, run).replace(/^Nothing: /, "There is nothing to do: ")}
        </p>
      ))}
      {commands.length > 0 && (
        <details class="why-next">
          <summary>On the command line</summary>
          <ul>
            {commands.map((line) => (
              <li key={line}>{sentence(line, run)}</li>
            ))}
          </ul>
        </details>
      )}
      {run.parked !== undefined && may("operator") && (
        <section class="choices" aria-label="Choices">
          <span>Decide:</span>
          {run.parked.choices.map((choice) => (
            <button key={choice} type="button" onClick={() => ask({ kind: "resolve", choice })}>
              {choice}…
            </button>
          ))}
        </section>
      )}
      {approvals.length > 0 && (
        <div class="choices">
          {approvals.map(({ name, key }) => (
            <a key={key} class="button primary" href={`/approvals/${encodeURIComponent(name)}`}>
              Look at the approval
            </a>
          ))}
        </div>
      )}
    </section>
  );
}
