import type { Command } from "commander";
import { PawlError } from "../base/errors.ts";
import type { AlertSummary } from "../client/alerts.ts";
import type { Pawl } from "../client/pawl.ts";
import { action, addCommand, type Call, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { clean, countOf } from "./printable.ts";
import { type Cell, table } from "./table.ts";
import { timeOf } from "./times.ts";

interface AlertsOptions {
  readonly all?: boolean;
  readonly check?: boolean;
  readonly by?: string;
}

type Word = "ack" | "resolve";
const DONE: Readonly<Record<Word, string>> = { ack: "is acknowledged: it stays quiet", resolve: "is resolved" };

export function addAlerts(program: Command): void {
  addCommand(
    program,
    "alerts [ack|resolve] [id]",
    "list what somebody should look at; say that somebody does, or has",
    ["pawl alerts", "pawl alerts --check --json", "pawl alerts ack alQ2xkY0c --by ada"],
  )
    .option("--all", "those as well that are resolved")
    .option("--check", "look through the store first, instead of waiting for a worker to do so")
    .option("--by <name>", "with ack and resolve: who says so")
    .action(
      action<AlertsOptions, [string | undefined, string | undefined]>((call, word, id) =>
        withClient(call, async (pawl) => {
          if (word === undefined) await list(call, pawl);
          else await say(call, pawl, word, id);
          return EXIT.ok;
        }),
      ),
    );
}

async function say(call: Call<AlertsOptions>, pawl: Pawl, word: string, id: string | undefined): Promise<void> {
  const { by } = call.options;
  if (word !== "ack" && word !== "resolve")
    throw new PawlError("invalid_argument", `\`pawl alerts ${word}\` means nothing. Give ack or resolve, and an id.`);
  if (id === undefined || by === undefined)
    throw new PawlError("invalid_argument", `Say which alert and who you are: pawl alerts ${word} <id> --by <name>.`);
  const { id: found } = await findAlert(pawl, id);
  const alert = await (word === "ack" ? pawl.alerts.acknowledge(found, { by }) : pawl.alerts.resolve(found, { by }));
  if (call.out.isJson) call.out.json({ alert });
  else call.out.print(`Alert ${found} (${alert.kind}) ${DONE[word]}.`);
}

const SHORTEST = 4;

/** The alert that was meant: by its id, or the beginning of one that is not resolved. */
async function findAlert(pawl: Pawl, text: string): Promise<{ readonly id: string }> {
  const open = await pawl.alerts.list();
  const found = open.filter(({ id }) => id === text || (text.length >= SHORTEST && id.startsWith(text)));
  const [only, second] = found;
  if (second !== undefined)
    throw new PawlError("invalid_argument", `"${text}" fits ${found.length} alerts. Give more of the id.`, {
      fields: { alert: text },
    });
  return only ?? { id: text };
}

async function list({ out, options }: Call<AlertsOptions>, pawl: Pawl): Promise<void> {
  if (options.check === true) await pawl.alerts.check();
  const alerts = await pawl.alerts.list(options.all === true ? { status: "all" } : {});
  if (out.isJson) return out.json({ alerts });
  if (alerts.length === 0) return out.note("No alerts.");
  const header: Cell[] = ["ALERT", "KIND", "STATUS", "SINCE", "SEEN", "OWNER", "ABOUT"];
  const rows = alerts.map((one): Cell[] => [
    one.id,
    one.level === 0 ? one.kind : `${one.kind} (level ${one.level})`,
    statusOf(one),
    timeOf(one.firedAt),
    String(one.count),
    clean(one.owner ?? ""),
    clean(one.summary),
  ]);
  for (const line of table([header, ...rows], { right: [4], width: out.width, header: out.color.dim })) out.print(line);
  out.note(`${countOf(alerts.length, "alert")}. pawl alerts ack <id> --by <name> keeps one quiet.`);
}

function statusOf({ status, acknowledgedBy, resolvedBy }: AlertSummary): string {
  const by = status === "acknowledged" ? acknowledgedBy : resolvedBy;
  return by === null || status === "firing" ? status : `${status} by ${clean(by)}`;
}
