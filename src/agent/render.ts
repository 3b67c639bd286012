// Rendering
// Says a prompt in words: its sections in order, numbered, each with its title. There is one way for a fresh session and a restored one: what
// differs is what the session holds.
import { createHash } from "node:crypto";
import { messageOf, PawlError } from "../base/errors.ts";
import type { StandardSchema } from "../core/schema.ts";
import { jsonSchemaIfAny } from "./json-schema.ts";
import { openSectionTool } from "./open-section-tool.ts";
import { openedSections } from "./opened-sections.ts";
import { filled } from "./placeholders.ts";
import type { BoundPrompt } from "./prompt.ts";
import type { Section } from "./section.ts";
import type { SessionView } from "./session-view.ts";
import type { Tool } from "./tool.ts";

/** A prompt in words. */
export interface Rendered {
  readonly text: string;
  /** Of the sections that are part of it. */
  readonly tools: readonly Tool[];
  /** Of the text and of what the model is told about the tools: SHA-256, in hex. */
  readonly hash: string;
}

/** Says a prompt in words, with what the session holds. Throws `prompt_render` that names the section and the field. */
export function render(bound: BoundPrompt<unknown>, session: SessionView): Rendered {
  const rendering = new Rendering(bound, session);
  const opened = new Set(session.query(openedSections).all());
  const shown = (bound.prompt.sections as readonly Section<unknown>[]).filter((one) => rendering.isEnabled(one));
  const closed = shown.filter(({ key, visibility }) => visibility === "summary" && !opened.has(key));
  const parts = shown.map((section, index) => {
    const body = closed.includes(section) ? rendering.sumUp(section) : rendering.say(section, "body");
    return `## ${index + 1}. ${section.title}\n\n${body}`.trimEnd();
  });
  if (bound.prompt.output !== null) parts.push(`## ${parts.length + 1}. Answer\n\n${answerText(bound.prompt.output)}`);
  const text = `${parts.join("\n\n")}\n`;
  const tools = rendering.toolsOf(shown, closed);
  return Object.freeze({ text, tools, hash: hashOf(text, tools) });
}

/** One rendering: calls what users wrote into sections, and says where it failed. */
class Rendering {
  readonly #bound: BoundPrompt<unknown>;
  readonly #session: SessionView;

  constructor(bound: BoundPrompt<unknown>, session: SessionView) {
    this.#bound = bound;
    this.#session = session;
  }

  isEnabled(section: Section<unknown>): boolean {
    return this.#guarded(section, "enabled", () => section.enabled(this.#bound.params, this.#session));
  }

  sumUp(section: Section<unknown>): string {
    const hint = `(Summary. Call \`open_section\` with key "${section.key}" to read the whole section.)`;
    return `${this.say(section, "summary")}\n\n${hint}`;
  }

  say(section: Section<unknown>, field: "body" | "summary"): string {
    const source = section[field];
    const { params } = this.#bound;
    if (typeof source === "string") return filled(source, params, (name) => this.#missing(section, name));
    return this.#guarded(section, field, () => {
      const text: unknown = source(params, this.#session);
      if (typeof text !== "string") throw new TypeError(`it gave ${typeof text}, and must give text.`);
      return text;
    });
  }

  toolsOf(shown: readonly Section<unknown>[], closed: readonly Section<unknown>[]): readonly Tool[] {
    const tools = new Map<string, Tool>();
    for (const section of shown)
      for (const tool of section.tools) {
        if ((tools.get(tool.name) ?? tool) !== tool)
          throw this.#failed(section, "tools", `another section has a different tool "${tool.name}". Rename one.`);
        tools.set(tool.name, tool);
      }
    if (closed.length > 0) {
      const open = openSectionTool(
        closed.map(({ key }) => key),
        (key) => this.say(closed.find((one) => one.key === key)!, "body"),
      );
      tools.set(open.name, open);
    }
    return Object.freeze([...tools.values()]);
  }

  #missing(section: Section<unknown>, name: string): never {
    const advice = `parameter "${name}" has no value. Bind the prompt with { ${name}: … }, or write $$ for a dollar.`;
    throw this.#failed(section, name, advice);
  }

  #guarded<R>(section: Section<unknown>, field: string, work: () => R): R {
    try {
      return work();
    } catch (cause) {
      throw this.#failed(section, field, messageOf(cause), cause);
    }
  }

  #failed(section: Section<unknown>, field: string, why: string, cause?: unknown): PawlError {
    const { name } = this.#bound.prompt;
    return new PawlError("prompt_render", `Prompt "${name}" cannot be rendered: in section "${section.key}", ${why}`, {
      fields: { phase: "request", prompt: name, section: section.key, field },
      cause,
    });
  }
}

/** How the model is to answer where its answer is read by a program. */
function answerText(output: StandardSchema<unknown, unknown>): string {
  const schema = jsonSchemaIfAny(output);
  const text = "When everything is done, answer with one JSON value and nothing else.";
  return schema === null ? text : `${text} It must fit this JSON schema:\n\n${JSON.stringify(schema, null, 2)}`;
}

function hashOf(text: string, tools: readonly Tool[]): string {
  const told = tools.map(({ name, description, jsonSchema }) => [name, description, jsonSchema]);
  return createHash("sha256")
    .update(JSON.stringify([text, told]))
    .digest("hex");
}
