import { expect, it } from "vitest";
import { conversationDigest } from "./conversation.ts";

const said = (text: string, more: object = {}) => ({ role: "user", content: [{ type: "text", text, ...more }] });

it("X-20 the digest is that of what was said: not of the system's text, the order of fields, or how providers want it", () => {
  const digest = conversationDigest([said("hi")]);
  expect(conversationDigest([{ role: "system", content: "Be brief." }, said("hi")])).toBe(digest);
  expect(conversationDigest([said("hi", { providerOptions: { a: 1 }, later: undefined })])).toBe(digest);
  expect(conversationDigest([{ role: "user", content: [{ text: "hi", type: "text" }] }])).toBe(digest);
});

it("X-20 whatever else was said is another conversation", () => {
  const file = (data: unknown) => ({ role: "user", content: [{ type: "file", data }] });
  const all = [
    [said("hi")],
    [said("hi"), said("hi")],
    [{ ...said("hi"), role: "assistant" }],
    [said("ho")],
    [file(new Uint8Array([1]))],
    [file(new Uint8Array([2]))],
    [file(new URL("https://a.example/1"))],
    [file(new URL("https://a.example/2"))],
    [file(null)],
    [],
  ];
  expect(new Set(all.map(conversationDigest)).size).toBe(all.length);
});
