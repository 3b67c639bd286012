// Example runs for an empty store, so that every page of the dashboard has something to show.
import type { Pawl } from "../client/pawl.ts";
import { importer, label, order, refund, research } from "./dev-examples.ts";

/** The tag of all runs of the examples. */
export const EXAMPLE_TAG = "example";
const SCHEDULE = "example-morning-order";

/** Nothing was ever started or planned here, as far as it is kept. */
export async function isEmpty(pawl: Pawl): Promise<boolean> {
  const [{ runs }, schedules] = await Promise.all([pawl.list({ limit: 1 }), pawl.schedules()]);
  return runs.length === 0 && schedules.length === 0;
}

/** Examples were put in before, and are still there. */
export async function hasExamples(pawl: Pawl): Promise<boolean> {
  return (await pawl.list({ tag: EXAMPLE_TAG, limit: 1 })).runs.length > 0;
}

/** Starts them; a worker that has the examples has to do the rest. Resolves with how many there are. */
export async function seed(pawl: Pawl): Promise<number> {
  const tags = [EXAMPLE_TAG];
  const started = [
    await pawl.start(order, { order: "1041", cents: 4200 }, { key: "order-1041", tags: [...tags, "customer:ada"] }),
    await pawl.start(label, { order: "1042", cents: 1850 }, { key: "order-1042", tags: [...tags, "customer:grace"] }),
    await pawl.start(refund, { order: "1036", cents: 2990 }, { key: "order-1036", tags: [...tags, "customer:alan"] }),
    await pawl.start(research, { topic: "the weather of the North Sea" }, { tags }),
    await pawl.start(importer, { rows: 24_000 }, { tags }),
  ];
  await pawl.schedule(SCHEDULE, order, { cron: "0 8 * * 1-5", input: { order: "morning", cents: 900 }, tags });
  return started.length;
}
