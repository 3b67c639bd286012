export { type ManualClock, manualClock, systemClock } from "../base/clock.ts";
export { type DiffedRun, type DiffRow, type DiffSide, diffExports, diffRuns, type RunDiff } from "../client/diff.ts";
export {
  type ExportedEntry,
  type ExportedRow,
  type ExportedRun,
  type ExportOptions,
  type ExportSource,
  exportRun,
} from "../client/export.ts";
export { exportPacket, type ReplayPacket } from "../client/replay-packet.ts";
export { move, type StateMachine } from "../core/state-machine.ts";
export { type ApprovalState, type EffectState, STATE_MACHINES, type StepState } from "../core/state-machines.ts";
export {
  type DocumentFlag,
  type DocumentStatus,
  STATUS_WORDS,
  type StatusFormat,
  type StatusWords,
  statesCalled,
  statusIn,
} from "../core/status-words.ts";
export {
  checkDetector,
  type DetectorFailure,
  type DetectorReport,
  type DetectorTest,
  detectorTest,
} from "./check-detector.ts";
export { type CrashOptions, crashEverywhere } from "./crash-everywhere.ts";
export { type CrashTest, crashTest } from "./crash-test.ts";
export { EVAL_CASE_SCHEMA, type JsonSchema } from "./evals/case-schema.ts";
export { type EvalSetup, type EvalSubject, type EvalTool, type EvalToolCall, evalSetup } from "./evals/eval-setup.ts";
export { EVAL_FAMILIES, type EvalFamily, evalFamilies, type FamilyCase } from "./evals/families.ts";
export type { Broken } from "./evals/play.ts";
export {
  type BadEnd,
  type EvalCase,
  type EvalEvent,
  type EvalExpectations,
  parseEvalCase,
  readEvalCase,
} from "./evals/read-case.ts";
export { type EvalFromRunOptions, evalFromRun } from "./evals/regression.ts";
export { type EvalResult, runEval } from "./evals/run-eval.ts";
export type { CrashMode, CrashPoint, PointKind } from "./explorer/crash-point.ts";
export type { CrashFailure, CrashRepeat, CrashReport } from "./explorer/report.ts";
export type { FaultKind } from "./explorer/verdict.ts";
export {
  type FakeModel,
  type FakeModelOptions,
  fakeModel,
  type ModelCall,
  type ModelCallOptions,
  type ModelScript,
} from "./fake-model.ts";
export { type CommitFault, type FaultPlan, type FaultStore, faultStore, type RecordedCommit } from "./fault-store.ts";
export type { LintedOperation } from "./lint/answers.ts";
export type { LintFinding, Question } from "./lint/findings.ts";
export type { OperationKind } from "./lint/operation.ts";
export type { LintedPlay } from "./lint/play.ts";
export type { LintReport, UnseenOperation } from "./lint/report.ts";
export { type LintOptions, type LintPlay, lintEffects } from "./lint-effects.ts";
export { type Effect, type Recorder, recorder } from "./recorder.ts";
export { type ReplayDiff, type ReplayOptions, type ReplayResult, replay } from "./replay.ts";
export { type Rerun, type RerunOptions, rerun } from "./rerun.ts";
export { describeScenario } from "./simulator/describe-scenario.ts";
export { drawScenario } from "./simulator/draw-scenario.ts";
export type { Program } from "./simulator/program.ts";
export type {
  Fault,
  OperatorPlan,
  ProcessPlan,
  RunPlan,
  Scenario,
  Settings,
  SignalPlan,
} from "./simulator/scenario.ts";
export { type ShrinkOptions, shrinkScenario } from "./simulator/shrink.ts";
export { type SimulationReport, simulate, type Violation } from "./simulator/simulation.ts";
export { SITUATIONS, type Situation } from "./simulator/situations.ts";
export { type OpenedStore, type StoreCase, storeCases } from "./store-cases.ts";
export { type TestEngine, type TestEngineOptions, testEngine } from "./test-engine.ts";
export { type TraceFrame, traceReplay } from "./trace-replay.ts";
