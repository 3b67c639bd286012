const PLACEHOLDER = /\$(?:\$|\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))/g;

/**
 * A text with its parameters in the place of `$name` and `${name}`; `$$` is a dollar. What parameters say is never read as a placeholder. `missing`
 * is called for one that has no value, and must throw.
 */
export function filled(text: string, params: unknown, missing: (name: string) => never): string {
  return text.replace(PLACEHOLDER, (mark, braced: string | undefined, bare: string | undefined) => {
    const name = braced ?? bare;
    if (name === undefined) return mark === "$$" ? "$" : mark;
    const value = ownValue(params, name);
    return value === undefined || value === null ? missing(name) : shown(value);
  });
}

function ownValue(params: unknown, name: string): unknown {
  if (typeof params !== "object" || params === null || !Object.hasOwn(params, name)) return undefined;
  return (params as Readonly<Record<string, unknown>>)[name];
}

function shown(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  return typeof value === "object" ? JSON.stringify(value, null, 2) : String(value);
}
