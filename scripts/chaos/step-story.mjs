// A journal read as the story of its steps, by their idempotency keys: that is how the ledger knows them.

const idempotencyKey = (run, generation, key) => `${run}${generation === 0 ? "" : `#${generation}`}/${key}`;

/** Of each step: at which position each attempt was marked as started, and its outcomes with the attempt that they belong to. */
export function stepStories(run, journal) {
  const stories = new Map();
  let generation = 0;
  for (const { seq, type, key, payload } of journal) {
    if (type === "run.continued") generation += 1;
    if (!type.startsWith("step.")) continue;
    const id = idempotencyKey(run, generation, key);
    const story = stories.get(id) ?? { marks: new Map(), latest: 0, outcomes: [] };
    stories.set(id, story);
    if (type === "step.started") {
      story.latest = payload?.attempt ?? 1;
      story.marks.set(story.latest, [...(story.marks.get(story.latest) ?? []), seq]);
    } else {
      const isFinal = type === "step.completed" || payload.retryAt === null;
      story.outcomes.push({ seq, type, isFinal, attempt: payload.attempt, latest: story.latest });
    }
  }
  return stories;
}
