import { workflow } from "pawl";
import { analyst, library, mailer } from "../fakes.ts";

const SOURCES = ["journals", "patents", "interviews", "press"];

export const report = workflow("report", async (ctx, { topic, to }: { topic: string; to: string }) => {
  const findings = await Promise.all(
    SOURCES.map((source) => ctx.step(`search ${source}`, ({ key }) => library.search(source, topic, key))),
  );
  const draft = await ctx.step("analyse", ({ key }) => analyst.summarise(topic, findings, key), { kind: "model" });
  ctx.set("draft", draft);

  const review = await ctx.waitFor<{ by: string; ok: boolean }>("review", { timeout: "7 days" });
  if (!review.ok) return { delivered: false, by: review.by };

  await ctx.step("deliver", ({ key }) => mailer.send(to, `${draft.title}, reviewed by ${review.by}`, key));
  return { delivered: true, by: review.by, sources: draft.sources };
});
