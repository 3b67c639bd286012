import { expect, it } from "vitest";
import type { LifeStory } from "./crash-life.ts";
import { Undisturbed } from "./undisturbed-life.ts";

const SENT = { name: "send", run: "run", step: "send", what: '"send" { to: "ann" }' };
const ASTRAY = { ...SENT, what: '"send" { to: undefined }' };

function story(effects: LifeStory["effects"]): LifeStory {
  const end = { kind: "returned", value: "1" } as const;
  const nothingElse = { isInterrupted: false, isCancelled: false };
  return { end, steps: [], effects, reached: [], abandoned: [], ...nothingElse };
}

it("I6 an effect that a fresh process has not made is blamed on its step, and not on a key that was not passed on", () => {
  const whole = new Undisturbed([], story([SENT]), []);
  const [lost] = whole.judge(story([]));
  expect(lost).toMatchObject({ kind: "effects", step: "send" });
  expect(lost?.message).toMatch(
    /happened 0 times, undisturbed 1\. Step "send" makes it\. Make sure that its step waits/,
  );
  expect(whole.judge(story([SENT, SENT]))[0]?.message).toMatch(
    /happened 2 times, undisturbed 1\. .* Pass the step's key on/,
  );
});

it("I6 an effect that a fresh process makes from something else is blamed, unless it varies by itself", () => {
  const whole = new Undisturbed([], story([SENT]), []);
  expect(whole.judge(story([SENT]))).toEqual([]);
  const [astray] = whole.judge(story([ASTRAY]));
  expect(astray).toMatchObject({ kind: "effects", step: "send" });
  expect(astray?.message).toMatch(/made the effect "send" \{ to: undefined \}, undisturbed "send" \{ to: "ann" \}\./);
  expect(new Undisturbed([], story([SENT]), ["now"]).judge(story([ASTRAY]))).toEqual([]);
  whole.learn(story([ASTRAY]));
  expect(whole.judge(story([{ ...SENT, what: '"send"' }]))).toEqual([]);
});
