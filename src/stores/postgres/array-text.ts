// Lists as the text of an array. The driver can do that as well, but looks at every element several times: most of a commit is lists.

export function numbersText(list: readonly (number | null)[]): string {
  return `{${list.map((one) => one ?? "NULL").join(",")}}`;
}

const ESCAPED = /["\\]/g;

export function textsText(list: readonly (string | null)[]): string {
  let text = "";
  for (const one of list) text += one === null ? ",NULL" : `,"${one.replace(ESCAPED, "\\$&")}"`;
  return `{${text.slice(1)}}`;
}
