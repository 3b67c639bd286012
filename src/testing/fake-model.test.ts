import { describe, expect, it } from "vitest";
import { fakeModel } from "./fake-model.ts";

describe("fakeModel", () => {
  it("answers in order, and keeps every call with its key", async () => {
    const model = fakeModel(["Paris", "Rome"]);
    const plain: (prompt: string) => Promise<string> = model;
    expect([await plain("Where to?"), await model("And then?", { key: "run/ask" })]).toEqual(["Paris", "Rome"]);
    expect(model.calls).toEqual([
      { n: 1, prompt: "Where to?", key: null, answer: "Paris" },
      { n: 2, prompt: "And then?", key: "run/ask", answer: "Rome" },
    ]);
  });

  it("gives a known key the same answer again, and its calls without a key the next one", async () => {
    const model = fakeModel(["a", "b"]);
    await model("x", { key: "k" });
    expect(await model("x", { key: "k" })).toBe("a");
    expect(await model("x")).toBe("b");
    expect(model.calls.length).toBe(3);
  });

  it("says when its answers are used up, and what to do", async () => {
    const model = fakeModel(["only"]);
    await model("x");
    await expect(model("x")).rejects.toThrow(/has 1 answer, and all were used before call 2.*pass the step's key/);
  });

  it("answers by a function of the prompt", async () => {
    const model = fakeModel((prompt, n) => `${n}: ${prompt.toUpperCase()}`);
    expect([await model("a"), await model("b")]).toEqual(["1: A", "2: B"]);
  });

  it("fails at the n-th call, which uses up no answer", async () => {
    const model = fakeModel(["a"], { fail: { 1: new Error("overloaded") } });
    await expect(model("x", { key: "k" })).rejects.toThrow("overloaded");
    expect(await model("x", { key: "k" })).toBe("a");
    expect(model.calls.map(({ answer }) => answer)).toEqual([null, "a"]);
  });

  it("hangs at the n-th call until its signal fires", async () => {
    const model = fakeModel(["a"], { hang: [1] });
    const abort = new AbortController();
    const call = model("x", { signal: abort.signal });
    abort.abort(new Error("timed out"));
    await expect(call).rejects.toThrow("timed out");
    await expect(model("x", { signal: abort.signal })).rejects.toThrow("timed out");
    expect(await model("x")).toBe("a");
  });

  it("begins again after a reset", async () => {
    const model = fakeModel(["a", "b"]);
    await model("x", { key: "k" });
    model.reset();
    expect(model.calls).toEqual([]);
    expect(await model("y", { key: "other" })).toBe("a");
  });
});
