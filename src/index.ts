export type { Clock } from "./base/clock.ts";
export type { Duration } from "./base/duration.ts";
export type { Codec, FieldAddress, NameSealer } from "./base/envelope.ts";
export { type ErrorCode, hasCode, PawlError, RetryableError, TerminalError } from "./base/errors.ts";
export type { Redacted } from "./base/redacted.ts";
export { type Secret, secret } from "./base/secret.ts";
export type { Advanced, AdvanceOptions } from "./client/advance.ts";
export type { AlertOptions } from "./client/alert-options.ts";
export type { AlertQuery, AlertSummary, Alerts } from "./client/alerts.ts";
export type {
  ApprovalLinks,
  LinkDecision,
  LinkOptions,
  LinkRefusal,
  LinkSummary,
  NewLink,
  OpenedLink,
  Person,
} from "./client/approval-links.ts";
export type {
  ApprovalPage,
  ApprovalQuery,
  ApprovalSummary,
  Approvals,
  Decision,
  DecisionReceipt,
} from "./client/approvals.ts";
export type { AuditCheck, AuditedBy } from "./client/audit.ts";
export type { BulkOutcome, BulkRequest } from "./client/bulk.ts";
export type { CallbackFailure, CallbackReceipt, Callbacks } from "./client/callbacks.ts";
export type { Debounce } from "./client/debounce.ts";
export type { Accepted, AcceptOptions, Documents, FreshOptions } from "./client/documents.ts";
export type { Emitted, WorkflowTrigger } from "./client/events.ts";
export type { ForkOptions } from "./client/fork-effects.ts";
export type { ImportOptions } from "./client/import.ts";
export type { EncryptionKey, EncryptionOptions } from "./client/keyring.ts";
export type { StepReport } from "./client/manual.ts";
export type { MetricsQuery } from "./client/metrics.ts";
export type { AuditPage, Hold, Operations, PurgeOptions } from "./client/operations.ts";
export { Pawl } from "./client/pawl.ts";
export type { PawlOptions } from "./client/pawl-options.ts";
export type { Choice } from "./client/resolve.ts";
export type { RewriteOptions } from "./client/rewrite.ts";
export type {
  CancelOptions,
  CancelOutcome,
  JournalRange,
  Run,
  RunEvent,
  RunStatus,
  RunSummary,
  RunWait,
  SignalOptions,
} from "./client/run.ts";
export type { EventsOptions } from "./client/run-events.ts";
export type { Page, RunQuery, RunSelection, RunTotals } from "./client/run-list.ts";
export type { ScheduleOptions, ScheduleSummary } from "./client/schedules.ts";
export type { SecretOrigin, SecretProvider } from "./client/secrets.ts";
export type { StartOptions } from "./client/start.ts";
export type {
  StreamChunkEvent,
  StreamEndEvent,
  StreamEvent,
  StreamOptions,
  StreamRetractEvent,
} from "./client/stream.ts";
export type { WorkerHealth, WorkerStatus } from "./client/worker-health.ts";
export type { Alert, AlertKind } from "./core/alert.ts";
export type {
  ApprovalAction,
  ApprovalDenials,
  ApprovalHandoff,
  ApprovalKind,
  ApprovalRecord,
  ApprovalVote,
  Approved,
  ApproveOptions,
  EscalationLevel,
  LevelAction,
  MaxDenials,
  Risk,
  ServiceLevel,
  VoteDecision,
  VoteLink,
} from "./core/approval.ts";
export type { BreakerOptions } from "./core/breaker.ts";
export type { Amounts, BudgetOptions, BudgetStatus } from "./core/budget.ts";
export type { Callback } from "./core/callback.ts";
export type {
  CallOptions,
  Context,
  Cost,
  Log,
  MapOptions,
  RunFacts,
  StepInfo,
  StepKind,
  StepOptions,
  UndoableStepOptions,
  WaitOptions,
} from "./core/context.ts";
export type { Dry, ForkEffects } from "./core/dry.ts";
export type { EffectOptions, EffectSpec, NeededApproval } from "./core/effect.ts";
export { type CategoryRule, ERROR_CATEGORIES, type ErrorCategory, errorCategory } from "./core/error-category.ts";
export type { ConcurrencyLimit, RateLimit } from "./core/flow-control.ts";
export type { Graph, GraphEdge, GraphNode } from "./core/graph.ts";
export type { EffectClass, Entry, EntryType, Parked, RewriteCause, Uses } from "./core/journal.ts";
export type { EffectRecord } from "./core/ledger.ts";
export type { MachinePosition } from "./core/machine-position.ts";
export type { MigratedRun, Migration, SavedRun, SavedStep } from "./core/migration.ts";
export type { NoProgress } from "./core/no-progress.ts";
export type {
  AlertNotification,
  ApprovalNotification,
  IncompleteNotification,
  Notification,
  NotificationLink,
  Notifier,
} from "./core/notification.ts";
export type {
  Committed,
  ObservedAttempt,
  ObservedEngine,
  ObservedEntry,
  ObservedRun,
  Observer,
} from "./core/observer.ts";
export type { PatternName } from "./core/redaction-patterns.ts";
export type { Redaction } from "./core/redactor.ts";
export type { Retry, RetryOptions } from "./core/retry.ts";
export type { RetryBudgetOptions } from "./core/retry-budget.ts";
export type { Misfire, Overlap } from "./core/schedule.ts";
export type { StandardSchema } from "./core/schema.ts";
export type {
  Isolation,
  OpenTransaction,
  Sql,
  SqlClient,
  SqlInput,
  SqlQuery,
  SqlResult,
  SqlRow,
  TransactionOptions,
} from "./core/sql.ts";
export type {
  DocumentApproval,
  DocumentEffect,
  DocumentWait,
  PhaseRecord,
  StateDocument,
  StepRecord,
} from "./core/state-document.ts";
export type { DocumentStatus } from "./core/status-words.ts";
export type { Store } from "./core/store.ts";
export type { PublicStatus, RunState } from "./core/transition.ts";
export type { Condition, EventFilter, PawlEvent, Trigger } from "./core/trigger.ts";
export type { Detected, UndoInfo } from "./core/undoable-call.ts";
export {
  type Guard,
  type Handler,
  type VersionPolicy,
  type Workflow,
  type WorkflowOptions,
  workflow,
} from "./core/workflow.ts";
export { type MachineDefinition, type MachineOptions, machine } from "./flows/machine.ts";
export type { Escalation } from "./flows/machine-plan.ts";
export type {
  AgentInfo,
  AgentOutcome,
  AgentStep,
  ApprovalStep,
  CodeStep,
  EffectStep,
  MachineStep,
  ParallelStep,
  Rejection,
  Steps,
} from "./flows/machine-step.ts";
export type { Transition, TransitionWord } from "./flows/machine-transition.ts";
export type { MergeRule, MergeRules } from "./flows/patch.ts";
export type {
  GateOptions,
  ManualOptions,
  Phase,
  PhaseFacts,
  PhaseFile,
  PhaseStep,
  PhasesOptions,
  PhaseWork,
  RunIdFacts,
} from "./flows/phase-spec.ts";
export { type PhasesWorkflow, phases } from "./flows/phases.ts";
export type { ApprovalWait, KnownIncident, Metrics, Ratio, StoreMetrics } from "./observe/metrics.ts";
export type { HistogramValue, ProcessMetrics } from "./observe/operating-counters.ts";
export { type FileStore, type FileStoreOptions, fileStore } from "./stores/file/file-store.ts";
export type { Decider, HeldDocument } from "./stores/file/held-documents.ts";
export { memoryStore } from "./stores/memory/memory-store.ts";
export { type PostgresStoreOptions, postgresStore } from "./stores/postgres/postgres-store.ts";
export { sqliteStore } from "./stores/sqlite/sqlite-store.ts";
