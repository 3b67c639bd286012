import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formsOf } from "./secret-forms.ts";
import { SecretSearch, type SoughtForm } from "./secret-search.ts";

const NASTY = `pä ss"w/ö+rd\\&é=?#%~'()*!€😀`;
const LATIN = `pä ss"w/ö+rd\\&é=?#%~`;

const hex = (unit: string) => unit.charCodeAt(0).toString(16).padStart(4, "0");
const escaped = (text: string) => JSON.stringify(text).replace(/[^\0-\x7f]/g, (unit) => `\\u${hex(unit)}`);
const lower = (text: string) => text.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase());
const inUrl = (change: (url: URL) => void) => {
  const url = new URL("https://ann@example.com/path");
  change(url);
  return url.href;
};

/** How programs pass a secret on. */
const WAYS: Readonly<Record<string, (secret: string) => string>> = {
  "as it is": (secret) => `say ${secret} twice: ${secret}`,
  "in a query": (secret) => `?token=${encodeURIComponent(secret)}&x=1`,
  "in a query, in small letters": (secret) => `?token=${lower(encodeURIComponent(secret))}`,
  "in a form": (secret) => new URLSearchParams({ user: "ann", token: secret }).toString(),
  "as RFC 3986 wants it": (secret) => new URLSearchParams({ token: secret }).toString().replaceAll("+", "%20"),
  "as the password of a URL": (secret) => inUrl((url) => Object.assign(url, { password: secret })),
  "as the query of a URL": (secret) => inUrl((url) => Object.assign(url, { search: `?${secret}` })),
  "as the end of a URL": (secret) => inUrl((url) => Object.assign(url, { hash: `#${secret}` })),
  "in JSON": (secret) => JSON.stringify({ token: secret }),
  "in JSON of ASCII alone": (secret) => `{"token":${escaped(secret)}}`,
  "in JSON of ASCII alone, in capitals": (secret) =>
    `{"token":${escaped(secret).replace(/\\u(....)/g, (_, digits: string) => `\\u${digits.toUpperCase()}`)}}`,
  "in JSON with slashes escaped": (secret) => JSON.stringify({ token: secret }).replaceAll("/", "\\/"),
  "in JSON in JSON": (secret) => JSON.stringify({ body: JSON.stringify({ token: secret }) }),
  "in JSON of ASCII in JSON": (secret) => JSON.stringify({ body: `{"token":${escaped(secret)}}` }),
  "in hexadecimal digits": (secret) => `x'${Buffer.from(secret).toString("hex")}'`,
  "in hexadecimal capitals": (secret) => Buffer.from(`user:${secret}`).toString("hex").toUpperCase(),
  "in bytes": (secret) => Buffer.from(`user:${secret}`).toString("latin1"),
};

function searchFor(...secrets: readonly string[]): SecretSearch {
  const search = new SecretSearch();
  for (const secret of secrets) search.add(formsOf(secret));
  return search;
}

describe("the search for secrets", () => {
  it.each(Object.entries(WAYS))("Q13 finds one %s, and leaves the rest", (_, way) => {
    for (const secret of [NASTY, LATIN, "canary-token-77aa"]) {
      const mark = "plainmark";
      const marked = way(mark).replaceAll(mark, "[redacted]");
      const inBytes = Buffer.from(mark).toString("hex");
      const expected = marked.replaceAll(inBytes, "[redacted]").replaceAll(inBytes.toUpperCase(), "[redacted]");
      expect(searchFor(secret).hide(way(secret))).toBe(expected);
    }
  });

  it("Q13 finds one in base64 wherever it stands, as in Authorization: Basic, and leaves none of its bits", () => {
    const text = (max: number) => fc.string({ maxLength: max, unit: "binary" });
    const secrets = fc.oneof(fc.string({ minLength: 8, maxLength: 40, unit: "binary" }), fc.constant(NASTY));
    const encodings = fc.constantFrom("base64" as const, "base64url" as const);
    fc.assert(
      fc.property(text(5), secrets, text(5), encodings, (before, secret, after, encoding) => {
        const [head, body, tail] = [before, secret, after].map((part) => Buffer.from(part)) as [Buffer, Buffer, Buffer];
        const encoded = Buffer.concat([head, body, tail]).toString(encoding);
        const hidden = searchFor(secret).hide(`Basic ${encoded};`);
        const [left = "", ...rest] = hidden.slice("Basic ".length, -1).split("[redacted]");
        const right = rest.at(-1) ?? "";
        expect(rest.length).toBeGreaterThan(0);
        expect(left.length * 6).toBeLessThanOrEqual(head.length * 8);
        expect((encoded.length - right.length) * 6).toBeGreaterThanOrEqual((head.length + body.length) * 8);
        expect(encoded.startsWith(left) && encoded.endsWith(right)).toBe(true);
      }),
    );
  });

  it("Q13 finds what btoa makes of one", () => {
    expect(searchFor(LATIN).hide(`Basic ${btoa(`ann:${LATIN}`)}`)).toMatch(/^Basic YW5u\w?\[redacted\]=*$/);
  });

  it("SE1 SE2 finds what a search for one form after the other finds, and takes out all of what overlaps", () => {
    const word = fc.string({ minLength: 8, maxLength: 14, unit: fc.constantFrom("a", "b") });
    const sought = fc.array(word, { minLength: 1, maxLength: 6 });
    // Whole words and ends of them, one after the other.
    const pieces = fc.array(fc.tuple(fc.nat(), fc.constantFrom(0, 0, 1, 3, 6)), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(sought, pieces, (words, parts) => {
        const text = parts.map(([at, cut]) => words[at % words.length]?.slice(cut)).join("");
        const search = new SecretSearch();
        search.add(words.map((one): SoughtForm => ({ text: one, before: 0, after: 0 })));
        const isTaken = (at: number) =>
          words.some((one) => [...one].some((_, back) => back <= at && text.startsWith(one, at - back)));
        const rest = [...text].map((letter, at) => (isTaken(at) ? "#" : letter)).join("");
        // Two finds that touch have a mark each: what is left is compared.
        expect(search.hide(text).replaceAll(/(\[redacted\])+/g, "#")).toBe(rest.replaceAll(/#+/g, "#"));
      }),
      { numRuns: 1000 },
    );
  });

  it("Q13 no form of a secret is shorter than the secret, whatever that is made of", () => {
    for (const secret of [
      "\t\n\r\t\n\r\t\n",
      "????????",
      "########",
      "\ud800\ud800\ud800\ud800\ud800\ud800\ud800\ud800",
    ])
      for (const { text } of formsOf(secret)) expect(text.length).toBeGreaterThanOrEqual(secret.length);
    expect(searchFor("\t\n\r\t\n\r\t\n").hide("a\tb\nc")).toBe("a\tb\nc");
  });
});
