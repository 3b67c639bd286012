import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import { parseVersion } from "../base/semver.ts";
import { type StandardSchema, validateNow } from "../core/schema.ts";
import type { Section } from "./section.ts";

export interface PromptSpec<P, O> {
  /** What the prompt belongs to: a project, a team. */
  readonly namespace: string;
  /** Its name there. */
  readonly key: string;
  /** Semver. Default "1.0.0". */
  readonly version?: string;
  /** In the order in which they are shown. */
  readonly sections: readonly Section<P>[];
  /** What the answer must be: JSON that fits. Default: any text. */
  readonly output?: StandardSchema<unknown, O>;
  /** What the parameters must be. Default: they are not checked. */
  readonly params?: StandardSchema<unknown, P>;
}

/** A template of what is said to a model. */
export interface Prompt<P, O = string> {
  readonly namespace: string;
  readonly key: string;
  readonly version: string;
  /** "namespace:key". */
  readonly name: string;
  readonly sections: readonly Section<P>[];
  readonly output: StandardSchema<unknown, O> | null;
  /** The prompt with its parameters, ready to be shown with any session. */
  bind(params: P): BoundPrompt<O>;
}

/** A prompt with its parameters. */
export interface BoundPrompt<O = string> {
  readonly prompt: Prompt<never, O>;
  readonly params: unknown;
}

/**
 * Defines a prompt.
 * @example
 * const review = prompt({
 *   namespace: "code", key: "review",
 *   sections: [section({ title: "Task", key: "task", body: (p: { path: string }) => `Review ${p.path}.` }), progressSection()],
 * });
 */
export function prompt<P, O = string>(spec: PromptSpec<P, O>): Prompt<P, O> {
  const { namespace, key, version = "1.0.0", sections, output, params: schema } = spec;
  assertName("prompt namespace", namespace);
  assertName("prompt key", key);
  parseVersion(version, "version of a prompt");
  const name = `${namespace}:${key}`;
  assertSections(name, sections);
  const made: Prompt<P, O> = Object.freeze({
    namespace,
    key,
    version,
    name,
    sections: Object.freeze([...sections]),
    output: output ?? null,
    bind: (params: P): BoundPrompt<O> =>
      Object.freeze({
        prompt: made as Prompt<never, O>,
        params: validateNow(schema as StandardSchema | undefined, params, `The parameters of prompt "${name}"`),
      }),
  });
  return made;
}

function assertSections(name: string, sections: readonly Section<never>[]): void {
  if (sections.length === 0)
    throw new PawlError("invalid_argument", `Prompt "${name}" has no sections. Give at least one.`, {
      fields: { prompt: name, field: "sections" },
    });
  const keys = sections.map(({ key }) => key);
  const twice = keys.find((key, index) => keys.indexOf(key) !== index);
  if (twice !== undefined)
    throw new PawlError(
      "invalid_argument",
      `Prompt "${name}" has two sections with the key "${twice}". Give each a key of its own.`,
      { fields: { prompt: name, field: "sections", section: twice } },
    );
}
