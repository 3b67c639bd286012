import type { Log } from "../core/context.ts";
import type { Output } from "./output.ts";
import { clean, shortJson } from "./printable.ts";
import { clockOf } from "./times.ts";

type Fields = Readonly<Record<string, unknown>>;

/** What the engine and the workflows log, as lines on stderr. */
export function stderrLog(out: Output, isWanted: (fields: Fields) => boolean = () => true): Log {
  const { dim, yellow, red } = out.noteColor;
  const paints = { info: dim, warn: yellow, error: red };
  const write =
    (level: keyof typeof paints) =>
    (message: string, fields: Fields = {}) => {
      if (!isWanted(fields)) return;
      const more = Object.keys(fields).length === 0 ? "" : ` ${dim(shortJson(fields, 200))}`;
      out.note(`${dim(clockOf(Date.now()))} ${paints[level](level.padEnd(5))} ${clean(message)}${more}`);
    };
  return { debug: () => {}, info: write("info"), warn: write("warn"), error: write("error") };
}
