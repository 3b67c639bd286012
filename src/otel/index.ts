export { type OtelOptions, otel } from "./otel.ts";
export { type IdGenerator, pawlIds } from "./span-ids.ts";
export { checkTrace, type ExportedSpan, type TraceFinding } from "./trace-contract.ts";
