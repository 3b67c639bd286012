import { writeFileSync } from "node:fs";
import { PawlError } from "../base/errors.ts";

/** Writes what a command was asked for to the file that `--out` names. */
export function writeOutFile(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new PawlError(
      "invalid_argument",
      `--out ${file} cannot be written (${code}). Give a file in a folder that exists.`,
      { fields: { file }, cause },
    );
  }
}
