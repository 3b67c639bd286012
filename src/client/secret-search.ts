// The search for secrets
// Every value that is recorded and every line that is logged is searched for every form of every secret: one pass over the text, however many there are.
//
//   SE1. Whatever is found is taken out, also where two finds overlap: no rest of either stays.
//   SE2. The window is as long as the shortest form. Its last three characters say how far it may move without passing over a form; most texts are
//        looked at in a few places only. (The way of Wu and Manber.)
import { REDACTED_TEXT } from "../base/redacted.ts";

export interface SoughtForm {
  readonly text: string;
  /** How many characters of base64 before and behind it have some of its bits. */
  readonly before: 0 | 1;
  readonly after: 0 | 1;
}

const BLOCK = 3;
const TABLE_BITS = 15;
const LONGEST_SHIFT = 255;
const BASE64 = /[A-Za-z0-9+/_-]/;

interface Table {
  /** The length of the shortest form. */
  readonly window: number;
  /** How far to move on, by the last block of a window. */
  readonly shifts: Uint8Array;
  /** Forms by the last block of their first window, the longest first. */
  readonly forms: ReadonlyMap<number, readonly SoughtForm[]>;
}

export class SecretSearch {
  readonly #forms = new Map<string, SoughtForm>();
  #table: Table | null = null;

  add(forms: readonly SoughtForm[]): void {
    for (const form of forms) if (!this.#forms.has(form.text)) this.#forms.set(form.text, form);
    this.#table = null;
  }

  /** The text without what is sought. */
  hide(text: string): string {
    if (this.#forms.size === 0) return text;
    this.#table ??= tableOf([...this.#forms.values()]);
    const finds = findsIn(text, this.#table);
    return finds.length === 0 ? text : without(text, finds);
  }
}

function tableOf(forms: readonly SoughtForm[]): Table {
  const window = Math.min(...forms.map(({ text }) => text.length));
  const most = Math.min(LONGEST_SHIFT, window - BLOCK + 1);
  const shifts = new Uint8Array(1 << TABLE_BITS).fill(most);
  const byBlock = new Map<number, SoughtForm[]>();
  for (const form of forms.toSorted((a, b) => b.text.length - a.text.length)) {
    for (let end = BLOCK - 1; end < window; end++) {
      const block = blockAt(form.text, end);
      shifts[block] = Math.min(shifts[block] ?? most, window - 1 - end);
    }
    const last = blockAt(form.text, window - 1);
    byBlock.set(last, [...(byBlock.get(last) ?? []), form]);
  }
  return { window, shifts, forms: byBlock };
}

/** The three characters that end here, as a number: different ones may have the same. */
function blockAt(text: string, end: number): number {
  const mixed = text.charCodeAt(end - 2) * 0x9e5 + text.charCodeAt(end - 1) * 0x1b3 + text.charCodeAt(end);
  return mixed & ((1 << TABLE_BITS) - 1);
}

type Find = [start: number, end: number];

function findsIn(text: string, { window, shifts, forms }: Table): Find[] {
  const finds: Find[] = [];
  for (let end = window - 1; end < text.length; ) {
    const block = blockAt(text, end);
    const shift = shifts[block] as number;
    if (shift > 0) {
      end += shift;
      continue;
    }
    const start = end - window + 1;
    const form = forms.get(block)?.find((one) => text.startsWith(one.text, start));
    if (form !== undefined) addFind(finds, widened(text, start, form));
    end += 1;
  }
  return finds;
}

function widened(text: string, start: number, { text: form, before, after }: SoughtForm): Find {
  const end = start + form.length;
  return [
    before === 1 && BASE64.test(text.charAt(start - 1)) ? start - 1 : start,
    after === 1 && BASE64.test(text.charAt(end)) ? end + 1 : end,
  ];
}

/** SE1. They come by their starts, but for one character. */
function addFind(finds: Find[], [start, end]: Find): void {
  const last = finds.at(-1);
  if (last === undefined || start >= last[1]) finds.push([start, end]);
  else last[1] = Math.max(last[1], end);
}

function without(text: string, finds: readonly Find[]): string {
  const parts = finds.map(([start], index) => text.slice(finds[index - 1]?.[1] ?? 0, start));
  return [...parts, text.slice(finds.at(-1)?.[1])].join(REDACTED_TEXT);
}
