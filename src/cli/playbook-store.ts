import { shownUrl } from "../base/shown-url.ts";
import type { Phrases } from "./playbook-answer.ts";

/** Playbooks are worked on by whoever reads their documents: by default, each run is a file. */
const PLAYBOOK_STORE = "file:.pawl/playbooks";

export const PLAYBOOK_STORE_HELP: string = `the store: file:dir, a file, postgres://… (default: PAWL_STORE, else ${PLAYBOOK_STORE})`;

/** The store of playbooks: --store, else PAWL_STORE, else a directory of documents. */
export function playbookStore(option: string | undefined): string {
  const { PAWL_STORE } = process.env;
  return option ?? (PAWL_STORE === undefined || PAWL_STORE === "" ? PLAYBOOK_STORE : PAWL_STORE);
}

/** For commands that find the store of playbooks by themselves. */
export function playbookStoreFlag(url: string): string {
  return url === playbookStore(undefined) ? "" : ` --store ${shownUrl(url)}`;
}

/** What people do in a shell. */
export function peoplesPhrases(url: string): Pick<Phrases, "approve" | "resolve"> {
  const { PAWL_STORE } = process.env;
  const flag = url === PAWL_STORE ? "" : ` --store ${shownUrl(url)}`;
  return {
    approve: (id) => `pawl approve ${id} --by NAME${flag} (or pawl deny)`,
    resolve: (run, choices) => `pawl resolve ${run} ${choices.length === 0 ? "CHOICE" : choices.join("|")}${flag}`,
  };
}
