import type { Command } from "commander";
import { formatMs } from "../base/duration.ts";
import { hasCode, PawlError } from "../base/errors.ts";
import type { ApprovalSummary } from "../client/approvals.ts";
import type { Pawl } from "../client/pawl.ts";
import { type ApprovalDenials, RISKS, type Risk } from "../core/approval.ts";
import { action, addCommand, type Call, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { clean, countOf, shortJson } from "./printable.ts";
import { type Cell, table } from "./table.ts";
import { inTime } from "./times.ts";

interface ApprovalsOptions {
  readonly run?: string;
  readonly by?: string;
  readonly role?: readonly string[];
  readonly risk?: string;
}

export function addApprovals(program: Command): void {
  addCommand(program, "approvals [id]", "list what waits for a person's approval, or show one", [
    "pawl approvals",
    "pawl approvals --role physician --risk high",
    "pawl approvals aQ2xkY0c",
  ])
    .option("--run <run>", "only those of this run")
    .option("--by <name>", "only what this person may decide")
    .option("--role <role...>", "only what somebody with one of these roles may decide")
    .option("--risk <risk>", `only those of this risk: ${RISKS.join(", ")}`)
    .action(
      action<ApprovalsOptions, [string | undefined]>((call, id) =>
        withClient(call, async (pawl) => {
          if (id === undefined) await list(call, pawl);
          else show(call, await findApproval(pawl, id), pawl.store.clock.now());
          return EXIT.ok;
        }),
      ),
    );
}

const SHORTEST = 4;

/** The approval that was meant: by its id, or the beginning of one that is open. */
export async function findApproval(pawl: Pawl, text: string): Promise<ApprovalSummary> {
  // Asked for first: to look through all that are open takes long where there are many.
  const exact = await pawl.approvals.get(text).catch((error: unknown) => error);
  if (!(exact instanceof Error)) return exact as ApprovalSummary;
  if (!hasCode(exact, "approval_not_found")) throw exact;
  const open = text.length < SHORTEST ? [] : await openApprovals(pawl, {});
  const found = open.filter(({ id }) => id.startsWith(text));
  const [only, second] = found;
  if (only === undefined) throw exact;
  if (second === undefined) return only;
  throw new PawlError("invalid_argument", `"${text}" fits ${found.length} approvals. Give more of the id.`, {
    fields: { approval: text },
  });
}

async function openApprovals(pawl: Pawl, { run, by, role, risk }: ApprovalsOptions): Promise<ApprovalSummary[]> {
  if (risk !== undefined && !(RISKS as readonly string[]).includes(risk))
    throw new PawlError("invalid_argument", `--risk is "${risk}". Give one of: ${RISKS.join(", ")}.`);
  const all: ApprovalSummary[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await pawl.approvals.list({
      ...(run !== undefined && { run }),
      ...(by !== undefined && { by }),
      ...(role !== undefined && { roles: role }),
      ...(risk !== undefined && { risk: risk as Risk }),
      ...(cursor !== undefined && { cursor }),
    });
    all.push(...page.approvals);
    cursor = page.cursor;
  }
  return all;
}

async function list({ out, options }: Call<ApprovalsOptions>, pawl: Pawl): Promise<void> {
  const approvals = await openApprovals(pawl, options);
  if (out.isJson) return out.json({ approvals });
  if (approvals.length === 0) return out.note("Nothing waits for an approval.");
  const now = pawl.store.clock.now();
  const header: Cell[] = ["APPROVAL", "NAME", "RISK", "WAITING", "LEVEL", "DUE", "VOTES", "WHO MAY", "RUN", "ACTION"];
  const rows = approvals.map((one): Cell[] => [
    one.id,
    clean(one.name),
    one.risk === "high" || one.risk === "critical" ? { text: one.risk, paint: out.color.red } : one.risk,
    formatMs(one.waitedMs),
    String(one.level),
    inTime(now, one.due.getTime()),
    `${one.votes.length}/${one.quorum}`,
    clean(one.approvers.join(", ")),
    one.run,
    clean(`${one.action.tool} ${shortJson(one.action.arguments, 200)}`),
  ]);
  for (const line of table([header, ...rows], { right: [3, 4], width: out.width, header: out.color.dim }))
    out.print(line);
}

function show({ out }: Call<unknown>, one: ApprovalSummary, now: number): void {
  if (out.isJson) return out.json(one);
  const votes = one.votes.map(
    ({ by, decision, reason }) => `${by}: ${decision}${reason === undefined ? "" : ` (${reason})`}`,
  );
  const facts: (readonly [string, string])[] = [
    ["approval", `${one.name}  ${one.id}`],
    ["status", one.decision === null ? one.status : `${one.decision.decision} by ${one.decision.by ?? "nobody"}`],
    ["run", `${one.run} (${one.workflow})`],
    ["kind, risk", `${one.kind}, ${one.risk}`],
    ["tool", `${one.action.tool}${one.action.version === undefined ? "" : ` ${one.action.version}`}`],
    ["arguments", shortJson(one.action.arguments)],
    ...(one.action.resources === undefined ? [] : [["resources", one.action.resources.join(", ")] as const]),
    ...(one.evidence === null ? [] : [["evidence", shortJson(one.evidence)] as const]),
    ...(one.actor === null ? [] : [["actor", `${one.actor}${one.fourEyes ? ", who may not decide" : ""}`] as const]),
    ...(one.notBy === undefined ? [] : [["may not decide", one.notBy.join(", ")] as const]),
    ...(one.denials.tool === 0 ? [] : [["denied before", deniedText(one.denials)] as const]),
    ["who may", one.approvers.join(", ")],
    ["votes", `${one.votes.length} of ${one.quorum}${votes.length === 0 ? "" : `: ${votes.join("; ")}`}`],
    ["waiting", `${formatMs(one.waitedMs)}, level ${one.level}, until ${inTime(now, one.due.getTime())}`],
    ["hash", one.hash],
  ];
  for (const line of table(facts.map(([name, value]) => [{ text: name, paint: out.color.dim }, clean(value)])))
    out.print(line);
}

function deniedText({ action, tool }: ApprovalDenials): string {
  return `in this run, this very action ${countOf(action, "time")}, this tool ${countOf(tool, "time")}`;
}
