// Watches source files and what they import
// Files are found by reading their imports, without running them: also of code that does not load. Folders are watched rather than files, since
// editors replace a file by another; whether something has changed is decided by its content.
import { createHash } from "node:crypto";
import { type FSWatcher, readFileSync, statSync, watch } from "node:fs";
import { dirname, resolve } from "node:path";
import { messageOf } from "../base/errors.ts";

/** An editor writes several times in a row. */
const SETTLED_MS = 60;
const IMPORT = /(?:\bfrom|\bimport)\s*\(?\s*["'](\.{1,2}\/[^"'\n]+)["']/g;

/** The files and everything that they import by a relative path, as far as it is there. */
export function sourceFiles(files: readonly string[]): Set<string> {
  const found = new Set<string>();
  const look = (path: string) => {
    if (found.has(path)) return;
    found.add(path);
    const text = textOf(path) ?? "";
    for (const [, specifier = ""] of text.matchAll(IMPORT)) {
      const target = fileFor(resolve(dirname(path), specifier));
      if (target !== null) look(target);
    }
  };
  for (const file of files) look(resolve(file));
  return found;
}

/** As the loader finds it: `./b.js` and `./b` are `b.ts` if there is one. */
function fileFor(path: string): string | null {
  const asTypeScript = path.replace(/\.(m?)js$/, ".$1ts");
  const candidates = [asTypeScript, path, `${path}.ts`, `${path}.mts`, `${path}.js`, `${path}/index.ts`];
  return candidates.find((one) => statSync(one, { throwIfNoEntry: false })?.isFile()) ?? null;
}

function textOf(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // It may be on its way: whoever loads it says so if it is not.
    return null;
  }
}

export interface SourceWatchOptions {
  readonly files: readonly string[];
  onChange(): void;
  /** A folder that cannot be watched. */
  onBlind(folder: string, why: string): void;
}

export class SourceWatch {
  readonly #options: SourceWatchOptions;
  readonly #folders = new Map<string, FSWatcher>();
  #digest: string;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: SourceWatchOptions) {
    this.#options = options;
    this.#digest = this.#look();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    for (const watcher of this.#folders.values()) watcher.close();
    this.#folders.clear();
  }

  /** What all files hold now; folders that are new among theirs are watched from here on. */
  #look(): string {
    const paths = [...sourceFiles(this.#options.files)].sort();
    for (const folder of new Set(paths.map(dirname))) this.#watch(folder);
    const hash = createHash("sha256");
    for (const path of paths) hash.update(`${path}\0${textOf(path) ?? ""}\0`);
    return hash.digest("hex");
  }

  #watch(folder: string): void {
    if (this.#folders.has(folder)) return;
    try {
      const watcher = watch(folder, () => this.#stirred());
      watcher.on("error", (error) => this.#options.onBlind(folder, error.message));
      this.#folders.set(folder, watcher);
    } catch (error) {
      this.#options.onBlind(folder, messageOf(error));
    }
  }

  #stirred(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = null;
      const digest = this.#look();
      if (digest === this.#digest) return;
      this.#digest = digest;
      this.#options.onChange();
    }, SETTLED_MS);
  }
}
