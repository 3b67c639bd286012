import { existsSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { Command } from "commander";
import { messageWithCause, PawlError } from "../base/errors.ts";
import type { Pawl } from "../client/pawl.ts";
import { withChildren } from "../client/replay-packet.ts";
import type { Ended } from "../core/journal.ts";
import {
  changeIncidents,
  fingerprintOf,
  INCIDENT_STATUSES,
  type Incident,
  type IncidentStatus,
  nextIncidentId,
  readIncidents,
  recurrenceIn,
  recurrenceOf,
  withoutCase,
} from "../observe/incidents.ts";
import type { EvalCase } from "../testing/evals/read-case.ts";
import { evalFromRun, PERSONAL_NAMES } from "../testing/evals/regression.ts";
import { action, addCommand, type Call, withClient } from "./command.ts";
import { played, printResult } from "./eval.ts";
import { assertWorkflows, CASES_FOLDER, CASES_HELP, loadSubjects, readCase } from "./eval-files.ts";
import { EXIT } from "./exit-codes.ts";
import { clean, countOf } from "./printable.ts";
import { findRun } from "./run-id.ts";
import { type Cell, table } from "./table.ts";

interface FolderOptions {
  readonly cases?: string;
}

interface OpenOptions extends FolderOptions {
  readonly title?: string;
  readonly owner?: string;
  readonly expires?: string;
  readonly expect?: string;
  readonly case?: string;
}

interface SetOptions extends FolderOptions {
  readonly status?: string;
  readonly owner?: string;
  readonly expires?: string;
  readonly case?: string;
}

interface GateOptions extends FolderOptions {
  readonly workflows?: readonly string[];
}

export function addIncident(program: Command): void {
  const group = program
    .command("incident")
    .summary("turn what went wrong into eval cases, and hold releases to them: open, list, set, gate")
    .description("Turn what went wrong in production into eval cases, and hold releases to them.");
  for (const add of [addOpen, addList, addSet, addGate]) add(group);
}

function addOpen(group: Command): void {
  addCommand(group, "open <run>", "record an incident, with a regression case made from its run", [
    `pawl incident open 0193a7c2 --owner ann --title "refunded twice"`,
    "pawl incident open 0193a7c2 --case refunded_twice.json      # a case that is there already",
  ])
    .option("--cases <folder>", CASES_HELP)
    .option("--title <text>", "what went wrong, in a few words")
    .option("--owner <name>", "who sees to it")
    .option("--expires <day>", "when somebody should look at it again: 2027-01-31")
    .option("--expect <status>", "what the run should have come to, such as succeeded (default: not what it came to)")
    .option("--case <file>", "link this case of the folder instead of making one")
    .action(
      action<OpenOptions, [string]>((call, text) =>
        withClient(call, async (pawl) => {
          const incident = await open(call, pawl, await findRun(pawl, text));
          const { out } = call;
          if (out.isJson) out.json(incident);
          else {
            out.print(`Incident ${incident.id} is open; its case is ${incident.case}.`);
            if (incident.recurrenceOf !== null)
              out.note(
                out.noteColor.yellow(`It has come back: ${incident.recurrenceOf} was the same, and had a case.`),
              );
          }
          return EXIT.ok;
        }),
      ),
    );
}

async function open({ options }: Call<OpenOptions>, pawl: Pawl, run: string): Promise<Incident> {
  const { cases: folder = CASES_FOLDER, owner, expires, expect } = options;
  assertDay(expires);
  const known = readIncidents(folder).find((one) => one.run === run);
  if (known !== undefined) return known;
  const { workflow, status, stopReason = null } = await pawl.get(run).status();
  const last = (await pawl.get(run).journal()).at(-1);
  const error = messageWithCause((last?.payload as Partial<Ended> | null)?.error ?? status);
  const fingerprint = fingerprintOf({ workflow, stopReason, error });
  const how = {
    ...(owner !== undefined && { owner }),
    ...(expires !== undefined && { expires }),
    ...(expect !== undefined && { expect }),
  };
  const made = options.case === undefined ? await caseOf(pawl, run, how) : linked(folder, options.case);
  return changeIncidents(folder, (incidents) => {
    const other = incidents.find((one) => one.run === run);
    if (other !== undefined) return { incidents, answer: other };
    const incident: Incident = {
      id: nextIncidentId(incidents),
      title: options.title ?? `${workflow} ${status}${stopReason === null ? "" : `: ${stopReason}`}`,
      run,
      workflow,
      status: "draft",
      openedAt: new Date().toISOString(),
      owner: owner ?? null,
      expires: expires ?? null,
      case: typeof made === "string" ? made : writeCase(folder, made),
      fingerprint,
      recurrenceOf: recurrenceIn(incidents, fingerprint),
    };
    return { incidents: [...incidents, incident], answer: incident };
  });
}

async function caseOf(pawl: Pawl, run: string, how: object): Promise<EvalCase> {
  const [exported, ...children] = await withChildren(pawl, run, { redact: PERSONAL_NAMES });
  if (exported === undefined) throw new Error("an export has at least its run");
  return evalFromRun(exported, { ...how, children });
}

/** Under the first id that no case has: one that is there may have been made better by hand. */
function writeCase(folder: string, made: EvalCase): string {
  for (let n = 1; ; n++) {
    const id = n === 1 ? made.case_id : `${made.case_id}-${n}`;
    const file = `${id.replace(/[^\w.-]+/g, "_")}.json`;
    try {
      writeFileSync(join(folder, file), `${JSON.stringify({ ...made, case_id: id }, null, 2)}\n`, { flag: "wx" });
      return file;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}

function linked(folder: string, file: string): string {
  const name = basename(file);
  if (!existsSync(join(folder, name)))
    throw new PawlError(
      "invalid_argument",
      `--case ${file}: there is no such file in ${folder}. Name a case of that folder, or leave --case out to have one made.`,
      {
        fields: { option: "--case", file },
      },
    );
  readCase(join(folder, name));
  return name;
}

function assertDay(day: string | undefined): void {
  if (day === undefined || /^\d{4}-\d{2}-\d{2}$/.test(day)) return;
  throw new PawlError("invalid_argument", `--expires "${day}" is no day. Give one such as 2027-01-31.`, {
    fields: { option: "--expires", value: day },
  });
}

function addList(group: Command): void {
  addCommand(group, "list", "list incidents, how many have come back, and which have no case", [
    "pawl incident list",
    "pawl incident list --cases evals --json",
  ])
    .option("--cases <folder>", CASES_HELP)
    .action(
      action<FolderOptions, []>(async ({ options: { cases: folder = CASES_FOLDER }, out }) => {
        const incidents = readIncidents(folder);
        const recurrence = recurrenceOf(incidents);
        const open = withoutCase(folder, incidents);
        if (out.isJson) out.json({ incidents, recurrence, withoutCase: open.map(({ id }) => id) });
        else {
          const rows = incidents.map((one): Cell[] => [
            one.id,
            one.status,
            clean(one.workflow),
            clean(one.owner ?? "nobody"),
            one.expires ?? "",
            clean(one.case ?? "none"),
            clean(one.title),
          ]);
          const header: Cell[] = ["INCIDENT", "STATUS", "WORKFLOW", "OWNER", "EXPIRES", "CASE", "TITLE"];
          for (const line of table([header, ...rows], { right: [], width: out.width, header: out.color.dim }))
            out.print(line);
          out.print(
            `${countOf(incidents.length, "incident")}, ${recurrence.recurred} of them had a case before; ${open.length} without a case.`,
          );
        }
        return EXIT.ok;
      }),
    );
}

function addSet(group: Command): void {
  addCommand(group, "set <incident>", "change an incident's status, owner, expiry or case", [
    "pawl incident set incident-3 --status active --owner ann",
  ])
    .option("--cases <folder>", CASES_HELP)
    .option("--status <status>", `one of ${INCIDENT_STATUSES.join(", ")}`)
    .option("--owner <name>", "who sees to it")
    .option("--expires <day>", "when somebody should look at it again: 2027-01-31")
    .option("--case <file>", "its case, in the folder")
    .action(
      action<SetOptions, [string]>(async ({ options, out }, id) => {
        const { cases: folder = CASES_FOLDER, status, owner, expires, case: file } = options;
        assertDay(expires);
        if (status !== undefined && !(INCIDENT_STATUSES as readonly string[]).includes(status))
          throw new PawlError("invalid_argument", `--status "${status}" is none of ${INCIDENT_STATUSES.join(", ")}.`, {
            fields: { option: "--status", value: status },
          });
        const isFound = readIncidents(folder).some((one) => one.id === id);
        if (!isFound) throw noIncident(folder, id);
        const changed = await changeIncidents(folder, (incidents) => {
          const found = incidents.find((one) => one.id === id);
          if (found === undefined) throw noIncident(folder, id);
          const answer: Incident = {
            ...found,
            ...(status !== undefined && { status: status as IncidentStatus }),
            ...(owner !== undefined && { owner }),
            ...(expires !== undefined && { expires }),
            ...(file !== undefined && { case: linked(folder, file) }),
          };
          return { incidents: incidents.map((one) => (one === found ? answer : one)), answer };
        });
        if (out.isJson) out.json(changed);
        else out.print(`Incident ${id} is ${changed.status}.`);
        return EXIT.ok;
      }),
    );
}

function noIncident(folder: string, id: string): PawlError {
  const known = readIncidents(folder).map((one) => one.id);
  return new PawlError(
    "invalid_argument",
    `There is no incident "${id}" in ${folder}. There are: ${known.join(", ") || "none"}.`,
    { fields: { incident: id } },
  );
}

/** What keeps a release back. */
interface Finding {
  readonly incident: string;
  readonly problem: string;
}

function addGate(group: Command): void {
  addCommand(group, "gate", "the release gate: every incident has a case that holds, an owner, and has not expired", [
    "pawl incident gate --workflows workflows/refund.ts",
  ])
    .option("--cases <folder>", CASES_HELP)
    .option("--workflows <files...>", "files that export the workflows, or setups made with evalSetup()")
    .addHelpText("after", "\nDrafts are told of and keep nothing back. Exit codes: 0 if the release may go, 1 if not.")
    .action(
      action<GateOptions, []>(async ({ options, out }) => {
        const { cases: folder = CASES_FOLDER } = options;
        const incidents = readIncidents(folder).filter(({ status }) => status !== "retired");
        const subjects = await loadSubjects(assertWorkflows(options.workflows));
        const findings: Finding[] = incidents.flatMap((one) => paperwork(folder, one));
        const missing = new Set(withoutCase(folder, incidents));
        for (const one of incidents.filter((incident) => !missing.has(incident))) {
          const file = join(folder, one.case ?? "");
          for await (const result of played([{ file, case: readCase(file) }], subjects, false)) {
            if (!out.isJson) printResult(out, result);
            if (!result.ok)
              findings.push({
                incident: one.id,
                problem: `its case ${one.case} does not hold: ${result.broken.map(({ expectation }) => expectation).join(", ")}`,
              });
          }
        }
        const drafts = new Set(incidents.filter(({ status }) => status === "draft").map(({ id }) => id));
        const holding = findings.filter(({ incident }) => !drafts.has(incident));
        const ok = holding.length === 0;
        if (out.isJson)
          out.json({ ok, incidents: incidents.length, recurrence: recurrenceOf(readIncidents(folder)), findings });
        else {
          for (const { incident, problem } of findings)
            out.print(`${incident}${drafts.has(incident) ? " (draft)" : ""}: ${clean(problem)}.`);
          out.print(
            ok
              ? `${countOf(incidents.length, "incident")}: the release may go.`
              : `${countOf(holding.length, "finding")} keep the release back.`,
          );
        }
        return ok ? EXIT.ok : EXIT.failed;
      }),
    );
}

function paperwork(folder: string, one: Incident): Finding[] {
  const today = new Date().toISOString().slice(0, 10);
  const problems = [
    ...(withoutCase(folder, [one]).length > 0 ? ["it has no eval case"] : []),
    ...(one.owner === null ? ["it has no owner"] : []),
    ...(one.expires !== null && one.expires < today
      ? [`it has expired on ${one.expires}: look at it again, then set --expires or --status retired`]
      : []),
  ];
  return problems.map((problem) => ({ incident: one.id, problem }));
}
