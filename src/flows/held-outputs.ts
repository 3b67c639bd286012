// What the phases of a run have given, as its functions see it.
import type { OutputFile } from "../core/outline.ts";
import { assertThere, readOutput, verifyOutput } from "./output-files.ts";
import type { PhasePlan, Unit } from "./phase-plan.ts";
import type { PhaseFile } from "./phase-spec.ts";

type Held =
  | { readonly kind: "value"; readonly value: unknown }
  /** One file is the result; several are a record by name. */
  | { readonly kind: "files"; readonly files: readonly OutputFile[]; readonly isOne: boolean };

export class HeldOutputs {
  readonly #plan: PhasePlan;
  readonly #folder: () => string;
  readonly #held = new Map<string, Held>();

  constructor(plan: PhasePlan, folder: () => string) {
    this.#plan = plan;
    this.#folder = folder;
  }

  holdValue(at: string, value: unknown): void {
    this.#held.set(at, { kind: "value", value });
  }

  holdFiles(at: string, files: readonly OutputFile[]): void {
    this.#held.set(at, { kind: "files", files, isOne: files.length === 1 });
  }

  holds(at: string): boolean {
    return this.#held.has(at);
  }

  forget(at: string): void {
    this.#held.delete(at);
  }

  /** Files are read when they are asked for: inside a step, never by the body. */
  forStep(): object {
    return this.#view((at, held) => this.#read(at, held));
  }

  /** What each phase gave, or where it is. */
  summary(): unknown {
    return this.#view((_at, held) => {
      if (held.kind === "value") return held.value;
      return held.isOne ? held.files[0] : held.files;
    }, true);
  }

  /** The files that are held, with their hashes. */
  files(): PhaseFile[] {
    return [...this.#held].flatMap(([at, held]) =>
      held.kind === "value" ? [] : held.files.map(({ file, sha256 }) => ({ at, file, sha256 })),
    );
  }

  /** Notices files that are gone; with `whole`, also those that were changed. */
  check(whole: boolean): void {
    for (const [at, held] of this.#held) {
      if (held.kind === "value") continue;
      for (const file of held.files) (whole ? verifyOutput : assertThere)(this.#folder(), file, at);
    }
  }

  #read(at: string, held: Held): unknown {
    if (held.kind === "value") return held.value;
    const [first] = held.files;
    if (held.isOne && first !== undefined) return readOutput(this.#folder(), first, at);
    const read = held.files.map((file) => [file.file, readOutput(this.#folder(), file, at)] as const);
    return Object.fromEntries(read);
  }

  #view(give: (at: string, held: Held) => unknown, isPlain = false): object {
    const phases = this.#plan.phases.flatMap(({ name, units, hasSteps }) => {
      const isHeld = units.some(({ at }) => this.#held.has(at));
      if (!isHeld) return [];
      return [[name, hasSteps ? () => this.#steps(units, give, isPlain) : () => this.#give(name, give)] as const];
    });
    return lazy(phases, isPlain);
  }

  #steps(units: readonly Unit[], give: (at: string, held: Held) => unknown, isPlain: boolean): object {
    const held = units.filter(({ at }) => this.#held.has(at));
    return lazy(
      held.map(({ step, at }) => [step ?? at, () => this.#give(at, give)] as const),
      isPlain,
    );
  }

  #give(at: string, give: (at: string, held: Held) => unknown): unknown {
    const held = this.#held.get(at);
    return held === undefined ? undefined : give(at, held);
  }
}

function lazy(fields: readonly (readonly [string, () => unknown])[], isPlain: boolean): object {
  if (isPlain) return Object.fromEntries(fields.map(([name, give]) => [name, give()]));
  const view = {};
  for (const [name, get] of fields) Object.defineProperty(view, name, { enumerable: true, get });
  return view;
}
