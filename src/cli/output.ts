import picocolors from "picocolors";
import { jsonable } from "../base/jsonable.ts";

export type Colors = ReturnType<typeof picocolors.createColors>;

/** Tells that something long is under way; silent while it is not. */
export interface Progress {
  update(text: string): void;
  done(): void;
}

/** Where a command writes: results to stdout, everything else to stderr. */
export interface Output {
  /** Results are for a program. */
  readonly isJson: boolean;
  /** For stdout. */
  readonly color: Colors;
  /** For stderr. */
  readonly noteColor: Colors;
  /** Columns of the terminal; without one, lines are not cut. */
  readonly width: number;
  print(text: string): void;
  json(value: unknown): void;
  /** A line for people, beside the result. Programs do not get it. */
  note(text: string): void;
  progress(label: string): Progress;
}

const SHOW_AFTER_MS = 1000;
const PLAIN_EVERY_MS = 5000;
const REDRAW_MS = 200;

export function createOutput(isJson: boolean): Output {
  const { stdout, stderr } = process;
  const line = new RedrawnLine();
  const note = (text: string) => {
    if (isJson) return;
    line.erase();
    stderr.write(`${text}\n`);
  };
  return {
    isJson,
    color: picocolors.createColors(hasColors(stdout)),
    noteColor: picocolors.createColors(hasColors(stderr)),
    width: stdout.isTTY ? stdout.columns : Number.POSITIVE_INFINITY,
    print: (text) => void stdout.write(`${text}\n`),
    json: (value) => void stdout.write(`${JSON.stringify(jsonable(value) ?? null)}\n`),
    note,
    progress: (label) => (isJson ? SILENT : stderr.isTTY ? redrawn(label, line) : repeated(label, note)),
  };
}

function hasColors(stream: NodeJS.WriteStream): boolean {
  const { NO_COLOR, TERM } = process.env;
  return stream.isTTY === true && (NO_COLOR === undefined || NO_COLOR === "") && TERM !== "dumb";
}

const SILENT: Progress = { update: () => {}, done: () => {} };

/** The last line of a terminal, if it is one that is drawn over and over. */
class RedrawnLine {
  #isShown = false;

  draw(text: string): void {
    this.#isShown = true;
    process.stderr.write(`\r\u001b[K${text}`);
  }

  erase(): void {
    if (this.#isShown) process.stderr.write("\r\u001b[K");
    this.#isShown = false;
  }
}

/** On a terminal: one line, drawn over and over, gone in the end. */
function redrawn(label: string, line: RedrawnLine): Progress {
  const startedAt = Date.now();
  let text = "";
  const timer = setInterval(() => {
    const ms = Date.now() - startedAt;
    if (ms >= SHOW_AFTER_MS) line.draw(`${label}${text === "" ? "" : `: ${text}`} (${Math.round(ms / 1000)} s)`);
  }, REDRAW_MS);
  timer.unref();
  return {
    update: (now) => {
      text = now;
    },
    done: () => {
      clearInterval(timer);
      line.erase();
    },
  };
}

/** In a log: a line now and then. */
function repeated(label: string, note: (text: string) => void): Progress {
  let text = "";
  const tell = () => note(`${label}${text === "" ? " …" : `: ${text} …`}`);
  const first = setTimeout(tell, SHOW_AFTER_MS);
  const timer = setInterval(tell, PLAIN_EVERY_MS);
  first.unref();
  timer.unref();
  return {
    update: (now) => {
      text = now;
    },
    done: () => {
      clearTimeout(first);
      clearInterval(timer);
    },
  };
}
