// JSON as people and their editors leave it.

/** A name stands twice in one object: whoever has written the first would never learn that only the last counts. */
export class RepeatedKey extends Error {
  /** The names that lead to it; places in lists are left out. */
  readonly path: string;

  constructor(path: string) {
    super(`"${path}" is there twice`);
    this.path = path;
  }
}

/** Like `JSON.parse`, but a byte order mark before the text means nothing, and no name may stand twice in an object. */
export function parseJson(text: string): unknown {
  const plain = text.startsWith("\uFEFF") ? text.slice(1) : text;
  const value: unknown = JSON.parse(plain);
  assertKeysOnce(plain);
  return value;
}

interface Level {
  /** Of a list: `null`. */
  readonly keys: Set<string> | null;
  /** The name whose value is being read. */
  key: string | null;
}

const [QUOTE, COLON, BACKSLASH] = [34, 58, 92];
const [LIST, END_OF_LIST, OBJECT, END_OF_OBJECT] = [91, 93, 123, 125];

/** Takes text that is JSON: nothing but strings and brackets has to be told apart. */
function assertKeysOnce(text: string): void {
  const levels: Level[] = [];
  let string = "";
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const end = endOfString(text, at);
      string = text.slice(at + 1, end);
      at = end;
    } else if (code === COLON) note(levels, string);
    else if (code === OBJECT || code === LIST) levels.push({ keys: code === OBJECT ? new Set() : null, key: null });
    else if (code === END_OF_OBJECT || code === END_OF_LIST) levels.pop();
  }
}

function note(levels: readonly Level[], raw: string): void {
  const level = levels.at(-1) as Level;
  const key = raw.includes("\\") ? (JSON.parse(`"${raw}"`) as string) : raw;
  level.key = key;
  if (level.keys?.has(key) === true) throw new RepeatedKey(levels.flatMap((one) => one.key ?? []).join("."));
  level.keys?.add(key);
}

function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end;
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes += 1;
  return slashes % 2 === 1;
}
