// Links in notifications
// Made anew for each notifier and attempt, inside the step that sends: the token of a link is recorded nowhere, and one that was made for an attempt
// that failed is of no use to anybody and expires with the approval.
import { hasCode, PawlError } from "../base/errors.ts";
import { shownUrl } from "../base/shown-url.ts";
import type { ApprovalNotification, NotificationLink } from "../core/notification.ts";
import type { ApprovalLinks } from "./approval-links.ts";
import type { Complete } from "./notify-workflow.ts";

/** The page of a link, below the address at which people reach the server. */
export function linkUrl(publicUrl: string, token: string): string {
  return `${publicUrl.replace(/\/+$/, "")}/approve/${token}`;
}

/** Adds links to what is told of an approval, if people can reach a server. */
export function withLinks(publicUrl: string | undefined, links: () => ApprovalLinks): Complete {
  if (publicUrl === undefined) return async (notification) => notification;
  assertPublicUrl(publicUrl);
  return async (notification) => {
    if (!("approval" in notification)) return notification;
    const made = await Promise.all(notification.to.map((to) => linkFor(links(), notification, to, publicUrl)));
    return { ...notification, links: made.filter((link) => link !== null) };
  };
}

/** `null` for those who are told and may not decide, and where there is nothing left to decide. */
async function linkFor(
  links: ApprovalLinks,
  { approval }: ApprovalNotification,
  to: string,
  publicUrl: string,
): Promise<NotificationLink | null> {
  try {
    const { token } = await links.create(approval, { for: to });
    return { for: to, url: linkUrl(publicUrl, token) };
  } catch (error) {
    if (hasCode(error, "approval_mismatch") || hasCode(error, "link_refused")) return null;
    throw error;
  }
}

/** What people are sent must lead to the server. */
export function assertPublicUrl(url: unknown): asserts url is string {
  const parsed = typeof url === "string" && URL.canParse(url) ? new URL(url) : null;
  const isPlain = parsed !== null && parsed.search === "" && parsed.hash === "" && parsed.username === "";
  if (isPlain && /^https?:$/.test(parsed.protocol)) return;
  throw new PawlError(
    "invalid_argument",
    `\`publicUrl\` is ${typeof url === "string" ? shownUrl(url) : String(url)}. Give the address at which people reach the server, such as "https://pawl.example".`,
    { fields: { field: "publicUrl" } },
  );
}
