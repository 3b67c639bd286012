import { agent } from "pawl/agent";
import { guide, newSession } from "./guide.ts";
import { chosenModel } from "./model.ts";
import { tools } from "./tools.ts";

/** Plans four steps and works through them. */
export const planner = agent({
  name: "planner",
  model: chosenModel(),
  tools,
  session: newSession,
  prompt: ({ topic }: { readonly topic: string }) => guide.bind({ topic }),
});
