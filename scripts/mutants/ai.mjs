// Models and tools of the AI SDK, as calls of a run.

const TOOLS = "test/ai-tools.test.ts";
const MODEL = "test/ai-model.test.ts";

export const aiMutants = [
  {
    rule: "B55",
    name: "a tool of the AI SDK reads unless somebody says that it writes",
    changes: [
      {
        file: "src/ai/durable-tools.ts",
        from: 'const { class: kind = "write", idempotent = false, detect, undo } = this.#effect;',
        to: 'const { class: kind = "read", idempotent = false, detect, undo } = this.#effect;',
      },
    ],
    killers: [
      { file: TOOLS, title: "I6 that may have acted" },
      { file: TOOLS, title: "X-20 S2-64 is an effect" },
    ],
  },
  {
    rule: "I26",
    name: "a denied tool of the AI SDK begins all the same",
    changes: [{ file: "src/ai/durable-tools.ts", from: "    if (isDenied(leave)) return leave;\n", to: "" }],
    killers: [{ file: TOOLS, title: "I26 that are denied" }],
  },
  {
    rule: "X-20",
    name: "a model call is not compared with its record",
    changes: [
      { file: "src/ai/durable-model.ts", from: "      input: conversationDigest(request.prompt),\n", to: "" },
      { file: "src/ai/durable-model.ts", from: 'import { conversationDigest } from "./conversation.ts";\n', to: "" },
    ],
    killers: [{ file: MODEL, title: "X-20 another conversation" }],
  },
  {
    rule: "X-20",
    name: "a changed system prompt is another model call",
    changes: [{ file: "src/ai/conversation.ts", from: 'if (role !== "system") hash', to: "hash" }],
    killers: [{ file: MODEL, title: "X-20 a changed system prompt" }, { file: "src/ai/conversation.test.ts" }],
  },
  {
    rule: "X-20",
    name: "an error of a provider is recorded with the conversation",
    changes: [
      {
        file: "src/ai/durable-model.ts",
        from: "throw withoutRequest(error);",
        to: "throw (void withoutRequest, error);",
      },
    ],
    killers: [{ file: MODEL, title: "X-20 are recorded without the request" }],
  },
  {
    rule: "X-13",
    name: "a model call without `spend` reserves nothing, and begins behind a limit",
    changes: [
      {
        file: "src/ai/durable-model.ts",
        from: "this.#spend = options.spend ?? leastSpend(options.price);",
        to: "this.#spend = options.spend ?? (void leastSpend, {});",
      },
    ],
    killers: [{ file: MODEL, title: "X-13 I26 goes to cost and budgets" }],
  },
];
