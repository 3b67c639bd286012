// The page of a link
// Plain HTML without a script: what is to be approved, exactly, and a form. Only that form's own post decides.
import { encode } from "../base/codec.ts";
import { formatMs } from "../base/duration.ts";
import { messageOf, PawlError } from "../base/errors.ts";
import type { LinkRefusal, OpenedLink } from "../client/approval-links.ts";
import type { DecisionReceipt } from "../client/approvals.ts";
import type { VoteDecision } from "../core/approval.ts";
import { html, page } from "./html.ts";

/** What people choose from. */
const CHOICES: readonly (readonly [VoteDecision, string])[] = [
  ["approved", "Approve"],
  ["denied", "Deny"],
  ["changes_requested", "Ask for changes"],
];

/** Shows what a link is for, and the form to decide with. */
export function decisionPage({ approval, link, by }: OpenedLink, nonce: string): Response {
  const { action, evidence, risk, workflow, run, name, actor, votes, quorum, waitedMs } = approval;
  const facts: (readonly [string, string | null])[] = [
    ["Asked by", `${workflow}, run ${run}, "${name}", ${formatMs(waitedMs)} ago`],
    ["On behalf of", actor],
    ["Risk", risk],
    ["You decide as", by],
    ["This link is good until", link.expiresAt.toISOString()],
    ["Approved so far", quorum > 1 ? `${votes.length} of ${quorum}` : null],
    ["Denied in this run before", approval.denials.tool > 0 ? String(approval.denials.tool) : null],
  ];
  return page(
    `Approve ${action.tool}?`,
    html`<h1>Approve <code>${action.tool}</code>?</h1>
<p>Nothing has been decided yet. Read what will be done, then choose.</p>
<h2>What will be done</h2>
<dl>
<dt>Tool</dt><dd><code>${action.tool}</code>${action.version === undefined ? null : ` version ${action.version}`}</dd>
<dt>Arguments</dt><dd><pre>${shown(action.arguments)}</pre></dd>
${(action.resources ?? []).length === 0 ? null : html`<dt>Resources</dt><dd><pre>${(action.resources ?? []).join("\n")}</pre></dd>`}
<dt>Hash</dt><dd><code>${approval.hash}</code></dd>
</dl>
${evidence === null ? null : html`<h2>Why</h2><pre>${shown(evidence)}</pre>`}
<h2>About</h2>
<dl>${facts.map(([term, value]) => (value === null ? null : html`<dt>${term}</dt><dd>${value}</dd>`))}</dl>
<form method="post">
<input type="hidden" name="nonce" value="${nonce}">
<input type="hidden" name="hash" value="${approval.hash}">
<label for="reason">Reason (needed to ask for changes)</label>
<textarea id="reason" name="reason" rows="3" maxlength="1000"></textarea>
<p class="choices">${CHOICES.map(([word, label]) => html`<button type="submit" name="decision" value="${word}">${label}</button> `)}</p>
</form>`,
  );
}

/** Asks who it is. What is to be approved is not shown before. */
export function signInPage(nonce: string, problem: string | null = null): Response {
  return page(
    "Sign in to decide",
    html`<h1>Sign in to decide</h1>
<p>This link is for people who say who they are. Nothing has been decided yet.</p>
${problem === null ? null : html`<p role="alert">${problem}</p>`}
<form method="post">
<input type="hidden" name="nonce" value="${nonce}">
<label for="accessToken">Your access token</label>
<input id="accessToken" name="accessToken" type="password" autocomplete="current-password" required>
<p class="choices"><button type="submit">Sign in</button></p>
</form>`,
    problem === null ? 401 : 403,
  );
}

const SAID: Readonly<Record<VoteDecision, string>> = {
  approved: "approved",
  denied: "denied",
  changes_requested: "sent back for changes",
};

export function decidedPage({ decision, run, missing }: DecisionReceipt, by: string): Response {
  const more = missing === 0 ? null : html`<p>${missing} more must approve before it is done.</p>`;
  return page(
    "Your decision is recorded",
    html`<h1>Your decision is recorded</h1>
<p>${by} has ${SAID[decision]} it, for run <code>${run}</code>. This link is of no more use.</p>${more}`,
  );
}

const STATUS: Readonly<Record<LinkRefusal, number>> = {
  unknown: 404,
  expired: 410,
  revoked: 410,
  closed: 410,
  used: 409,
  decided: 409,
  other_run: 409,
  changed_action: 409,
  sign_in: 401,
  wrong_audience: 403,
};

/** Why nothing was decided, in plain words. */
export function refusedPage(error: PawlError): Response {
  const { reason, decision, by } = error.fields;
  const status = error.code === "link_refused" ? STATUS[reason as LinkRefusal] : (OTHERS[error.code] ?? 400);
  const known = typeof decision === "string" ? html`<p>It was ${decision.replace("_", " ")}${byWhom(by)}.</p>` : null;
  return page(
    "Nothing was decided",
    html`<h1>Nothing was decided here</h1>
<p role="alert">${messageOf(error)}</p>${known}`,
    status,
  );
}

function byWhom(by: unknown): string {
  return typeof by === "string" ? ` by ${by}` : "";
}

/** What the approval itself says to a vote that it does not take. */
const OTHERS: Readonly<Partial<Record<PawlError["code"], number>>> = {
  approval_decided: 409,
  approval_expired: 410,
  approval_mismatch: 403,
  approval_not_found: 404,
  forbidden: 403,
  idempotency_conflict: 409,
  run_ended: 410,
};

/** Whether a page can tell people what it means; anything else is a fault of the server. */
export function isRefusal(error: unknown): error is PawlError {
  return (
    error instanceof PawlError &&
    (error.code === "link_refused" || error.code === "invalid_argument" || error.code in OTHERS)
  );
}

/** As it is recorded: what looks the same is the same. */
function shown(value: unknown): string {
  return JSON.stringify(JSON.parse(encode(value)), null, 2);
}

export const LINK_STYLE = `:root { color-scheme: light dark; --ink: #1d2330; --paper: #fff; --line: #cbd0da; --quiet: #5a6274; --deep: #1f5fbf; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --paper: #14171d; --line: #3a4150; --quiet: #a3abbb; --deep: #8ab4f8; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 42rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.125rem; margin-top: 2rem; }
dt { color: var(--quiet); margin-top: .5rem; } dd { margin: 0; overflow-wrap: anywhere; }
pre { margin: 0; padding: .75rem; border: 1px solid var(--line); border-radius: .25rem; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
form { margin-top: 2rem; border-top: 1px solid var(--line); padding-top: 1rem; }
label { display: block; margin-bottom: .25rem; }
textarea, input[type="password"] { box-sizing: border-box; width: 100%; padding: .5rem; font: inherit; color: inherit; background: transparent; border: 1px solid var(--quiet); border-radius: .25rem; }
button { font: inherit; padding: .5rem 1rem; color: var(--ink); background: transparent; border: 1px solid var(--quiet); border-radius: .25rem; cursor: pointer; }
button:hover { border-color: var(--deep); } :focus-visible { outline: 3px solid var(--deep); outline-offset: 2px; }
`;
