// pawl dev: the server with the dashboard here, and the workflows in a process of their own, which is replaced when their files change.
//
//   DV1. The new process works before the old one is asked to stop; code that does not load leaves the old one at work, and is told (FL2).
//   DV2. Only a store in which nothing is gets examples, and whoever does not want them can say so.
import type { Command } from "commander";
import { PawlError } from "../base/errors.ts";
import { shownUrl } from "../base/shown-url.ts";
import { Pawl } from "../client/pawl.ts";
import type { Workflow } from "../core/workflow.ts";
import type { Served } from "../server/index.ts";
import { ownFile } from "../stores/own-file.ts";
import { openBrowser } from "./browser.ts";
import { action, addCommand, type Call } from "./command.ts";
import { DEVELOPER } from "./dev-examples.ts";
import { EXAMPLE_TAG, hasExamples, isEmpty, seed } from "./dev-seed.ts";
import { environmentOptions } from "./environment.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { Fleet, type FleetEvent } from "./fleet.ts";
import { wholeNumber } from "./input.ts";
import { onInterrupt } from "./interrupt.ts";
import type { MemberEnd } from "./member.ts";
import type { Output } from "./output.ts";
import { clean } from "./printable.ts";
import { SourceWatch } from "./source-watch.ts";
import type { WorkingOn } from "./work.ts";

interface DevOptions {
  readonly port?: string;
  readonly open: boolean;
  readonly examples: boolean;
}

export function addDev(program: Command): void {
  addCommand(program, "dev [files...]", "work on workflows with the dashboard open, and reload them as they change", [
    "pawl dev workflows/*.ts",
    "pawl dev   # a first look: example runs, and no file needed",
  ])
    .option("--port <n>", "where the dashboard listens (default: 7295, or any that is free)")
    .option("--no-open", "do not open the browser")
    .option("--no-examples", "put no example runs into an empty store")
    .addHelpText("after", HELP)
    .action(
      action<DevOptions, [string[]]>(async (call, files) => {
        assertShared(call.url);
        return develop(call, files);
      }),
    );
}

const HELP = `
The workflows run in a process of their own. When one of the files, or what they import, changes, a new process takes over, and
the old one finishes its steps. If the new code does not load, the old one goes on. The printed address signs in whoever opens it
first; it is for this machine alone.`;

/** The server and the process of the workflows have to see the same store, and two of those processes overlap. */
function assertShared(url: string): void {
  if (!/^(file|memory):/.test(url)) return;
  throw new PawlError(
    "invalid_argument",
    `pawl dev works with several processes, and ${shownUrl(url)} is for one. Use SQLite or PostgreSQL: --store .pawl/pawl.db.`,
    { fields: { option: "--store", url } },
  );
}

async function develop(call: Call<DevOptions>, files: readonly string[]): Promise<ExitCode> {
  const { options, out, url } = call;
  const pawl = await Pawl.open(url, { ...environmentOptions(), handleSignals: false });
  try {
    const seeded = options.examples && (await isEmpty(pawl)) ? await seed(pawl) : 0;
    const withExamples = seeded > 0 || (options.examples && (await hasExamples(pawl)));
    const worker = new DevWorker(call, withExamples ? [...files, ownFile("#dev-examples")] : files);
    const interrupt = onInterrupt(() => worker.kill());
    const served = await serveDashboard(pawl, worker.workflows, options);
    await worker.start();
    const watch = new SourceWatch({
      files,
      onChange: () => worker.reload(),
      onBlind: (folder, why) => out.note(`Changes in ${clean(folder)} are not seen: ${clean(why)}.`),
    });
    tell(call, served, { files: files.length, seeded });
    await interrupt.asked;
    if (out.isJson) out.json({ event: "stopping" });
    else out.note("Stopping: running steps may finish. Again to stop at once.");
    watch.stop();
    await Promise.all([served.stop(), worker.stop()]);
    interrupt.forget();
  } finally {
    await pawl.close();
  }
  if (out.isJson) out.json({ event: "stopped" });
  else out.note("Stopped.");
  return EXIT.ok;
}

async function serveDashboard(pawl: Pawl, workflows: readonly Workflow[], { port }: DevOptions): Promise<Served> {
  const { serve } = await import("../server/index.ts");
  const common = { pawl, workflows, user: DEVELOPER };
  if (port !== undefined) return serve({ ...common, port: wholeNumber(port, "--port", 0) });
  return serve(common).catch((error: unknown) => {
    if (!isTaken(error)) throw error;
    return serve({ ...common, port: 0 });
  });
}

function isTaken(error: unknown): boolean {
  return error instanceof PawlError && (error.cause as NodeJS.ErrnoException | undefined)?.code === "EADDRINUSE";
}

function tell({ options, out, url }: Call<DevOptions>, served: Served, { files, seeded }: Facts): void {
  const link = served.link() ?? served.url;
  if (out.isJson) return out.json({ event: "serving", url: served.url, link, examples: seeded, pid: process.pid });
  if (seeded > 0)
    out.note(
      `${shownUrl(url)} was empty: ${seeded} example runs and a schedule were put in, tagged "${EXAMPLE_TAG}". To remove them, stop this and ` +
        `${removal(url)}; with --no-examples none are put in.`,
    );
  if (files === 0) out.note('No files: only what is in the store is shown. "pawl init" writes a first workflow.');
  out.note("The dashboard, for whoever opens it first:");
  out.print(link);
  if (options.open) openBrowser(link);
}

interface Facts {
  readonly files: number;
  readonly seeded: number;
}

function removal(url: string): string {
  return /^postgres(ql)?:/.test(url) ? "drop its schema" : `delete ${shownUrl(url).replace(/^sqlite:/, "")}*`;
}

/** The process of the workflows, and those that take its place. */
class DevWorker {
  readonly #fleet: Fleet | null;
  readonly #out: Output;
  /** What it works on, for those who draw it: the code itself is not known here. */
  readonly workflows: Workflow[] = [];

  constructor({ out, url }: Call<DevOptions>, files: readonly string[]) {
    this.#out = out;
    this.#fleet =
      files.length === 0
        ? null
        : new Fleet({
            processes: 1,
            isJson: out.isJson,
            work: () => ({ files, url }),
            print: (_, stream, line) => process[stream].write(`${line}\n`),
            tell: (event) => this.#tell(event),
            onWorking: (workflows) => this.workflows.splice(0, Infinity, ...workflows.map(drawn)),
          });
  }

  /** Code that does not load is told, and tried again when it changes. */
  async start(): Promise<void> {
    const outcome = await this.#fleet?.start();
    if (outcome === undefined) return;
    if (isEnd(outcome)) this.#failed(outcome.failure?.message ?? "the process ended before it worked");
    else if (!this.#out.isJson) this.#out.note(`Working on ${namesOf(outcome)}.`);
  }

  reload(): void {
    void this.#fleet?.roll();
  }

  async stop(): Promise<void> {
    await this.#fleet?.stop();
  }

  kill(): void {
    this.#fleet?.kill();
  }

  #tell(event: FleetEvent): void {
    const { isJson } = this.#out;
    if (event.kind === "restart-failed") return this.#failed(event.why);
    if (isJson) return this.#out.json({ event: event.kind });
    if (event.kind === "restarted") this.#out.note("Reloaded.");
    if (event.kind === "ended") this.#out.note(clean(`The process of the workflows ${event.why}. Another one starts.`));
  }

  #failed(why: string): void {
    if (this.#out.isJson) return this.#out.json({ event: "reload-failed", why });
    const text = `The code cannot be loaded: ${why.replace(/^could not begin: /, "")}`;
    this.#out.note(
      this.#out.noteColor.yellow(clean(`${text} What worked before goes on; it is tried again when a file changes.`)),
    );
  }
}

function drawn({ name, version, graph }: WorkingOn): Workflow {
  return { name, version, definition: { graph } } as Workflow;
}

function isEnd(outcome: readonly WorkingOn[] | MemberEnd): outcome is MemberEnd {
  return !Array.isArray(outcome);
}

function namesOf(workflows: readonly WorkingOn[]): string {
  return workflows.map(({ name, version }) => clean(`${name} ${version}`)).join(", ");
}
