import type { Command } from "commander";
import { PawlError } from "../base/errors.ts";
import { Pawl } from "../client/pawl.ts";
import type { Log } from "../core/context.ts";
import { DEFAULTS } from "../core/limits.ts";
import type { Workflow } from "../core/workflow.ts";
import { action, addCommand } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { wholeNumber } from "./input.ts";
import { onInterrupt } from "./interrupt.ts";
import { loadWorkflows } from "./load.ts";
import { stderrLog } from "./log.ts";
import type { Output } from "./output.ts";
import { clean } from "./printable.ts";

interface WorkerCommandOptions {
  readonly concurrency?: string;
}

export function addWorker(program: Command): void {
  addCommand(program, "worker <files...>", "work on the runs of the workflows in these files, until it is stopped", [
    "pawl worker workflows/*.ts",
    "pawl worker workflows/*.ts --concurrency 50 --store /var/lib/app/pawl.db",
  ])
    .option("--concurrency <n>", `how many runs at once (default: ${DEFAULTS.concurrency.toLocaleString("en")})`)
    .action(
      action<WorkerCommandOptions, [string[]]>(async ({ options, out, url }, files) => {
        const interrupt = onInterrupt();
        const concurrency =
          options.concurrency === undefined
            ? {}
            : { concurrency: wholeNumber(options.concurrency, "--concurrency", 1) };
        const workflows = await loadWorkflows(files);
        const logger = out.isJson ? jsonLog(out) : stderrLog(out);
        const pawl = await Pawl.open(url, { workflows, logger, handleSignals: false, ...concurrency }).catch(
          explainDuplicate,
        );
        announce(out, workflows, url);
        const signal = await interrupt.asked;
        if (out.isJson) out.json({ event: "stopping", signal });
        else out.note("Stopping: running steps may finish, then runs are handed back. Again to stop at once.");
        await pawl.close();
        interrupt.forget();
        if (out.isJson) out.json({ event: "stopped" });
        else out.note("Stopped.");
        return EXIT.ok;
      }),
    );
}

function announce(out: Output, workflows: readonly Workflow[], url: string): void {
  const names = workflows.map(({ name, version }) => ({ name, version }));
  if (out.isJson) out.json({ event: "started", pid: process.pid, workflows: names });
  else
    out.note(
      `Working on ${names.map(({ name, version }) => clean(`${name} ${version}`)).join(", ")} in ${url.replace(/\/\/[^@/]*@/, "//…@")} (pid ${process.pid}). Ctrl-C stops it.`,
    );
}

function explainDuplicate(error: unknown): never {
  if (error instanceof PawlError && error.code === "duplicate_workflow") {
    throw new PawlError("duplicate_workflow", `${error.message} Two of the files export it, or one exports it twice.`, {
      fields: error.fields,
      cause: error,
    });
  }
  throw error;
}

/** One object a line. */
function jsonLog(out: Output): Log {
  const write = (level: keyof Log) => (message: string, fields?: Readonly<Record<string, unknown>>) =>
    out.json({ event: "log", level, message, ...fields });
  return { debug: () => {}, info: write("info"), warn: write("warn"), error: write("error") };
}
