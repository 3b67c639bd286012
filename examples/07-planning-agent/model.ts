// The model: a script by default, or a real one.
//
//   PLANNER_MODEL   such as "anthropic:claude-sonnet-4-5"; needs the provider's package of the AI SDK (@ai-sdk/anthropic) and its key
import { type Model, scriptedModel } from "pawl/agent";
import { script } from "./script.ts";

export function chosenModel(name: string | undefined = process.env["PLANNER_MODEL"]): Model {
  if (name === undefined || name === "") return scriptedModel(script);
  const [provider = "", ...rest] = name.split(":");
  const modelId = rest.join(":");
  let loading: Promise<Model> | undefined;
  const loaded = () => {
    loading ??= load(provider, modelId);
    return loading;
  };
  return {
    specificationVersion: "v3",
    provider,
    modelId,
    doGenerate: async (request) => (await loaded()).doGenerate(request),
    doStream: async (request) => (await loaded()).doStream(request),
  };
}

async function load(provider: string, modelId: string): Promise<Model> {
  const name = `@ai-sdk/${provider}`;
  const found = await import(name).catch((cause: unknown) => {
    throw new Error(`PLANNER_MODEL asks for ${name}, which is not installed. Run: npm install ${name}`, { cause });
  });
  const create = (found as Record<string, unknown>)[provider];
  if (typeof create !== "function") throw new Error(`${name} exports no function "${provider}".`);
  return create(modelId) as Model;
}
