import { join } from "node:path";
import { phases } from "pawl";
import { comment, createIfAbsent, gitCommit, notifyOnce, repeatable, writeFile } from "pawl/guards";
import { type BugInfo, type Candidate, developer, jobs, postOffice, reviews, tracker } from "../fakes.ts";

export interface Bug {
  readonly jira_key: string;
  /** The working tree of the application. */
  readonly repository: string;
}

interface Outputs {
  readonly phase_1: BugInfo;
  readonly phase_4: Readonly<Record<"step_4_1" | "step_4_2" | "step_4_3", Candidate>>;
  readonly phase_5: { readonly commit: { readonly commit: string } };
}

const FIX = "fix.patch";

const candidate = (name: string, output: string, idea: string) => ({
  name,
  output,
  kind: "model" as const,
  run: ({ outputs, key }: { outputs: Outputs; key: string }) => developer.propose(outputs.phase_1, idea, key),
});

const best = ({ phase_4 }: Outputs): Candidate => Object.values(phase_4).reduce((a, b) => (b.score > a.score ? b : a));

export const bugfix = phases<Bug, Outputs>({ name: "bug-e2e", version: "1.3.0", correlation: "jira_key" }, [
  {
    name: "phase_1",
    kind: "api",
    output: "bug_info.json",
    run: ({ input, key }) => tracker.read(input.jira_key, key),
  },
  {
    name: "phase_2",
    when: ({ outputs }) => !outputs.phase_1.isReproducible,
    run: ({ input, key }) => developer.reproduce(input.jira_key, key),
  },
  {
    name: "phase_3",
    when: ({ outputs }) => outputs.phase_1.team !== "app",
    run: ({ outputs, key }) => tracker.route(outputs.phase_1.issue, outputs.phase_1.team, key),
  },
  {
    name: "phase_4",
    steps: [
      candidate("step_4_1", "candidate_a.json", "the smallest change"),
      candidate("step_4_2", "candidate_b.json", "the root cause"),
      candidate("step_4_3", "candidate_c.json", "a guard at the border"),
    ],
  },
  {
    name: "phase_5",
    steps: [
      { name: "apply", effect: ({ input, outputs }) => writeFile(join(input.repository, FIX), best(outputs).patch) },
      {
        name: "commit",
        effect: ({ input, outputs }) =>
          gitCommit({
            cwd: input.repository,
            message: `${input.jira_key}: ${outputs.phase_1.title}`,
            paths: [FIX],
          }),
      },
    ],
  },
  {
    name: "phase_6",
    effect: ({ input }) => repeatable(() => reviews.addReviewer(input.jira_key, "ada")),
  },
  {
    name: "phase_7",
    steps: [
      {
        name: "comment",
        effect: ({ input, outputs }) =>
          comment({
            list: () => tracker.comments(input.jira_key),
            post: (text) => tracker.comment(input.jira_key, text),
            text: `Fixed with ${best(outputs).idea}; ada looks at it.`,
          }),
      },
      {
        name: "follow_up",
        effect: ({ input }) =>
          createIfAbsent({
            find: () => jobs.find(`follow-up ${input.jira_key}`),
            create: () => jobs.create(`follow-up ${input.jira_key}`, "in 7 days"),
          }),
      },
      {
        name: "mail",
        effect: ({ input, outputs }) =>
          notifyOnce({
            sent: (key) => postOffice.sent(key),
            send: (key) => postOffice.send(input.jira_key, `Your bug "${outputs.phase_1.title}" has a fix.`, key),
          }),
      },
    ],
  },
]);
