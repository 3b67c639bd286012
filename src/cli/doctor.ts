import type { Command } from "commander";
import { shownUrl } from "../base/shown-url.ts";
import { type Diagnosis, doctor } from "../client/doctor.ts";
import { isLive } from "../client/worker-health.ts";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import type { Output } from "./output.ts";
import { clean, countOf } from "./printable.ts";
import { type Cell, table } from "./table.ts";

interface DoctorCommandOptions {
  readonly all?: boolean;
}

export function addDoctor(program: Command): void {
  addCommand(program, "doctor", "look the store over: settings, workers, stuck runs, checksums; changes nothing", [
    "pawl doctor",
    "pawl doctor --all --json",
  ])
    .option("--all", "check every journal, however many there are")
    .action(
      action<DoctorCommandOptions, []>((call) =>
        withClient(call, async ({ store }) => {
          const { out, options } = call;
          const progress = out.progress("Checking journals");
          const diagnosis = await doctor(store, {
            ...(options.all === true && { maxRuns: Number.POSITIVE_INFINITY, maxEntries: Number.POSITIVE_INFINITY }),
            progress: ({ runs, entries }) =>
              progress.update(`${countOf(runs, "run")}, ${countOf(entries, "entry", "entries")}`),
          }).finally(progress.done);
          if (out.isJson) out.json(diagnosis);
          else print(out, diagnosis, call.url);
          return diagnosis.isHealthy ? EXIT.ok : EXIT.failed;
        }),
      ),
    );
}

function print(out: Output, diagnosis: Diagnosis, url: string): void {
  const { color } = out;
  const { store, workers } = diagnosis;
  const facts: [string, string][] = [
    ["store", `${store.store} ${store.version}, schema ${store.schema}, ${shownUrl(url)}`],
    [
      "settings",
      Object.entries(store.settings)
        .map(([name, value]) => `${name} ${value}`)
        .join(", ") || "none",
    ],
    ["workers", workersText(diagnosis)],
    ["runs", runsText(diagnosis)],
    ["orphans", diagnosis.orphans.length === 0 ? "none" : String(diagnosis.orphans.length)],
    ["stranded", String(diagnosis.stranded.reduce((sum, one) => sum + one.runs, 0) || "none")],
    ["journals", journalsText(diagnosis)],
  ];
  for (const line of table(facts.map(([name, value]): Cell[] => [{ text: name, paint: color.dim }, clean(value)])))
    out.print(line);
  if (workers.length > 0) {
    out.print("");
    for (const line of table([["WORKER", "PID", "HEALTH", "RUNS", "WORKFLOWS"], ...workers.map(workerRow)], {
      right: [1, 3],
      width: out.width,
      header: color.dim,
    }))
      out.print(line);
  }
  printFindings(out, diagnosis);
}

function workerRow({ name, process, health, runs, handles }: Diagnosis["workers"][number]): Cell[] {
  const workflows = handles.map((handle) => `${handle.workflow} ${handle.version}`).join(", ");
  return [clean(name), String(process.pid), health, String(runs), clean(workflows)];
}

function workersText({ workers }: Diagnosis): string {
  const live = workers.filter(isLive).length;
  const rest = workers.length - live;
  return `${live} live${rest === 0 ? "" : `, ${rest} not`}`;
}

function runsText({ unfinished, isComplete }: Diagnosis): string {
  const counts = Object.entries(unfinished);
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  const detail = counts.map(([state, count]) => `${count.toLocaleString("en")} ${state}`).join(", ");
  return `${total.toLocaleString("en")}${isComplete ? "" : " and more"} unfinished${detail === "" ? "" : `: ${detail}`}`;
}

function journalsText({ journals }: Diagnosis): string {
  const checked = `${countOf(journals.runs, "run")}, ${countOf(journals.entries, "entry", "entries")}`;
  const bound = journals.isComplete ? "" : " (the newest; --all checks the rest)";
  return `${checked} checked${bound}: ${journals.faults.length === 0 ? "all checksums match" : countOf(journals.faults.length, "fault")}`;
}

function printFindings(out: Output, { findings, isHealthy }: Diagnosis): void {
  const { color } = out;
  out.print("");
  for (const { severity, message } of findings) {
    out.print(`${severity === "fault" ? color.red("fault  ") : color.yellow("warning")}  ${clean(message)}`);
  }
  const faults = findings.filter(({ severity }) => severity === "fault").length;
  out.print(isHealthy ? color.green("Healthy.") : color.red(`${countOf(faults, "fault")} found.`));
}
