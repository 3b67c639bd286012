import { plan } from "./plan.ts";
import { planText } from "./plan-text.ts";
import { NO_EARLIER_FILES } from "./planning-guidance.ts";
import { type Section, section } from "./section.ts";
import type { Slice } from "./slice.ts";

/** Tells the model how far its plan is. A restored session needs nothing else: what it holds is what is shown. */
export function progressSection(): Section<unknown> {
  return section({
    title: "Progress",
    key: "progress",
    body: (_params, session) => {
      const current = session.query(plan).latest();
      if (current === null) return "Nothing is done yet. Begin by making a plan.";
      const isUnderWay = current.steps.some(({ status }) => status !== "pending");
      return isUnderWay ? `${planText(current)}\n\n${NO_EARLIER_FILES}` : planText(current);
    },
  });
}

export interface ResultsSectionOptions<T> {
  /** Its heading: one line. */
  readonly title: string;
  /** Unlike that of any other section of its prompt. */
  readonly key: string;
  /** Where the results are: the `output` of a tool. */
  readonly slice: Slice<T>;
  /** What is said of one. */
  readonly line: (item: T) => string;
}

/** Lists what a slice holds, so that the model sees after an interruption what it has found before. */
export function resultsSection<T>({ title, key, slice, line }: ResultsSectionOptions<T>): Section<unknown> {
  return section({
    title,
    key,
    body: (_params, session) => {
      const items = session.query(slice).all();
      return items.length === 0 ? "None yet." : items.map((item) => `- ${line(item)}`).join("\n");
    },
  });
}
