export { type ManualClock, manualClock, systemClock } from "../base/clock.ts";
export { type CommitFault, type FaultPlan, type FaultStore, faultStore, type RecordedCommit } from "./fault-store.ts";
export { type OpenedStore, type StoreCase, storeCases } from "./store-cases.ts";
