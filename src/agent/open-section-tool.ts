import { SectionOpened } from "./opened-sections.ts";
import type { Tool } from "./tool.ts";

/** Lets the model read a section that is summed up, and has it shown in full from then on. `say` gives the whole of it. */
export function openSectionTool(keys: readonly string[], say: (key: string) => string): Tool {
  const jsonSchema = {
    type: "object",
    properties: { key: { type: "string", enum: keys, description: "The key of the section." } },
    required: ["key"],
    additionalProperties: false,
  };
  return Object.freeze<Tool>({
    name: "open_section",
    description: "Shows the whole of a section of the prompt that is summed up.",
    class: "read",
    inOrder: true,
    input: { jsonSchema },
    jsonSchema,
    run(params, info) {
      const { key } = params as { readonly key: string };
      if (!keys.includes(key))
        return { message: `There is no section "${key}" to open. Sections: ${keys.join(", ")}.`, success: false };
      info.dispatch(SectionOpened({ key }));
      return { message: say(key) };
    },
  });
}
