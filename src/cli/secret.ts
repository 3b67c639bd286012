import type { PawlOptions } from "../client/pawl.ts";

/** What tokens of callbacks are made with, from `PAWL_SECRET`: the one for new ones first, those it has replaced behind it, with commas between. */
export function secretOption(): Pick<PawlOptions, "secret"> {
  const { PAWL_SECRET } = process.env;
  if (PAWL_SECRET === undefined || PAWL_SECRET === "") return {};
  return { secret: PAWL_SECRET.split(",").map((secret) => secret.trim()) };
}
