/**
 * A key as one word of ASCII that can stand in a line, a comment and an HTML comment. Ids and usual step names stay as they are, so that
 * people can search for them.
 */
export function keyText(key: string): string {
  return encodeURI(key);
}
