// HTML
// Pages that the server writes itself. Whatever comes from a store is text: it is escaped where it is put in, and marks that would hide or reorder
// text are shown as what they are, so that people read what there is (Q17).

/** Text that may stand in a page as it is. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type Piece = Html | string | number | null | readonly Piece[];

/** A piece of a page: what stands between the pieces of the template is HTML, what is put in is text. */
export function html(parts: TemplateStringsArray, ...values: readonly Piece[]): Html {
  return new Html(parts.map((part, i) => part + (i < values.length ? textOf(values[i] ?? null) : "")).join(""));
}

function textOf(value: Piece): string {
  if (value === null) return "";
  if (value instanceof Html) return value.text;
  if (Array.isArray(value)) return value.map((one: Piece) => textOf(one)).join("");
  return escaped(String(value));
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Controls but line breaks, separators of lines, and whatever has no width, reorders text or is not drawn at all. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

function escaped(text: string): string {
  return text
    .replace(HIDDEN, (mark) => (mark === "\n" ? mark : `\\u{${mark.codePointAt(0)?.toString(16)}}`))
    .replace(/[&<>"']/g, (mark) => ENTITIES[mark] ?? "");
}

/** An answer with a whole page. */
export function page(
  title: string,
  body: Html,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const whole = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<title>${title}</title>
<link rel="stylesheet" href="/approve.css">
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`;
  return new Response(whole.text, { status, headers: { "content-type": "text/html; charset=utf-8", ...headers } });
}
