/**
 * A store's URL as it may be shown: without user and password, and of its settings only the schema, since a password may be among them as well.
 * Everything up to the last "@" goes: a password may hold one that nobody has escaped.
 */
export function shownUrl(url: string): string {
  if (!/^[a-z][a-z0-9+.-]+:\/\//i.test(url)) return url;
  const rest = url.replace(/^([^:]+:\/\/).*@/s, "$1…@");
  const [, schema] = /[?&](schema=[^&#]*)/.exec(rest) ?? [];
  const [address = ""] = rest.split(/[?#]/, 1);
  return schema === undefined ? address : `${address}?${schema}`;
}
