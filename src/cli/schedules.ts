import type { Command } from "commander";
import { formatMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import type { Pawl } from "../client/pawl.ts";
import type { ScheduleSummary } from "../client/schedules.ts";
import { action, addCommand, type Call, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { stderrLog } from "./log.ts";
import { clean } from "./printable.ts";
import { recorded } from "./recorded.ts";
import { type Cell, table } from "./table.ts";
import { inTime, timeOf } from "./times.ts";

interface SchedulesOptions {
  readonly pause?: boolean;
  readonly resume?: boolean;
  readonly remove?: boolean;
}

interface Act {
  readonly done: string;
  act(pawl: Pawl, name: string): Promise<boolean>;
}

const ACTS: Readonly<Record<keyof SchedulesOptions, Act>> = {
  pause: { done: "is paused", act: (pawl, name) => pawl.pauseSchedule(name) },
  resume: { done: "goes on", act: (pawl, name) => pawl.resumeSchedule(name) },
  remove: { done: "is removed; runs that it has started go on", act: (pawl, name) => pawl.unschedule(name) },
};

export function addSchedules(program: Command): void {
  addCommand(program, "schedules [name]", "list schedules; pause, resume or remove one", [
    "pawl schedules",
    "pawl schedules nightly --pause",
  ])
    .option("--pause", "slots start nothing until it is resumed")
    .option("--resume", "go on with the next slot")
    .option("--remove", "end the schedule; runs that it has started go on")
    .action(
      action<SchedulesOptions, [string | undefined]>((call, name) =>
        withClient(
          call,
          async (pawl) => {
            const wanted = (Object.keys(ACTS) as (keyof SchedulesOptions)[]).filter(
              (one) => call.options[one] === true,
            );
            const [first, second] = wanted;
            if (second !== undefined || (first !== undefined && name === undefined))
              throw new PawlError("invalid_argument", "Name one schedule and one of --pause, --resume and --remove.");
            if (first !== undefined && name !== undefined) await actOn(call, pawl, name, first);
            else await show(call, pawl, name);
            return EXIT.ok;
          },
          // What is damaged is not in the list.
          { logger: { ...stderrLog(call.out), info: () => {} } },
        ),
      ),
    );
}

async function actOn(
  call: Call<SchedulesOptions>,
  pawl: Pawl,
  name: string,
  what: keyof SchedulesOptions,
): Promise<void> {
  const { act, done } = ACTS[what];
  await recorded(call, pawl, name, async () => {
    if (!(await act(pawl, name))) throw notFound(name);
  });
  if (call.out.isJson) call.out.json({ schedule: name, done: what });
  else call.out.print(`Schedule "${clean(name)}" ${done}.`);
}

async function show(call: Call<SchedulesOptions>, pawl: Pawl, name: string | undefined): Promise<void> {
  const { out } = call;
  const schedules = (await pawl.schedules()).filter((one) => name === undefined || one.name === name);
  if (name !== undefined && schedules.length === 0) throw notFound(name);
  if (out.isJson) return out.json({ schedules });
  if (schedules.length === 0)
    return out.note("No schedules in this store. Make one with pawl.schedule(name, workflow, options).");
  const now = pawl.store.clock.now();
  const header: Cell[] = ["SCHEDULE", "WORKFLOW", "WHEN", "NEXT", "LAST SLOT", "SKIPPED", "LAST RUN"];
  const rows = schedules.map((one): Cell[] => [
    clean(one.name),
    clean(one.workflow),
    clean(whenOf(one)),
    one.paused ? "paused" : one.next === null ? "never" : inTime(now, one.next.getTime()),
    one.lastSlot === null ? "" : timeOf(one.lastSlot),
    String(one.skipped),
    clean(one.lastRun ?? ""),
  ]);
  for (const line of table([header, ...rows], { right: [5], width: out.width, header: out.color.dim })) out.print(line);
}

function whenOf({ cron, zone, everyMs }: ScheduleSummary): string {
  return cron === undefined ? `every ${formatMs(everyMs ?? 0)}` : `${cron} ${zone ?? ""}`;
}

function notFound(name: string): PawlError {
  return new PawlError(
    "invalid_argument",
    `There is no schedule "${name}" in this store. \`pawl schedules\` lists them.`,
    {
      fields: { schedule: name },
    },
  );
}
