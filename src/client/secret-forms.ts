// The forms in which a secret is passed on, as programs write it: each is text that can be looked for.
import type { SoughtForm } from "./secret-search.ts";

/** All of them. What is the same in several forms is there once. */
export function formsOf(secret: string): SoughtForm[] {
  const texts = new Set([secret, ...percentForms(secret), ...jsonForms(secret)]);
  const found = new Map<string, SoughtForm>();
  for (const bytes of bytesOf(secret)) {
    // Bytes are looked through as if each was a character.
    texts.add(bytes.toString("latin1"));
    texts.add(bytes.toString("hex")).add(bytes.toString("hex").toUpperCase());
    for (const form of base64Forms(bytes)) found.set(form.text, form);
  }
  for (const text of texts) found.set(text, { text, before: 0, after: 0 });
  // A part of a URL drops some characters: what is shorter than the secret could be any text.
  return [...found.values()].filter(({ text }) => text.length >= secret.length);
}

/** In UTF-8, and as `btoa` takes characters for bytes. */
function bytesOf(secret: string): Buffer[] {
  const utf8 = Buffer.from(secret, "utf8");
  const latin1 = Buffer.from(secret, "latin1");
  const isOther = latin1.toString("latin1") === secret && !latin1.equals(utf8);
  return isOther ? [utf8, latin1] : [utf8];
}

/**
 * What of its base64 is the same wherever it stands in what is encoded, as in `Authorization: Basic base64("user:secret")`: once for each number of bytes in front
 * of it. The character before and behind may have some of its bits as well.
 */
function base64Forms(bytes: Buffer): SoughtForm[] {
  return [0, 1, 2].flatMap((ahead) => {
    const bits = 8 * (ahead + bytes.length);
    const [start, end] = [Math.ceil((8 * ahead) / 6), Math.floor(bits / 6)];
    const padded = Buffer.concat([Buffer.alloc(ahead), bytes]);
    const edges = { before: ahead === 0 ? 0 : 1, after: bits % 6 === 0 ? 0 : 1 } as const;
    return [padded.toString("base64"), padded.toString("base64url")].map((text) => ({
      text: text.slice(start, end),
      ...edges,
    }));
  });
}

/** In a URL, a form, or a part of either; with digits in capitals, as most programs write them, or not. */
function percentForms(secret: string): string[] {
  // Half a character cannot be written so.
  const whole = Buffer.from(secret, "utf8").toString("utf8");
  const form = new URLSearchParams([["", whole]]).toString().slice(1);
  const url = new URL("https://host/");
  url.password = whole;
  url.search = whole;
  url.hash = whole;
  return [
    encodeURIComponent(whole),
    encodeURI(whole),
    form,
    form.replaceAll("+", "%20"),
    url.password,
    url.search.slice(1),
    url.hash.slice(1),
  ].flatMap((text) => [text, text.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase())]);
}

/** In JSON, and in JSON that is a text in JSON; with everything but ASCII escaped, or not; with slashes escaped, or not. */
function jsonForms(secret: string): string[] {
  const once = JSON.stringify(secret).slice(1, -1);
  const hex = (unit: string) => unit.charCodeAt(0).toString(16).padStart(4, "0");
  const escapes = [
    once,
    once.replace(/[^\0-\x7f]/g, (unit) => `\\u${hex(unit)}`),
    once.replace(/[^\0-\x7f]/g, (unit) => `\\u${hex(unit).toUpperCase()}`),
  ];
  const all = escapes.flatMap((text) => [text, text.replaceAll("/", "\\/")]);
  return all.flatMap((text) => [text, JSON.stringify(text).slice(1, -1)]);
}
