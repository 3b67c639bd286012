import { expect, it } from "vitest";
import type { LifeStory } from "./crash-life.ts";
import { Undisturbed } from "./undisturbed-life.ts";

const SENT = { name: "send", run: "run", step: "send" };

function story(effects: LifeStory["effects"]): LifeStory {
  const end = { kind: "returned", value: "1" } as const;
  return { end, steps: [], effects, reached: [], abandoned: [], isInterrupted: false, isCancelled: false };
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
