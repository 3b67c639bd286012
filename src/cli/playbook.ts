import { userInfo } from "node:os";
import { basename } from "node:path";
import type { Command } from "commander";
import { PawlError } from "../base/errors.ts";
import { action, addCommand, type Call } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { readValue } from "./input.ts";
import type { Output } from "./output.ts";
import type { Phrases, PlaybookAnswer } from "./playbook-answer.ts";
import { loadPlaybook } from "./playbook-file.ts";
import { PlaybookSession, type Which } from "./playbook-session.ts";
import { PLAYBOOK_STORE_HELP, peoplesPhrases, playbookStore, playbookStoreFlag } from "./playbook-store.ts";
import { clean } from "./printable.ts";

interface StartOptions {
  readonly key: string;
  readonly input?: string;
  readonly by?: string;
}

interface ReportOptions extends Which {
  readonly by?: string;
  readonly output?: readonly string[];
  readonly reason?: string;
}

export function addPlaybook(program: Command): void {
  const playbook = program
    .command("playbook")
    .summary("work through a playbook: start, next, begin, done, fail, status")
    .description(
      "Work through a playbook: a YAML or JSON file that says what a person or an outside agent does, step by step.",
    )
    .addHelpText("after", `\n${EXAMPLE}`);
  for (const add of [addStart, addNext, addBegin, addDone, addFail, addStatus]) add(playbook);
}

const EXAMPLE = [
  "Example:",
  "  $ pawl playbook start playbooks/release.yaml --key 2.4.0",
  "  $ pawl playbook begin draft.collect --key 2.4.0",
  "  $ pawl playbook done draft.collect --output changes.md --key 2.4.0",
  "  $ pawl playbook next --key 2.4.0",
  "",
  "Runs are kept in file:.pawl/playbooks unless --store or PAWL_STORE says otherwise. Without --run and --key, the only open run is meant.",
  "Gates are decided with pawl approve and pawl deny, by somebody who has done none of the work; failed steps with pawl resolve.",
].join("\n");

function addStart(playbook: Command): void {
  addOne(playbook, "start <file>", "start a run of a playbook, or find the one with this key", [
    "pawl playbook start playbooks/release.yaml --key 2.4.0",
    `pawl playbook start playbooks/triage.yaml --key AE-7 --input '{"ticket":"AE-7"}'`,
  ])
    .requiredOption("--key <key>", "what it is about, such as a ticket: one run per key")
    .option("--input <json>", "what whoever does the work needs to know: JSON, @file or - for stdin")
    .option("--by <name>", "who starts it (default: your user name)")
    .action(
      action<StartOptions, [string]>(async (call, file) => {
        const { key, by = userName(), input } = call.options;
        const value = await readValue(input, "--input");
        return tell(call, await sessionOf(call).start(await loadPlaybook(file), { key, by, input: value }));
      }),
    );
}

function addNext(playbook: Command): void {
  which(
    addOne(playbook, "next", "tell what to do now, from the state document alone", [
      "pawl playbook next",
      "pawl playbook next --key 2.4.0 --json",
    ]),
  ).action(action<Which, []>(async (call) => tell(call, await sessionOf(call).look(call.options))));
}

function addBegin(playbook: Command): void {
  reporting(playbook, "begin <step>", "say that you begin a step", [
    "pawl playbook begin draft.collect --key 2.4.0",
  ]).action(
    action<ReportOptions, [string]>(async (call, step) => {
      const { by = userName() } = call.options;
      return tell(call, await sessionOf(call).report(call.options, step, { action: "begin", by }));
    }),
  );
}

function addDone(playbook: Command): void {
  reporting(playbook, "done <step>", "say that a step is done, with the files that it had to leave", [
    "pawl playbook done draft.collect --output changes.md --key 2.4.0",
    "pawl playbook done draft.write --output notes.md=out/notes-final.md --output summary.txt",
  ])
    .option(
      "--output <file...>",
      "a file that the step had to leave: its path, or NAME=PATH if it has another name; it is copied and hashed",
    )
    .action(
      action<ReportOptions, [string]>(async (call, step) => {
        const { by = userName(), output = [] } = call.options;
        return tell(
          call,
          await sessionOf(call).report(call.options, step, { action: "done", by, outputs: outputsOf(output) }),
        );
      }),
    );
}

function addFail(playbook: Command): void {
  reporting(playbook, "fail <step>", "say that a step cannot be done: a person decides how to go on", [
    "pawl playbook fail draft.collect --reason 'no access to the tracker'",
  ])
    .requiredOption("--reason <text>", "why")
    .action(
      action<ReportOptions, [string]>(async (call, step) => {
        const { by = userName(), reason = "" } = call.options;
        return tell(call, await sessionOf(call).report(call.options, step, { action: "fail", by, reason }));
      }),
    );
}

function addStatus(playbook: Command): void {
  which(
    addOne(playbook, "status", "show every step of a run, and what comes next", [
      "pawl playbook status --key 2.4.0",
      "pawl playbook status --json",
    ]),
  ).action(
    action<Which, []>(async (call) => {
      const answer = await sessionOf(call).look(call.options);
      if (!call.out.isJson) printProgress(call.out, answer);
      return tell(call, answer);
    }),
  );
}

function reporting(playbook: Command, usage: string, summary: string, examples: readonly string[]): Command {
  return which(addOne(playbook, usage, summary, examples)).option(
    "--by <name>",
    "who does the work (default: your user name)",
  );
}

function addOne(playbook: Command, usage: string, summary: string, examples: readonly string[]): Command {
  return addCommand(playbook, usage, summary, examples, PLAYBOOK_STORE_HELP);
}

function which(command: Command): Command {
  return command
    .option("--run <run>", "the run, by its id")
    .option("--key <key>", "the run, by the key that it was started with");
}

/** Who does the work may not approve of it: everybody has a name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return "somebody";
  }
}

/** `NAME=PATH`, or a path that ends in the name. */
function outputsOf(given: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    given.map((text) => {
      const at = text.indexOf("=");
      const [name, path] = at < 0 ? [basename(text), text] : [text.slice(0, at), text.slice(at + 1)];
      if (name !== "" && path !== "") return [name, path];
      throw new PawlError("invalid_argument", `--output "${text}" is neither a path nor NAME=PATH.`, {
        fields: { option: "--output" },
      });
    }),
  );
}

// Output

function sessionOf({ options }: Call<unknown>): PlaybookSession {
  const url = playbookStore(options.store);
  return new PlaybookSession(url, (meant) => commandPhrases(url, meant));
}

function commandPhrases(url: string, { run, key }: Which): Phrases {
  const flags = `${run === undefined ? (key === undefined ? "" : ` --key ${quoted(key)}`) : ` --run ${run}`}${playbookStoreFlag(url)}`;
  return {
    ...peoplesPhrases(url),
    next: () => `pawl playbook next${flags}`,
    begin: (step) => `pawl playbook begin ${step}${flags}`,
    done: (step, outputs) =>
      `pawl playbook done ${step}${outputs.map((name) => ` --output ${quoted(name)}`).join("")}${flags}`,
    fail: (step) => `pawl playbook fail ${step} --reason '…'${flags}`,
  };
}

function quoted(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function tell({ out }: Call<unknown>, answer: PlaybookAnswer): Promise<typeof EXIT.ok> {
  for (const warning of answer.warnings) out.note(`warning: ${clean(warning)}`);
  if (out.isJson) out.json(answer);
  else for (const line of [`Run ${answer.run}`, ...answer.text.split("\n")]) out.print(clean(line));
  return Promise.resolve(EXIT.ok);
}

const SIGNS = { pending: "·", in_progress: "▸", done: "✓", failed: "✗" } as const;

function printProgress(out: Output, { progress }: PlaybookAnswer): void {
  for (const { step, status, done_by, error, skipped } of progress) {
    const more = [done_by, error, skipped === undefined ? undefined : `skipped: ${skipped}`].filter(
      (one) => one !== undefined,
    );
    out.print(clean(`${SIGNS[status]} ${step}  ${status}${more.length === 0 ? "" : `  ${more.join(", ")}`}`));
  }
}
