export {
  type AgentCall,
  type AgentResult,
  type AgentStream,
  type AgentStreamCall,
  DurableAgent,
  type DurableAgentSettings,
} from "./durable-agent.ts";
export { durableDownload } from "./durable-download.ts";
export { type DurableModel, type DurableModelOptions, durableModel } from "./durable-model.ts";
export { type DurableToolsOptions, durableTools, type ToolEffect, type ToolEffectOptions } from "./durable-tools.ts";
export type { LanguageModelLike } from "./language-model.ts";
export { type ExecutionDenied, isDenied, type ToolApprovals } from "./tool-approval.ts";
export { stepOf } from "./tool-like.ts";
export { unguarded } from "./unguarded.ts";
export type { ModelUsage, Price } from "./usage.ts";
