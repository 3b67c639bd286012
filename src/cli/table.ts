/** A table cell: its text, and how to colour it once it has its width. */
export type Cell = string | { readonly text: string; readonly paint: (text: string) => string };

export interface TableOptions {
  /** Columns whose text stands right. */
  readonly right?: readonly number[];
  /** The widest a line may be; the last column is cut to fit. */
  readonly width?: number;
  readonly indent?: number;
  readonly header?: (text: string) => string;
}

const GAP = "  ";

/** Lines of aligned columns. The first row is the header, if `header` says how to paint it. */
export function table(rows: readonly (readonly Cell[])[], options: TableOptions = {}): string[] {
  const { right = [], width = Number.POSITIVE_INFINITY, indent = 0, header } = options;
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, i) => Math.max(0, ...rows.map((row) => widthOf(textOf(row[i])))));
  const before = indent + widths.slice(0, -1).reduce((sum, one) => sum + one + GAP.length, 0);
  const last = Math.max(10, width - before);
  return rows.map((row, at) => {
    const paintRow = at === 0 ? header : undefined;
    const cells = row.map((cell, i) => {
      const isLast = i === columns - 1;
      const text = isLast ? cut(textOf(cell), last) : textOf(cell);
      const pad = " ".repeat(Math.max(0, (widths[i] ?? 0) - widthOf(text)));
      const painted = paintRow?.(text) ?? (typeof cell === "string" ? text : cell.paint(text));
      return right.includes(i) ? pad + painted : isLast ? painted : painted + pad;
    });
    return " ".repeat(indent) + cells.join(GAP).trimEnd();
  });
}

function textOf(cell: Cell | undefined): string {
  return cell === undefined ? "" : typeof cell === "string" ? cell : cell.text;
}

function cut(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 1)}…` : text;
}

// Wide characters of East Asian scripts and emoji take two columns, combining marks none.
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}]/u;

function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += /\p{Mn}/u.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
  return width;
}
