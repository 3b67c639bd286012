// Compiled by `npm run types`, never run: the types of slices, events, reducers and prompts flow without an annotation and without `any`.
import {
  append,
  type BoundPrompt,
  eventType,
  type Plan,
  type Prompt,
  parseOutput,
  plan,
  progressSection,
  prompt,
  type Session,
  type SessionEvent,
  type Slice,
  section,
  slice,
  upsertingBy,
  when,
} from "pawl/agent";
import { z } from "zod";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function expectType<_T extends true>(): void {}

interface Finding {
  readonly path: string;
  readonly score: number;
}

const findings = slice<Finding>("findings");
const parsed = slice("parsed", { schema: z.object({ path: z.string(), at: z.date() }) });
expectType<Equal<typeof findings, Slice<Finding>>>();
expectType<Equal<typeof parsed, Slice<{ path: string; at: Date }>>>();

const Found = eventType<Finding>("Found");
const Ended = eventType("Ended");
const FoundBug = eventType<Finding & { readonly bug: string }>("FoundBug", { extends: Found });
const count = slice<{ n: number }>("count", {
  initial: () => [{ n: 0 }],
  on: [when(Found, ({ n }, { score }) => ({ n: n + score }))],
});

export function sessions(session: Session, event: SessionEvent): void {
  expectType<Equal<ReturnType<ReturnType<typeof session.query<Plan>>["latest"]>, Plan | null>>();
  const newest = session.query(parsed).latest();
  expectType<Equal<typeof newest, { path: string; at: Date } | null>>();
  const steps = session.query(plan).latest()?.steps ?? [];
  expectType<Equal<(typeof steps)[number]["status"], "pending" | "in_progress" | "done">>();
  session.dispatch(Ended());
  session.add(findings, { path: "a", score: 1 });
  // @ts-expect-error an item is checked
  session.add(findings, { path: "a" });
  // @ts-expect-error and so is the payload of an event
  Found({ path: "a", score: "1" });
  session.on(findings, Found, (items, { payload }) => {
    expectType<Equal<typeof items, readonly Finding[]>>();
    expectType<Equal<typeof payload, Finding>>();
    return append(payload);
  });
  session.on(
    findings,
    findings.added,
    upsertingBy(({ path }) => path),
  );
  // @ts-expect-error a reducer gives items of its slice
  session.on(findings, Found, () => append("a"));
  if (FoundBug.is(event)) expectType<Equal<typeof event.payload.bug, string>>();
  session.register(count);
  // @ts-expect-error a slice of other items cannot stand in
  const wrong: Slice<string> = findings;
  session.register(wrong);
}

const review = prompt({
  namespace: "code",
  key: "review",
  output: z.object({ score: z.number() }),
  sections: [
    section({ title: "Task", key: "task", body: ({ path }: { readonly path: string }) => `Review ${path}.` }),
    section({ title: "Depth", key: "depth", body: "Go $levels deep." }),
    progressSection(),
  ],
});
expectType<Equal<typeof review, Prompt<{ readonly path: string }, { score: number }>>>();

const stated = prompt({
  namespace: "code",
  key: "stated",
  params: z.object({ path: z.string() }),
  sections: [section({ title: "Task", key: "task", body: "Review $path." })],
});
expectType<Equal<typeof stated, Prompt<{ path: string }, string>>>();

export async function prompts(): Promise<void> {
  const bound = review.bind({ path: "a.ts" });
  expectType<Equal<typeof bound, BoundPrompt<{ score: number }>>>();
  const output = await parseOutput(bound, "{}");
  expectType<Equal<typeof output, { score: number }>>();
  const text = await parseOutput(stated.bind({ path: "a" }), "{}");
  expectType<Equal<typeof text, string>>();
  // @ts-expect-error parameters are checked
  review.bind({ file: "a.ts" });
  // @ts-expect-error there is no parameter for work that was interrupted
  progressSection({ resumed: true });
}
