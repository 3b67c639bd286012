import type { Command } from "commander";
import type { CallbackReceipt } from "../client/callbacks.ts";
import type { Pawl } from "../client/pawl.ts";
import { action, addCommand, type Call, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { noteIfNobodyWorks } from "./inheritor.ts";
import { readValue } from "./input.ts";
import { clean } from "./printable.ts";
import { recorded } from "./recorded.ts";

interface AnswerOptions {
  readonly fail?: string;
}

interface RevokeOptions {
  readonly reason: string;
}

export function addAnswer(program: Command): void {
  addCommand(program, "answer <token> [value]", "answer a callback; value is JSON, @file or - for stdin", [
    `pawl answer cbQ2xkY0c….vN8r… '{"paid":true}'`,
    "pawl answer cbQ2xkY0c….vN8r… --fail 'the card was declined'",
  ])
    .option("--fail <reason>", "answer with a failure; value tells more of it")
    .action(
      action<AnswerOptions, [string, string | undefined]>((call, token, text) =>
        withClient(call, async (pawl) => {
          const value = await readValue(text, "VALUE");
          const { fail } = call.options;
          // What follows the dot is the secret; what is before it is the callback's id.
          const [id = ""] = token.split(".");
          const receipt = await recorded(call, pawl, id, () =>
            fail === undefined
              ? pawl.callbacks.answer(token, value)
              : pawl.callbacks.fail(token, { reason: fail, ...(text !== undefined && { detail: value }) }),
          );
          return tell(call, pawl, receipt, receipt.repeated ? "was answered like that before" : "is answered");
        }),
      ),
    );
}

export function addRevoke(program: Command): void {
  addCommand(program, "revoke <callback>", "close a callback by its id, without its token; pawl why names it", [
    "pawl revoke cbQ2xkY0c --reason 'the token has leaked'",
  ])
    .requiredOption("--reason <text>", "why, for the run and for the record")
    .action(
      action<RevokeOptions, [string]>((call, id) =>
        withClient(call, async (pawl) => {
          const { reason } = call.options;
          const receipt = await recorded(call, pawl, id, () => pawl.callbacks.revoke(id, { reason }));
          return tell(call, pawl, receipt, receipt.repeated ? "was closed before" : "is closed");
        }),
      ),
    );
}

async function tell({ out, url }: Call<unknown>, pawl: Pawl, receipt: CallbackReceipt, what: string) {
  if (out.isJson) out.json(receipt);
  else out.print(`Callback "${clean(receipt.key)}" of run ${receipt.run} ${what}.`);
  await noteIfNobodyWorks(out, url, pawl, receipt.run);
  return EXIT.ok;
}
