#!/usr/bin/env node
import { Command, CommanderError } from "commander";
import { packageVersion } from "../client/package-version.ts";
import { addAdvance } from "./advance.ts";
import { addAgents } from "./agents.ts";
import { addAlerts } from "./alerts.ts";
import { addAnswer, addRevoke } from "./answer.ts";
import { addApprovals } from "./approvals.ts";
import { addApprove, addDeny, addRequestChanges } from "./approve.ts";
import { addAudit } from "./audit.ts";
import { addBackup } from "./backup.ts";
import { addCancel } from "./cancel.ts";
import { addCheck } from "./check.ts";
import { JSON_HELP, STORE_HELP } from "./command.ts";
import { addDev } from "./dev.ts";
import { addDiff } from "./diff.ts";
import { addDoctor } from "./doctor.ts";
import { addEffects } from "./effects.ts";
import { addEval } from "./eval.ts";
import { EXIT, EXIT_CODES_HELP } from "./exit-codes.ts";
import { addExitCodes } from "./exit-codes-command.ts";
import { addExport } from "./export.ts";
import { addFit } from "./fit.ts";
import { addFork } from "./fork.ts";
import { addGraph } from "./graph.ts";
import { addHold, addHolds, addRelease } from "./hold.ts";
import { addImport } from "./import.ts";
import { addIncident } from "./incident.ts";
import { addInit } from "./init.ts";
import { addJournal } from "./journal.ts";
import { addKeys } from "./keys.ts";
import { addLink } from "./link.ts";
import { addLs } from "./ls.ts";
import { addMcp } from "./mcp.ts";
import { addMetrics } from "./metrics.ts";
import { addNext } from "./next.ts";
import { addPlaybook } from "./playbook.ts";
import { addPurge } from "./purge.ts";
import { addReplay } from "./replay.ts";
import { addResolve } from "./resolve.ts";
import { addRetry } from "./retry.ts";
import { addReview } from "./review.ts";
import { addRun } from "./run.ts";
import { addSchedules } from "./schedules.ts";
import { addServe } from "./serve.ts";
import { addShow } from "./show.ts";
import { addSignal } from "./signal.ts";
import { addStart } from "./start.ts";
import { addState } from "./state.ts";
import { addStream } from "./stream.ts";
import { addTest } from "./test.ts";
import { addWhy } from "./why.ts";
import { addWorker } from "./worker.ts";
import { addWorkers } from "./workers.ts";

const GROUPS: readonly (readonly [title: string, commands: readonly ((program: Command) => void)[]])[] = [
  ["Run workflows:", [addInit, addDev, addRun, addAdvance, addWorker, addStart, addImport]],
  [
    "Look:",
    [addServe, addLs, addShow, addWhy, addNext, addJournal, addStream, addEffects, addGraph, addDiff, addExport],
  ],
  ["Act on a run:", [addSignal, addCancel, addRetry, addFork, addResolve, addState]],
  ["Approvals:", [addApprovals, addApprove, addDeny, addRequestChanges, addLink]],
  ["Playbooks:", [addPlaybook, addMcp]],
  ["Callbacks:", [addAnswer, addRevoke]],
  ["Schedules:", [addSchedules]],
  ["Operation:", [addAlerts, addMetrics]],
  ["Test:", [addCheck, addTest, addReplay, addEval, addIncident, addReview, addFit]],
  [
    "Look after the store:",
    [addWorkers, addAgents, addDoctor, addKeys, addBackup, addHold, addRelease, addHolds, addPurge, addAudit],
  ],
  ["Help:", [addExitCodes]],
];

function createProgram(isJson: boolean): Command {
  const program = new Command("pawl")
    .description("Durable workflows: they keep their progress through any crash.")
    .version(packageVersion())
    .option("--json", JSON_HELP)
    .option("--store <url>", STORE_HELP)
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(isJson ? jsonError(text) : text) })
    .configureHelp({
      subcommandTerm: (command) =>
        `${command.name()} ${command.usage().replace("[options] ", "").replace("[options]", "")}`,
    });
  for (const [title, commands] of GROUPS) {
    program.commandsGroup(title);
    for (const add of commands) add(program);
  }
  program.helpCommand("help [command]", "help for a command");
  return program.addHelpText("after", `\n${EXAMPLE}\n\n${EXIT_CODES_HELP}\n\n${VARIABLES}`);
}

const EXAMPLE = [
  "Example:",
  "  $ pawl init",
  "  $ pawl run workflows/hello.ts hello",
  "  $ pawl ls",
  "",
  "A run may be named by the beginning or the end of its id. With --json, results go to stdout and errors to stderr, both as JSON.",
].join("\n");

const VARIABLES = [
  "Environment:",
  "  PAWL_STORE       the store, if --store does not say",
  "  PAWL_AUTH        the credentials of `pawl serve`: a JSON file",
  "  PAWL_HOOKS       webhooks that start runs, for `pawl serve`: a JSON file",
  "  PAWL_PUBLIC_URL  where people reach the server: notifications of approvals have links",
  "  PAWL_SECRET      what tokens of callbacks are made with, as Pawl.open({ secret })",
  "  PAWL_KEYS        keys that values are sealed with, id:key,id:key, the one that seals first, as Pawl.open({ encryption });",
  "                   PAWL_TENANT, PAWL_NAMES_KEY and PAWL_PLAIN are its tenant, names and plain",
  "  PAWL_SECRETS     variables that steps may have as secrets, and folders with a file for each, as Pawl.open({ secrets })",
  "  PAWL_DEBUG=1     stack traces with errors",
  "  NO_COLOR         no colours",
].join("\n");

function jsonError(text: string): string {
  return `${JSON.stringify({ error: { code: "invalid_argument", message: text.replace(/^error: /, "").trim() } })}\n`;
}

async function main(args: readonly string[]): Promise<void> {
  // The reader of a pipe may have had enough: `pawl ls | head`.
  process.stdout.on("error", (error: NodeJS.ErrnoException) =>
    process.exit(error.code === "EPIPE" ? EXIT.ok : EXIT.fault),
  );
  try {
    await createProgram(args.includes("--json")).parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Help that was asked for, and the version, are results; help instead of a command is not.
    process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  }
}

await main(process.argv.slice(2));
// A workflow's own timers and sockets must not keep the command alive; what was printed must get out.
const flushed = [process.stdout, process.stderr].map(
  (stream) => new Promise<void>((done) => stream.write("", () => done())),
);
await Promise.all(flushed);
process.exit();
