const ROLES: ReadonlySet<unknown> = new Set(["system", "developer", "user", "assistant", "tool", "function"]);
const DEEPEST = 12;

/** Where in a value there is a conversation with a model, a list of messages with roles; `null`: nowhere. */
export function transcriptIn(value: unknown, path = "", depth = 0): string | null {
  if (typeof value !== "object" || value === null || depth > DEEPEST) return null;
  if (Array.isArray(value) && value.length > 0 && value.every(isMessage)) return path;
  for (const [key, inner] of entriesOf(value)) {
    const found = transcriptIn(inner, path === "" ? key : `${path}.${key}`, depth + 1);
    if (found !== null) return found;
  }
  return null;
}

function entriesOf(value: object): [string, unknown][] {
  if (value instanceof Map) return [...value].map(([key, inner]) => [String(key), inner]);
  if (value instanceof Set) return [...value].map((inner, at) => [String(at), inner]);
  return Object.entries(value);
}

function isMessage(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { role, content, parts } = value as Record<string, unknown>;
  return ROLES.has(role) && (content !== undefined || parts !== undefined);
}
