import { expect, it } from "vitest";
import { editOf, type StateText } from "./run-state.ts";

const NOW: StateText = { run: "r", workflow: "w", version: "1.3.0", entries: 4, input: 1, state: {} };

it("C-23 an edit says what it changes, and what is as it was is no change", () => {
  expect(editOf({}, NOW)).toEqual({});
  expect(editOf({ ...NOW, input: { $date: "1970-01-01T00:00:00.000Z" } }, NOW)).toEqual({
    input: new Date(0),
    state: {},
  });
  expect(editOf({ version: "2.0.0", phases: { a: { status: "done" } } }, NOW)).toEqual({
    version: "2.0.0",
    adopted: { phases: { a: { status: "done" } } },
  });
});

it.each([
  [{ inputs: 1 }, "inputs"],
  [{ state: [] }, "state"],
  [{ version: "2" }, "version"],
  [{ run: "r2" }, "run"],
  [{ workflow: "v" }, "workflow"],
  [{ entries: 99 }, "entries"],
  [{ phases: [] }, "phases"],
  [{ phases: { intake: 1 } }, "phases.intake"],
  [{ phases: { intake: { status: "ready" } } }, "phases.intake.status"],
  [{ phases: { intake: { status: "done", steps: { a: {} } } } }, "phases.intake.steps.a.status"],
  [{ input: { $date: "never" } }, "input"],
  [[], ""],
])("C-23 S0-43 refuses %j with the path of what is wrong", (value, path) => {
  expect(() => editOf(value, NOW)).toThrow(
    expect.objectContaining({ code: "schema_mismatch", fields: { path }, message: expect.stringContaining(path) }),
  );
});
