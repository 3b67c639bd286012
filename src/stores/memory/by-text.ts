/** Order of text by code points, which is the order of its bytes in UTF-8. */
export function byText(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
