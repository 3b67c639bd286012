// The contract of a trace
// What everybody who reads traces of runs may count on, as a check over spans that were exported.
import type { Attributes } from "./span-data.ts";

/** A span as exporters have it, as far as it is looked at. */
export interface ExportedSpan {
  readonly name: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  spanContext(): { readonly traceId: string; readonly spanId: string };
}

export interface TraceFinding {
  readonly rule: "run_span" | "stop_reason" | "correlation" | "policy_decision" | "effect_key" | "redaction";
  readonly span: string;
  readonly message: string;
}

const CORRELATION: readonly (keyof Attributes)[] = [
  "pawl.run.id",
  "pawl.workflow.name",
  "pawl.workflow.version",
  "pawl.trace.id",
];
const REDACTIONS: ReadonlySet<unknown> = new Set(["content", "no_content"]);
const CONTENT: readonly string[] = ["gen_ai.output.messages", "gen_ai.input.messages", "gen_ai.tool.call.result"];

/** What is missing in the trace of one run that has ended. Spans that are no run's are passed over. */
export function checkTrace(spans: readonly ExportedSpan[]): TraceFinding[] {
  const own = spans.filter(({ attributes }) => "pawl.span.kind" in attributes);
  const runs = own.filter(({ attributes }) => attributes["pawl.span.kind"] === "run");
  const found: TraceFinding[] = [];
  if (runs.length === 0) found.push({ rule: "run_span", span: "", message: "The trace has no span of a run." });
  for (const { name, attributes } of runs)
    if (!isText(attributes["pawl.run.stop_reason"]))
      found.push({ rule: "stop_reason", span: name, message: "The span of the run does not say why it ended." });
  return [...found, ...own.flatMap((span) => findingsOf(span, own[0] as ExportedSpan))];
}

function findingsOf(span: ExportedSpan, first: ExportedSpan): TraceFinding[] {
  const { name, attributes } = span;
  const found: TraceFinding[] = [];
  const missing = CORRELATION.filter((field) => !isText(attributes[field]));
  if (missing.length > 0) found.push({ rule: "correlation", span: name, message: `It has no ${missing.join(", ")}.` });
  if (span.spanContext().traceId !== first.spanContext().traceId)
    found.push({ rule: "correlation", span: name, message: "It is in another trace than the others." });
  if (isToolSpan(span)) {
    if (!isText(attributes["pawl.policy.decision"]))
      found.push({ rule: "policy_decision", span: name, message: "It does not say what the policy decided." });
    if (!isText(attributes["pawl.effect.key"]))
      found.push({ rule: "effect_key", span: name, message: "It has no key that the outside could know it by." });
  }
  const redaction = attributes["pawl.redaction"];
  if (!REDACTIONS.has(redaction))
    found.push({ rule: "redaction", span: name, message: "It does not say whether content was left out." });
  if (redaction === "no_content" && CONTENT.some((field) => field in attributes))
    found.push({ rule: "redaction", span: name, message: "It has content, and says that it has none." });
  return found;
}

/** Effects, and calls of tools. An attempt that did not succeed has its plan as well. */
function isToolSpan({ attributes }: ExportedSpan): boolean {
  const isCall = attributes["gen_ai.operation.name"] === "execute_tool";
  return attributes["pawl.span.kind"] === "effect" || isCall;
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}
