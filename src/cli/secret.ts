import type { PawlOptions } from "../client/pawl.ts";

/** Where people reach the server, from `PAWL_PUBLIC_URL`: notifications of approvals then have links to decide with. */
export function publicUrlOption(): Pick<PawlOptions, "publicUrl"> {
  const { PAWL_PUBLIC_URL } = process.env;
  return PAWL_PUBLIC_URL === undefined || PAWL_PUBLIC_URL === "" ? {} : { publicUrl: PAWL_PUBLIC_URL };
}

/** What tokens of callbacks are made with, from `PAWL_SECRET`: the one for new ones first, those it has replaced behind it, with commas between. */
export function secretOption(): Pick<PawlOptions, "secret"> {
  const { PAWL_SECRET } = process.env;
  if (PAWL_SECRET === undefined || PAWL_SECRET === "") return {};
  return { secret: PAWL_SECRET.split(",").map((secret) => secret.trim()) };
}
