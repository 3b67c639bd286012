// What the model is told, and where its findings are kept.
import { plan, planningSection, progressSection, prompt, resultsSection, Session, section, slice } from "pawl/agent";

export interface Finding {
  readonly source: string;
  readonly found: number;
}

/** What the searches have found. It is part of every checkpoint. */
export const findings = slice<Finding>("findings");

export const guide = prompt({
  namespace: "examples",
  key: "field-guide",
  sections: [
    section<{ topic: string }>({
      title: "Task",
      key: "task",
      body: "Publish a field guide. Topic: $topic. Gather what two sources know, write the page, have it checked, and publish it.",
    }),
    progressSection(),
    resultsSection({
      title: "Findings",
      key: "findings",
      slice: findings,
      line: ({ source, found }) => `${source}: ${found} entries`,
    }),
    planningSection(),
  ],
});

export const newSession = (facts: { readonly id: string; readonly createdAt: number }): Session =>
  new Session({ id: facts.id, createdAt: facts.createdAt, slices: [plan, findings] });
