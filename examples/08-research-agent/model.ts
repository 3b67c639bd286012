// The agent's model: one that follows a script, unless RESEARCH_MODEL names a real one, such as "openai:gpt-5" or "anthropic:claude-sonnet-4-5".
import type { LanguageModel } from "ai";
import { MockLanguageModelV3 } from "ai/test";

export const model: LanguageModel = await chosenModel(process.env["RESEARCH_MODEL"]);

/** A model of a provider that is installed only by those who use it. */
export async function chosenModel(name: string | undefined): Promise<LanguageModel> {
  if (name === undefined || name === "") return scripted();
  const [provider = "", id = ""] = name.split(/:(.*)/s);
  if (!/^[a-z][a-z0-9-]*$/.test(provider) || id === "")
    throw new Error(`RESEARCH_MODEL is "${name}". Give a provider and a model, such as "openai:gpt-5".`);
  const packageName = `@ai-sdk/${provider}`;
  const found = await import(packageName).catch((error: unknown) => {
    throw new Error(
      `RESEARCH_MODEL is "${name}", and ${packageName} is not installed. Run: npm install ${packageName}`,
      {
        cause: error,
      },
    );
  });
  const make = (found as Record<string, (id: string) => LanguageModel>)[provider];
  if (make === undefined) throw new Error(`${packageName} has no export "${provider}" that makes models.`);
  return make(id);
}

type Generate = MockLanguageModelV3["doGenerate"];
type Request = Parameters<Generate>[0];
type Content = Awaited<ReturnType<Generate>>["content"];

/** Says what a model would: two searches at once, then all pages that they found, then a text, then where it is. */
function scripted(): LanguageModel {
  const rounds: ((results: unknown[]) => Content)[] = [
    () => [call("1", "search", { query: "pawls" }), call("2", "search", { query: "ratchets" })],
    (results) => results.flat().map((url, index) => call(`${3 + index}`, "readPage", { url })),
    (results) => [call("9", "publish", { title: "What holds a ratchet", text: results.join(" ") })],
    ([published]) => [{ type: "text", text: toldOf(published) }],
  ];
  const doGenerate: Generate = async ({ prompt }) => {
    const said = prompt.filter(({ role }) => role === "assistant").length;
    const content = rounds[said]?.(resultsIn(prompt)) ?? [];
    const unified = content.some(({ type }) => type === "tool-call") ? "tool-calls" : "stop";
    return { content, finishReason: { unified, raw: undefined }, usage: USAGE, warnings: [] };
  };
  return new MockLanguageModelV3({ provider: "scripted", modelId: "researcher", doGenerate });
}

const USAGE = {
  inputTokens: { total: 1200, noCache: 1200, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 150, text: 150, reasoning: 0 },
};

function call(id: string, toolName: string, input: unknown): Content[number] {
  return { type: "tool-call", toolCallId: `call_${id}`, toolName, input: JSON.stringify(input) };
}

/** What the tools of the last round came to. */
function resultsIn(prompt: Request["prompt"]): unknown[] {
  const last = prompt.at(-1);
  if (last?.role !== "tool") return [];
  return last.content.flatMap((part) => (part.type === "tool-result" ? [outputOf(part.output)] : []));
}

function outputOf(output: object): unknown {
  return "value" in output ? output.value : output;
}

function toldOf(published: unknown): string {
  const { url } = published as { url?: string };
  return url === undefined ? "Nobody wanted it published." : `It is all there: ${url}`;
}
