// The tools of a coding agent
// The same calls as those of `pawl playbook`. None of them decides: an agent cannot approve, skip, or choose after a failure, and it works under
// the name that whoever has started the server has given it.
import { PawlError } from "../base/errors.ts";
import { jsonable } from "../base/jsonable.ts";
import type { StepReport } from "../client/manual.ts";
import { publicStatus } from "../core/transition.ts";
import type { Phrases, PlaybookAnswer } from "./playbook-answer.ts";
import { loadPlaybook, type PlaybookFile } from "./playbook-file.ts";
import { PlaybookSession, type Which } from "./playbook-session.ts";
import { peoplesPhrases } from "./playbook-store.ts";

export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly isReadOnly: boolean;
  readonly schema: { readonly type: "object"; [key: string]: unknown };
  /** Never rejects: what went wrong is an answer, too. */
  call(given: Readonly<Record<string, unknown>>): Promise<ToolAnswer>;
}

export interface ToolAnswer {
  readonly text: string;
  readonly content: Record<string, unknown>;
  readonly isError: boolean;
}

export interface Desk {
  readonly url: string;
  /** The playbooks that are offered. */
  files(): readonly string[];
  /** Who the agent is in the record. */
  readonly by: string;
}

type Given = Readonly<Record<string, unknown>>;

const RUN = { type: "string", description: "The run's id." };
const KEY = { type: "string", description: "The key that the run was started with, such as a ticket." };
const STEP = { type: "string", description: 'The step as playbook_next names it, such as "draft.collect".' };
const WHICH = { run: RUN, key: KEY };
const WHICH_HELP = "Name the run by `key` or `run`; without either, the only open run is meant.";

export function playbookTools(desk: Desk): readonly Tool[] {
  const session = new PlaybookSession(desk.url, (which) => toolPhrases(desk.url, which));
  // One at a time: a directory of documents has one writer.
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(call: () => Promise<T>): Promise<T> => {
    const turn = last.then(call);
    last = turn.catch(() => {});
    return turn;
  };
  const tool = (facts: Omit<Tool, "call">, call: (given: Given) => Promise<Said>): Tool => ({
    ...facts,
    call: (given) => inTurn(async () => saidBy(await call(given))).catch(refusal),
  });
  const report = (given: Given, said: StepReport) =>
    session.report(whichOf(given), String(given["step"]), said).then(answerSaid);
  const { by } = desk;

  return [
    tool(
      {
        name: "playbook_list",
        title: "List playbooks and their runs",
        description:
          "Lists the playbooks that can be started and the runs there are, with their keys and whether they are finished.",
        isReadOnly: true,
        schema: objectOf({}),
      },
      () => listed(desk, session),
    ),
    tool(
      {
        name: "playbook_start",
        title: "Start a playbook",
        description:
          "Starts a run of a playbook, or finds the one that has this key already, and tells what to do first.",
        isReadOnly: false,
        schema: objectOf(
          {
            playbook: { type: "string", description: "Its name, as playbook_list gives it." },
            key: { ...KEY, description: "What it is about, such as a ticket: one run per key." },
            input: { description: "What whoever does the work needs to know; any JSON." },
          },
          ["playbook", "key"],
        ),
      },
      async ({ playbook, key, input }) =>
        answerSaid(await session.start(await fileOf(desk, String(playbook)), { key: String(key), by, input })),
    ),
    tool(
      {
        name: "playbook_next",
        title: "What now?",
        description: `Tells what to do now: the step, its instructions, the files it must leave and those of earlier steps. Computed from the run's state document alone. ${WHICH_HELP}`,
        // What others have decided meanwhile is taken up.
        isReadOnly: false,
        schema: objectOf(WHICH),
      },
      async (given) => answerSaid(await session.look(whichOf(given))),
    ),
    tool(
      {
        name: "playbook_begin",
        title: "Begin a step",
        description: `Says that you begin a step. Only the step that playbook_next names can be begun. ${WHICH_HELP}`,
        isReadOnly: false,
        schema: objectOf({ step: STEP, ...WHICH }, ["step"]),
      },
      (given) => report(given, { action: "begin", by }),
    ),
    tool(
      {
        name: "playbook_done",
        title: "Finish a step",
        description: `Says that a step you have begun is done, with the files it had to leave: they are copied and hashed. ${WHICH_HELP}`,
        isReadOnly: false,
        schema: objectOf(
          {
            step: STEP,
            outputs: {
              type: "object",
              additionalProperties: { type: "string" },
              description: 'The path of each file, by the name that the step gives it: { "notes.md": "out/notes.md" }.',
            },
            ...WHICH,
          },
          ["step"],
        ),
      },
      (given) => report(given, { action: "done", by, outputs: (given["outputs"] ?? {}) as Record<string, string> }),
    ),
    tool(
      {
        name: "playbook_fail",
        title: "Give up a step",
        description: `Says that a step you have begun cannot be done, and why. A person decides how to go on. ${WHICH_HELP}`,
        isReadOnly: false,
        schema: objectOf({ step: STEP, reason: { type: "string", description: "Why." }, ...WHICH }, ["step", "reason"]),
      },
      (given) => report(given, { action: "fail", by, reason: String(given["reason"]) }),
    ),
    tool(
      {
        name: "playbook_status",
        title: "Show a run",
        description: `Shows every step of a run with its status and who has done it. ${WHICH_HELP}`,
        // What others have decided meanwhile is taken up.
        isReadOnly: false,
        schema: objectOf(WHICH),
      },
      async (given) => statusSaid(await session.look(whichOf(given))),
    ),
  ];
}

function objectOf(properties: Given, required: readonly string[] = []): Tool["schema"] {
  return { type: "object", properties, required, additionalProperties: false };
}

function whichOf({ run, key }: Given): Which {
  return { ...(typeof run === "string" && { run }), ...(typeof key === "string" && { key }) };
}

// Playbooks

async function fileOf({ files }: Desk, name: string): Promise<PlaybookFile> {
  const found: PlaybookFile[] = [];
  for (const file of files()) found.push(await loadPlaybook(file));
  const fitting = found.filter(({ playbook }) => playbook.name === name);
  const [only, second] = fitting;
  if (only !== undefined && second === undefined) return only;
  const names = [...new Set(found.map(({ playbook }) => playbook.name))].join(", ") || "none";
  const what = only === undefined ? `There is no playbook "${name}"` : `Two files have the playbook "${name}"`;
  throw new PawlError("unknown_workflow", `${what}. Those that are offered: ${names}.`, { fields: { playbook: name } });
}

async function listed(desk: Desk, session: PlaybookSession): Promise<Said> {
  const playbooks: object[] = [];
  const lines: string[] = [];
  for (const file of desk.files()) {
    try {
      const { name, version, about = null } = (await loadPlaybook(file)).playbook;
      playbooks.push({ name, version, about, file });
      lines.push(`Playbook ${name} ${version}${about === null ? "" : `: ${about}`}`);
    } catch (error) {
      // One bad file does not hide the others.
      playbooks.push({ file, error: messageOf(error) });
      lines.push(messageOf(error));
    }
  }
  const runs = (await session.runs()).map(({ id, workflow, version, key, state, createdAt }) => ({
    run: id,
    playbook: workflow,
    version,
    key,
    status: publicStatus(state),
    started_at: createdAt.toISOString(),
  }));
  for (const { run, playbook, key, status } of runs) lines.push(`Run ${run} of ${playbook}, key ${key}: ${status}`);
  const text = lines.length === 0 ? "There are no playbooks and no runs." : lines.join("\n");
  return { text, content: { playbooks, runs } };
}

// Answers

interface Said {
  readonly text: string;
  readonly content: object;
}

function saidBy({ text, content }: Said): ToolAnswer {
  return { text, content: jsonable(content) as Record<string, unknown>, isError: false };
}

function answerSaid(answer: PlaybookAnswer): Said {
  const notes = answer.warnings.map((warning) => `Note: ${warning}`);
  return { text: [`Run ${answer.run}`, ...notes, answer.text].join("\n"), content: answer };
}

function statusSaid(answer: PlaybookAnswer): Said {
  const lines = answer.progress.map(({ step, status, done_by }) =>
    [step, status, ...(done_by === undefined ? [] : [`by ${done_by}`])].join(" "),
  );
  return { text: [...lines, answer.text].join("\n"), content: answer };
}

function refusal(error: unknown): ToolAnswer {
  const code = error instanceof PawlError ? error.code : "fault";
  const fields = error instanceof PawlError ? (jsonable(error.fields) as object) : {};
  const message = messageOf(error);
  return { text: `Refused (${code}): ${message}`, content: { error: { code, message, ...fields } }, isError: true };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function toolPhrases(url: string, { run, key }: Which): Phrases {
  const named = run === undefined ? (key === undefined ? {} : { key }) : { run };
  const call = (tool: string, more: object) => `${tool} ${JSON.stringify({ ...more, ...named })}`;
  return {
    ...peoplesPhrases(url),
    next: () => call("playbook_next", {}),
    begin: (step) => call("playbook_begin", { step }),
    done: (step, outputs) =>
      call("playbook_done", { step, outputs: Object.fromEntries(outputs.map((name) => [name, "PATH"])) }),
    fail: (step) => call("playbook_fail", { step, reason: "…" }),
  };
}
