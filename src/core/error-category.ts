// Error categories
// What kind of trouble an error tells of, and what the engine does about it unless a step says otherwise: a table for people and programs that
// decide by it. It follows the retry policy, which is the rule; nothing here changes it.

import { readProperty } from "../base/errors.ts";
import { type ErrorFacts, factsOf, isTransient, NETWORK_CODES } from "./retry.ts";

/** What kind of trouble an error tells of. */
export type ErrorCategory = "transient" | "dependency" | "resource" | "validation" | "logic";

/** What the engine does by default about errors of a category. */
export interface CategoryRule {
  /** Whether a step that fails with it is tried again. */
  readonly retry: boolean;
  /** When a run that fails with it undoes its effects. */
  readonly compensate: "when retries are used up" | "at once";
  readonly means: string;
}

/** The defaults, by category. */
export const ERROR_CATEGORIES: Readonly<Record<ErrorCategory, CategoryRule>> = {
  transient: {
    retry: true,
    compensate: "when retries are used up",
    means: "a timeout, a conflict or a rate limit: the same call may succeed in a moment",
  },
  dependency: {
    retry: true,
    compensate: "when retries are used up",
    means: "another system cannot be reached, or fails by itself",
  },
  resource: {
    retry: false,
    compensate: "at once",
    means: "something is used up: a budget, the disk, memory, the size of a value",
  },
  validation: {
    retry: false,
    compensate: "at once",
    means: "what was asked for is refused as it is: wrong input, missing rights, not there",
  },
  logic: {
    retry: false,
    compensate: "at once",
    means: "a fault of the program, and everything that says nothing else",
  },
};

const RESOURCE_CODES: ReadonlySet<unknown> = new Set([
  "ENOSPC",
  "EDQUOT",
  "EMFILE",
  "ENFILE",
  "ENOMEM",
  "budget_exceeded",
  "retry_budget_exceeded",
  "too_large",
]);

const VALIDATION_CODES: ReadonlySet<unknown> = new Set([
  "schema_mismatch",
  "invalid_argument",
  "invalid_name",
  "invalid_playbook",
  "not_serializable",
]);

/** The category of whatever was thrown. */
export function errorCategory(error: unknown): ErrorCategory {
  const facts = factsOf(error);
  if (facts.name === "TerminalError") return "logic";
  if (isTransient(facts)) return isOfOthers(facts) ? "dependency" : "transient";
  if (RESOURCE_CODES.has(facts.code)) return "resource";
  const isRefusal = typeof facts.status === "number" && facts.status >= 400 && facts.status < 500;
  return isRefusal || VALIDATION_CODES.has(facts.code) ? "validation" : "logic";
}

function isOfOthers({ code, status, cause }: ErrorFacts): boolean {
  if (code === "circuit_open" || NETWORK_CODES.has(code) || NETWORK_CODES.has(readProperty(cause, "code"))) return true;
  return typeof status === "number" && status >= 500;
}
