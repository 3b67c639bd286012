import { hostname } from "node:os";
import type { Command } from "commander";
import type { Decision } from "../client/approvals.ts";
import type { VoteDecision } from "../core/approval.ts";
import { findApproval } from "./approvals.ts";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { noteIfNobodyWorks } from "./inheritor.ts";
import { readValue } from "./input.ts";
import { clean } from "./printable.ts";
import { recorded } from "./recorded.ts";

interface DecideOptions {
  readonly by: string;
  readonly role?: readonly string[];
  readonly reason?: string;
  readonly arguments?: string;
  readonly hash?: string;
}

export function addApprove(program: Command): void {
  decides(program, "approve", "approved", "approve what a run asks for", [
    "pawl approve aQ2xkY0c --by ann --role physician --reason 'checked the doses'",
  ]);
}

export function addDeny(program: Command): void {
  decides(program, "deny", "denied", "deny what a run asks for", [
    "pawl deny aQ2xkY0c --by ann --reason 'paid already'",
  ]);
}

export function addRequestChanges(program: Command): void {
  decides(program, "request-changes", "changes_requested", "ask for other arguments instead", [
    `pawl request-changes aQ2xkY0c --by ann --arguments '{"cents":2100}' --reason 'half of it'`,
  ]).option("--arguments <json>", "the arguments as they should be: JSON, @file or - for stdin");
}

function decides(program: Command, name: string, decision: VoteDecision, summary: string, examples: string[]): Command {
  return addCommand(program, `${name} <id>`, `${summary}; pawl approvals lists them`, examples)
    .requiredOption("--by <name>", "who decides")
    .option("--role <role...>", "what they are, such as physician")
    .option("--reason <text>", "why, for the record")
    .option("--hash <hash>", "of the action that they have seen: refused if it is another one by now")
    .action(
      action<DecideOptions, [string]>((call, text) =>
        withClient(call, async (pawl) => {
          const { options, out, url } = call;
          const edited = await readValue(options.arguments, "--arguments");
          const { id, name: asked } = await findApproval(pawl, text);
          const given: Decision = {
            decision,
            by: options.by,
            from: `pawl on ${hostname()}`,
            ...(options.role !== undefined && { roles: options.role }),
            ...(options.reason !== undefined && { reason: options.reason }),
            ...(options.hash !== undefined && { hash: options.hash }),
            ...(options.arguments !== undefined && { arguments: edited }),
          };
          const receipt = await recorded(call, pawl, id, () => pawl.approvals.decide(id, given));
          if (out.isJson) out.json(receipt);
          else out.print(said(asked, receipt.run, decision, options.by, receipt.missing));
          if (receipt.missing === 0) await noteIfNobodyWorks(out, url, pawl, receipt.run);
          return EXIT.ok;
        }),
      ),
    );
}

function said(name: string, run: string, decision: VoteDecision, by: string, missing: number): string {
  const more = missing === 0 ? "" : ` ${missing} more must approve.`;
  return `Recorded for "${clean(name)}" of run ${run}: ${decision.replace("_", " ")} by ${clean(by)}.${more}`;
}
