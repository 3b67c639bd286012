// `pawl fit`: whether a durable workflow is the right tool, asked before anything is built (S2-8, S2-9).
import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import { PawlError } from "../base/errors.ts";
import { action, addCommand, type Call } from "./command.ts";
import { EXIT } from "./exit-codes.ts";

interface FitOptions {
  readonly answers?: string;
}

interface Question {
  readonly text: string;
  /** What follows from a yes. */
  readonly yes: string;
  readonly isFor: boolean;
}

const QUESTIONS: readonly Question[] = [
  {
    isFor: true,
    text: "Does the work take minutes or longer, or go through other systems or people?",
    yes: "its progress must outlive processes",
  },
  {
    isFor: true,
    text: "May calls fail in ways that need a safe retry?",
    yes: "retries have to be recorded, and effects kept from happening twice",
  },
  {
    isFor: true,
    text: "Must its state outlive a restart, a deployment, a timeout or an outage?",
    yes: "state has to be durable",
  },
  {
    isFor: true,
    text: "Do its effects need idempotency, compensation, an audit or an approval?",
    yes: "effects need a ledger",
  },
  {
    isFor: true,
    text: "Do operators need to replay, cancel, roll back or diagnose it?",
    yes: "runs need a journal that people can read",
  },
  { isFor: false, text: "Is it one short answer that keeps nothing?", yes: "a plain function answers sooner" },
  {
    isFor: false,
    text: "Has it no effects, no retries, no approvals and no state?",
    yes: "there is nothing to make durable",
  },
  {
    isFor: false,
    text: "Would an engine hide more than it makes clear?",
    yes: "write the plain version first, and look again",
  },
  {
    isFor: false,
    text: "Are you unable to name its steps, and what makes each safe to repeat?",
    yes: "name them before you build: pawl cannot guess them",
  },
  {
    isFor: false,
    text: "Is nobody able to say what should happen after a part of it was done?",
    yes: "decide that first: a crash will ask",
  },
];

export function addFit(program: Command): void {
  addCommand(program, "fit", "ask ten questions, and say whether a durable workflow fits the work", [
    "pawl fit",
    "pawl fit --answers yyyynnnnnn --json",
  ])
    .option("--answers <letters>", "y or n for each of the ten questions, instead of asking")
    .action(
      action<FitOptions, []>(async (call) => {
        const { answers } = call.options;
        const given = answers === undefined ? await ask(call) : readAnswers(answers);
        const verdict = verdictOf(given);
        if (call.out.isJson) call.out.json(verdict);
        else print(call, verdict);
        return EXIT.ok;
      }),
    );
}

export interface FitVerdict {
  readonly fits: boolean;
  readonly reasons: readonly string[];
  readonly warnings: readonly string[];
}

/** One reason is enough to use it, as long as nothing speaks against it. */
function verdictOf(answers: readonly boolean[]): FitVerdict {
  const said = QUESTIONS.filter((_, at) => answers[at] === true);
  const reasons = said.filter(({ isFor }) => isFor).map(({ yes }) => yes);
  const warnings = said.filter(({ isFor }) => !isFor).map(({ yes }) => yes);
  return { fits: reasons.length > 0 && warnings.length === 0, reasons, warnings };
}

function readAnswers(text: string): boolean[] {
  if (new RegExp(`^[yn]{${QUESTIONS.length}}$`, "i").test(text))
    return [...text.toLowerCase()].map((one) => one === "y");
  throw new PawlError(
    "invalid_argument",
    `--answers "${text}" is not y or n for each of ${QUESTIONS.length} questions.`,
    {
      fields: { option: "--answers" },
    },
  );
}

async function ask({ out }: Call<FitOptions>): Promise<boolean[]> {
  if (!process.stdin.isTTY || out.isJson)
    throw new PawlError("invalid_argument", "There is nobody to ask here. Give --answers, such as yyyynnnnnn.", {
      fields: { option: "--answers" },
    });
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  const answers: boolean[] = [];
  try {
    for (const { text } of QUESTIONS) answers.push(/^y/i.test((await lines.question(`${text} [y/N] `)).trim()));
  } finally {
    lines.close();
  }
  return answers;
}

function print({ out }: Call<FitOptions>, { fits, reasons, warnings }: FitVerdict): void {
  const { color } = out;
  for (const reason of reasons) out.print(`${color.green("for")}      ${reason}`);
  for (const warning of warnings) out.print(`${color.yellow("against")}  ${warning}`);
  const none = reasons.length === 0 ? "Nothing asks for one" : "Settle what speaks against it first";
  out.print(fits ? "A durable workflow fits." : `A durable workflow does not fit as it stands. ${none}.`);
}
