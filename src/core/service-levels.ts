// Service levels
// How soon people must answer may depend on the risk. What is given for the risk at hand takes the place of the approval's own times; what is given
// for others is checked as well, so that a mistake does not wait for the day on which such an action comes up (T-24).
import { PawlError } from "../base/errors.ts";
import { type ApproveOptions, RISKS, type Risk, type ServiceLevel } from "./approval.ts";

/** The options with the service level of their risk in place. `check` tries what the others would come to. */
export function withServiceLevel(
  name: string,
  options: ApproveOptions,
  check: (options: ApproveOptions) => unknown,
): ApproveOptions {
  const { serviceLevels, ...own } = options;
  if (serviceLevels === undefined) return options;
  const given = Object.entries(serviceLevels ?? {}) as [Risk, ServiceLevel][];
  for (const [risk, level] of given) {
    assertLevel(name, risk, level);
    tryOut(`serviceLevels.${risk}`, () => check({ ...own, ...level, risk }));
  }
  return { ...own, ...serviceLevels?.[own.risk ?? DEFAULT_RISK] };
}

export const DEFAULT_RISK: Risk = "medium";

const FIELDS: readonly string[] = ["timeout", "remind", "escalate"] satisfies (keyof ServiceLevel)[];

function assertLevel(name: string, risk: string, level: unknown): void {
  const isKnown = (RISKS as readonly string[]).includes(risk);
  const isObject = typeof level === "object" && level !== null;
  if (isKnown && isObject && Object.keys(level).every((field) => FIELDS.includes(field))) return;
  const field = `serviceLevels.${risk}`;
  const action = isKnown ? `Give some of: ${FIELDS.join(", ")}` : `Risks are: ${RISKS.join(", ")}`;
  throw new PawlError("invalid_argument", `\`${field}\` of approval "${name}" cannot be used. ${action}.`, {
    fields: { approval: name, field },
  });
}

/** A mistake in a service level says in which. */
function tryOut(where: string, check: () => unknown): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof PawlError) || error.fields["field"] === undefined) throw error;
    const inner = String(error.fields["field"]);
    const field = `${where}.${inner}`;
    throw new PawlError(error.code, error.message.replace(inner, field), { fields: { ...error.fields, field } });
  }
}
