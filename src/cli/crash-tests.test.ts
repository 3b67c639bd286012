import { expect, it } from "vitest";
import { workflow } from "../core/workflow.ts";
import { crashTest } from "../testing/crash-test.ts";
import { chooseTests } from "./crash-tests.ts";

const a = workflow("a", async () => 1);
const b = workflow("b", async () => 2);
const choice = { file: "w.ts", name: null, input: null };

it("a file with one workflow is a test of it; its input comes from the command line", () => {
  const [test] = chooseTests({ a }, { ...choice, input: { value: 7 } });
  expect(test).toMatchObject({ name: "a", workflow: a, input: 7, workflows: [] });
});

it("crash tests go before workflows, which are then at hand as children", () => {
  const tests = chooseTests(
    { default: crashTest({ workflow: a, input: 1 }), twice: crashTest({ workflow: a, input: 2 }), b },
    choice,
  );
  expect(tests.map(({ name, input, workflows }) => ({ name, input, workflows }))).toEqual([
    { name: "a", input: 1, workflows: [b] },
    { name: "twice", input: 2, workflows: [b] },
  ]);
});

it("one is chosen by the name of its export or of its workflow", () => {
  const exported = { first: crashTest({ workflow: a, input: 1 }), second: crashTest({ workflow: b, input: 2 }) };
  expect(chooseTests(exported, { ...choice, name: "second" })).toMatchObject([{ workflow: b }]);
  expect(chooseTests(exported, { ...choice, name: "a" })).toMatchObject([{ name: "first" }]);
  expect(() => chooseTests(exported, { ...choice, name: "c" })).toThrow(
    'w.ts has no "c" to test. It has: first, second.',
  );
});

it("says what to do where nothing, or no one thing, is meant", () => {
  expect(() => chooseTests({}, choice)).toThrow(/exports neither a crash test nor a workflow. Export one:/);
  expect(() => chooseTests({ a, b }, choice)).toThrow(
    /several to test \(a, b\), and each needs an input of its own. Name one/,
  );
  const two = { x: crashTest({ workflow: a, input: 1 }), y: crashTest({ workflow: b, input: 2 }) };
  expect(() => chooseTests(two, { ...choice, input: { value: 1 } })).toThrow(/--input is for one of them/);
});
