export { type ManualClock, manualClock, systemClock } from "../base/clock.ts";
export {
  type ExportedEntry,
  type ExportedRow,
  type ExportedRun,
  type ExportOptions,
  exportRun,
} from "../client/export.ts";
export { type CommitFault, type FaultPlan, type FaultStore, faultStore, type RecordedCommit } from "./fault-store.ts";
export { type ReplayDiff, type ReplayOptions, type ReplayResult, replay } from "./replay.ts";
export { type OpenedStore, type StoreCase, storeCases } from "./store-cases.ts";
