// The inbox of questions to people. What is shown is exactly what is approved: the hash that goes with a decision is that of the action on the page.
import type { ComponentChildren, JSX } from "preact";
import { post } from "../api.ts";
import { now } from "../clock.ts";
import { clockTime, duration, fullTime, msOf, plural, relative, shortId } from "../format.ts";
import { useKeys } from "../keys.ts";
import { Empty, Loaded } from "../notice.tsx";
import { useRefreshing, useResource } from "../resource.ts";
import { navigate } from "../router.ts";
import { may } from "../session.ts";
import { Word } from "../status.tsx";
import { Ago } from "../time.tsx";
import { Copy, Value } from "../value.tsx";
import type { WireApproval, WireApprovals } from "../wire.ts";
import { Decide } from "./approval-decide.tsx";

const REFRESH_MS = 10_000;

export function Approvals({ id }: { readonly id: string | null }): JSX.Element {
  const list = useResource<WireApprovals>("/api/approvals?limit=50");
  useRefreshing(list.reload, REFRESH_MS);
  const open = list.data?.approvals ?? [];
  const move = (by: number) => {
    const at = open.findIndex((one) => one.id === id);
    const next = open[Math.min(Math.max(at + by, 0), open.length - 1)];
    if (next !== undefined) navigate(`/approvals/${encodeURIComponent(next.id)}`);
  };
  useKeys({
    j: { says: "Next approval", act: () => move(1) },
    k: { says: "Approval before", act: () => move(-1) },
    Escape: { says: "Close the approval", act: () => navigate("/approvals") },
  });
  return (
    <div class="page">
      <div class="page-head">
        <h1>Approvals</h1>
      </div>
      <div class={id === null ? "inbox" : "inbox has-detail"}>
        <div class="inbox-list">
          <Loaded of={list}>
            {({ approvals, cursor }) => (
              <>
                {approvals.length === 0 && (
                  <Empty title="Nobody is asked anything.">
                    A run that calls <code>ctx.approve(…)</code> waits here for a person.
                  </Empty>
                )}
                <ul>
                  {approvals.map((one) => (
                    <li key={one.id}>
                      <Line approval={one} isChosen={one.id === id} />
                    </li>
                  ))}
                </ul>
                {cursor !== null && <p class="dim">The first {approvals.length} are shown.</p>}
              </>
            )}
          </Loaded>
        </div>
        {id !== null && <Approval key={id} id={id} onDecided={() => void list.reload()} />}
      </div>
    </div>
  );
}

function Line({ approval, isChosen }: { readonly approval: WireApproval; readonly isChosen: boolean }): JSX.Element {
  return (
    <a
      class="inbox-line"
      href={`/approvals/${encodeURIComponent(approval.id)}`}
      aria-current={isChosen ? "true" : undefined}
    >
      <span class="inbox-name">{approval.action.tool}</span>
      <Risk risk={approval.risk} />
      <span class="dim">
        {approval.workflow} · {approval.name} · due <Due at={approval.due} />
      </span>
    </a>
  );
}

const RISKS = { low: "quiet", medium: "waiting", high: "failed", critical: "failed" } as const;

/** As many bars as it is bad. */
function Risk({ risk }: { readonly risk: WireApproval["risk"] }): JSX.Element {
  const level = Object.keys(RISKS).indexOf(risk);
  return (
    <span class={`status tone-${RISKS[risk]}`}>
      <svg class="shape" viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
        {[0, 1, 2, 3].map((bar) => (
          <rect
            key={bar}
            x={1 + bar * 4}
            y={10 - bar * 3}
            width="2.6"
            height={4 + bar * 3}
            fill="currentColor"
            opacity={bar <= level ? 1 : 0.25}
          />
        ))}
      </svg>
      {risk} risk
    </span>
  );
}

function Due({ at }: { readonly at: string }): JSX.Element {
  return <span title={fullTime(at)}>{relative(at, now.value)}</span>;
}

function Approval({ id, onDecided }: { readonly id: string; onDecided(): void }): JSX.Element {
  const approval = useResource<WireApproval>(`/api/approvals/${encodeURIComponent(id)}`);
  return (
    <article class="inbox-detail" aria-label="The approval">
      <p class="crumbs phone-only">
        <a href="/approvals">All approvals</a>
      </p>
      <Loaded of={approval} missing={<NoApproval />}>
        {(data) => (
          <>
            <Question approval={data} />
            {data.status === "open" && may("approver") && (
              <Decide
                approval={data}
                decide={async (body) => {
                  await post(`/api/approvals/${encodeURIComponent(id)}/decide`, body);
                  await approval.reload();
                  onDecided();
                }}
              />
            )}
            {data.status === "open" && !may("approver") && <p class="dim">Your role may look, but not decide.</p>}
          </>
        )}
      </Loaded>
    </article>
  );
}

function NoApproval(): JSX.Element {
  return (
    <Empty title="There is no such approval.">
      It may have been removed with its run, or belong to another store. <a href="/approvals">All approvals</a>
    </Empty>
  );
}

function Question({ approval }: { readonly approval: WireApproval }): JSX.Element {
  const {
    action,
    hash,
    run,
    workflow,
    name,
    kind,
    evidence,
    approvers,
    quorum,
    votes,
    decision,
    handoffs,
    notBy,
    denials,
  } = approval;
  return (
    <>
      <header class="question">
        <h2>
          {action.tool} {action.version !== undefined && <span class="dim version">{action.version}</span>}
        </h2>
        <Risk risk={approval.risk} />
        {decision !== null ? <Word word={decision.decision} /> : approval.status === "closed" && <Word word="closed" />}
      </header>
      <p>
        {kind} "{name}" of{" "}
        <a href={`/runs/${encodeURIComponent(run)}`}>
          {workflow} {shortId(run)}
        </a>
        {approval.actor !== null && <>, on behalf of {approval.actor}</>}, asked <Ago at={approval.since} />
      </p>
      <Part name="Arguments">
        <Value value={action.arguments} name="the arguments" />
      </Part>
      {(action.resources?.length ?? 0) > 0 && (
        <Part name="It touches">
          <ul class="plain">
            {action.resources?.map((one) => (
              <li key={one} class="mono">
                {one}
              </li>
            ))}
          </ul>
        </Part>
      )}
      {evidence != null && (
        <Part name="Evidence">
          <Value value={evidence} name="the evidence" />
        </Part>
      )}
      <dl class="facts">
        <Fact name="Who may decide">{approvers.join(", ")}</Fact>
        {notBy !== undefined && notBy.length > 0 && <Fact name="But not">{notBy.join(", ")}</Fact>}
        <Fact name="Needed">
          {plural(quorum, "approval")}
          {approval.fourEyes && ", not by who acts"}
        </Fact>
        <Fact name={decision === null ? "Expires" : "Would have expired"}>
          <Due at={approval.due} /> <span class="dim">({clockTime(approval.due)})</span>
        </Fact>
        {approval.level > 0 && <Fact name="Escalated">level {approval.level}</Fact>}
        {approval.policyVersion !== null && <Fact name="Policy">{approval.policyVersion}</Fact>}
        {denials.action + denials.tool > 0 && (
          <Fact name="Denied before">
            {plural(denials.action, "time")} this action, {plural(denials.tool, "time")} this tool
          </Fact>
        )}
      </dl>
      {handoffs.length > 0 && (
        <Part name="How it came to them">
          <ul class="plain">
            {handoffs.map(({ level, from, to, at, reason }) => (
              <li key={level}>
                {clockTime(at)}: from {from.join(", ")} to {to.join(", ")}, {reason}
              </li>
            ))}
          </ul>
        </Part>
      )}
      {votes.length > 0 && (
        <Part name="Votes">
          <ul class="plain">
            {votes.map((vote) => (
              <li key={vote.by}>
                <Word word={vote.decision} /> by {vote.by} <span class="dim">{clockTime(vote.at)}</span>
                {vote.reason !== undefined && <>: {vote.reason}</>}
              </li>
            ))}
          </ul>
        </Part>
      )}
      {decision !== null && <Decided decision={decision} />}
      <p class="hash">
        <span class="dim">Hash of this action</span> <code class="mono">{hash}</code>{" "}
        <Copy text={() => hash} what="the hash" />
      </p>
    </>
  );
}

function Decided({ decision }: { readonly decision: NonNullable<WireApproval["decision"]> }): JSX.Element {
  return (
    <p class="decided">
      {decision.decision.replace("_", " ")}
      {decision.by !== null && ` by ${decision.by}`} at {clockTime(msOf(decision.at))}, after{" "}
      {duration(decision.waitedMs)}
      {decision.reason !== undefined && `: ${decision.reason}`}
    </p>
  );
}

function Part({ name, children }: { readonly name: string; readonly children: ComponentChildren }): JSX.Element {
  return (
    <section class="part">
      <h3>{name}</h3>
      {children}
    </section>
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
