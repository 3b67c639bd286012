// What the agent may do. The class of a tool says what it may change, and its guard what happens if a crash interrupts it.
import { tool } from "pawl/agent";
import { z } from "zod";
import { library, press } from "../fakes.ts";
import { findings } from "./guide.ts";

const topic = z.string();

const search = tool({
  name: "search",
  description: "Searches one source for a topic.",
  class: "read",
  input: z.object({ source: z.enum(["archive", "journal"]), topic }),
  output: findings,
  run: ({ source, topic: about }, { key }) => library.search(source, about, key),
});

/** Written again, it is the same page. */
const writePage = tool({
  name: "write_page",
  description: "Writes the page of a topic.",
  class: "write",
  idempotent: true,
  input: z.object({ topic, text: z.string() }),
  run: ({ topic: about, text }, { key }) => press.write(about, text, key),
});

const checkPage = tool({
  name: "check_page",
  description: "Has the page of a topic proof-read.",
  class: "read",
  input: z.object({ topic }),
  run: ({ topic: about }, { key }) => press.check(about, key),
});

/** Published twice, it would be there twice: after a crash it is looked for. */
const publish = tool({
  name: "publish",
  description: "Publishes the page of a topic.",
  class: "execute",
  input: z.object({ topic }),
  run: ({ topic: about }, { key }) => press.publish(about, key),
  detect: (_, { key }) => press.published(key),
});

export const tools = [search, writePage, checkPage, publish];
