// pawl/agent: sessions, plans, prompts, tools and loops of agents.

export {
  type Adapter,
  type Ending,
  type EvaluateOptions,
  modelAdapter,
  type PromptResponse,
  type SpendingLimits,
} from "./adapter.ts";
export {
  type Agent,
  type AgentDurability,
  type AgentOptions,
  agent,
  type SessionFacts,
} from "./agent.ts";
export { type AskOptions, askModel } from "./ask-model.ts";
export { EventBus, type HandlerFailure, type Published, type SubscribeOptions } from "./bus.ts";
export type { Calls, ModelCallFacts, ToolCall } from "./calls.ts";
export { type ObserverOptions, observeCheckpoints } from "./checkpoint-observer.ts";
export {
  type Checkpoint,
  type CheckpointReference,
  type CheckpointStore,
  type CheckpointStoreOptions,
  checkpointStore,
  type DocumentName,
  type SavedRequest,
  type SaveOptions,
  type WorkerFolder,
  type WorkerState,
} from "./checkpoint-store.ts";
export { type CheckpointPlace, type CheckpointStoreCase, checkpointStoreCases } from "./checkpoint-store-cases.ts";
export type { CheckpointOptions } from "./checkpoint-writer.ts";
export type { Completion } from "./completion.ts";
export { type DirectCallsOptions, directCalls } from "./direct-calls.ts";
export {
  DurableLoop,
  type DurableLoopOptions,
  type DurableLoopRules,
  type LoopCounts,
  type LoopPlace,
} from "./durable-loop.ts";
export { type EffectRecord, effectsSlice } from "./effect-record.ts";
export type { ModelSettings, RoundOptions } from "./evaluate.ts";
export { type ClassPolicies, type JournalCallsOptions, journalCalls } from "./journal-calls.ts";
export { type KeyValue, type KeyValueStoreOptions, keyValueStore, type Versioned } from "./key-value-store.ts";
export { AgentLoop, type ExecuteOptions, type LoopOptions, type Stay } from "./loop.ts";
export {
  type DeadLetter,
  type Letter,
  type Mailbox,
  type MailboxOptions,
  mailbox,
  type Reply,
  type SendOptions,
} from "./mailbox.ts";
export {
  type McpAnnotations,
  type McpClient,
  type McpResult,
  type McpTool,
  type McpToolsOptions,
  mcpTools,
} from "./mcp-tools.ts";
export type {
  CallVerdict,
  FinishReason,
  GeneratedPart,
  GeneratedReply,
  GivenFinish,
  GivenUsage,
  Model,
  ModelChunk,
  ModelMessage,
  ModelPart,
  ModelReply,
  ModelRequest,
  ModelTool,
  Price,
  ReadableStreamOf,
  StreamedPart,
  StreamedReply,
  Usage,
} from "./model.ts";
export { openedSections, SectionOpened } from "./opened-sections.ts";
export { append, clear, extend, type Operation, replace } from "./operation.ts";
export { type AgentOutcome, machineOutcome } from "./outcome.ts";
export { parseOutput } from "./output.ts";
export { AddStep, type Plan, type PlanStep, plan, SetupPlan, type StepStatus, UpdateStep } from "./plan.ts";
export { lintPlan, type PlanFinding } from "./plan-lint.ts";
export type { PlanningStrategy } from "./planning-guidance.ts";
export { type PlanningSectionOptions, planningSection } from "./planning-section.ts";
export { planningTools } from "./planning-tools.ts";
export { progressSection, type ResultsSectionOptions, resultsSection } from "./progress-section.ts";
export { type BoundPrompt, type Prompt, type PromptSpec, prompt } from "./prompt.ts";
export { type QuestionSpec, question } from "./question.ts";
export {
  abandon,
  listRecoverable,
  listWorkers,
  type Recovery,
  recover,
  settleEffect,
  type WorkerReport,
} from "./recovery.ts";
export {
  CheckpointSaved,
  type CheckpointSavedPayload,
  RecoveryCompleted,
  RecoveryFailed,
  type RecoveryPayload,
  RecoveryStarted,
} from "./recovery-events.ts";
export {
  appending,
  type Handler,
  type Reducer,
  reducing,
  replacingLatest,
  upsertingBy,
  when,
} from "./reducers.ts";
export { type Rendered, render } from "./render.ts";
export type { Restored, RestoreOptions } from "./restore.ts";
export {
  callTools,
  type Script,
  type ScriptedModel,
  type ScriptedModelOptions,
  type ScriptedReply,
  say,
  scriptedModel,
} from "./scripted-model.ts";
export { type Section, type SectionBody, type SectionSpec, section } from "./section.ts";
export {
  type Dispatched,
  type ReducerFailure,
  Session,
  type SessionOptions,
} from "./session.ts";
export {
  type AnyEventType,
  type EventType,
  type EventTypeOptions,
  eventType,
  type SessionEvent,
} from "./session-event.ts";
export type { Query, SessionView } from "./session-view.ts";
export { type AnySlice, type Migration, type Slice, type SliceOptions, type SlicePolicy, slice } from "./slice.ts";
export { parseSnapshot, type RestoreReason, type SliceSnapshot, type Snapshot, snapshotText } from "./snapshot.ts";
export { spentSlice } from "./spent.ts";
export type { StallOptions } from "./stall.ts";
export {
  PromptExecuted,
  type PromptExecutedPayload,
  PromptRendered,
  type PromptRenderedPayload,
  ToolInvoked,
  type ToolInvokedPayload,
} from "./telemetry.ts";
export {
  type AnsweredBy,
  type ApprovalPolicy,
  type Tool,
  type ToolFacts,
  type ToolInfo,
  type ToolInput,
  type ToolParams,
  type ToolRecord,
  type ToolResult,
  type ToolSpec,
  tool,
} from "./tool.ts";
export {
  allOf,
  anyOf,
  type CheckpointTrigger,
  type CheckpointTriggerOptions,
  checkpointTrigger,
  everyInterval,
  everyToolCalls,
  type Trigger,
  type TriggerFacts,
} from "./trigger.ts";
export { type DirectoryStoreOptions, directoryStore, type WorkerDirectory } from "./worker-directory.ts";
