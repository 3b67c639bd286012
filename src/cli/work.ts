import { PawlError } from "../base/errors.ts";
import { Pawl } from "../client/pawl.ts";
import type { Log } from "../core/context.ts";
import type { Graph } from "../core/graph.ts";
import { environmentOptions } from "./environment.ts";
import { loadWork } from "./load.ts";
import { stderrLog } from "./log.ts";
import type { Output } from "./output.ts";

/** What a worker process is to do. */
export interface Work {
  readonly files: readonly string[];
  readonly url: string;
  /** Runs at once; absent: the default. */
  readonly concurrency?: number;
  /** How long steps may go on when it is stopped; absent: the default. */
  readonly drainMs?: number;
  /** For people; absent: the host's name. */
  readonly name?: string;
}

export interface WorkingOn {
  readonly name: string;
  readonly version: string;
  /** Of machines and phases: what may follow what. */
  readonly graph?: Graph;
}

export interface AtWork {
  readonly workflows: readonly WorkingOn[];
  /** Lets running steps finish, hands runs back, and closes the store. */
  stop(): Promise<void>;
}

/** Loads the files and begins to work on the runs of their workflows. `labels` come with every line of its log. */
export async function beginWork(work: Work, out: Output, labels: object = {}): Promise<AtWork> {
  const { files, url, concurrency, drainMs, name } = work;
  const { workflows, notifiers } = await loadWork(files);
  const pawl = await Pawl.open(url, {
    ...environmentOptions(),
    workflows,
    notifiers,
    logger: out.isJson ? jsonLog(out, labels) : stderrLog(out),
    handleSignals: false,
    ...(concurrency !== undefined && { concurrency }),
    ...(name !== undefined && { name }),
  }).catch(explainDuplicate);
  return {
    workflows: workflows.map(({ name, version, definition: { graph } }) => ({
      name,
      version,
      ...(graph !== undefined && { graph }),
    })),
    stop: () => pawl.close(drainMs === undefined ? {} : { drain: drainMs }),
  };
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
function jsonLog(out: Output, labels: object): Log {
  const write = (level: keyof Log) => (message: string, fields?: Readonly<Record<string, unknown>>) =>
    out.json({ event: "log", ...labels, level, message, ...fields });
  return { debug: () => {}, info: write("info"), warn: write("warn"), error: write("error") };
}
