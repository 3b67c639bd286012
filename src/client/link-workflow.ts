import { PawlError } from "../base/errors.ts";
import { LINK_WORKFLOW } from "../core/own-workflows.ts";
import { type Workflow, workflow } from "../core/workflow.ts";

/** What is kept of a link: everything but its token. */
export interface KeptLink {
  readonly approval: string;
  readonly run: string;
  /** Of the action that it was made for. */
  readonly hash: string;
  /** Who decides with it: a person, or a role whose members sign in. */
  readonly for: string;
  /** What the person is. */
  readonly roles: readonly string[];
  /** Whether whoever opens it must say who they are. */
  readonly signIn: boolean;
  /** Store time. */
  readonly expiresAt: number;
  /** Who made it; `null` for a notification. */
  readonly by: string | null;
}

/** The signal that ends a link which has been used. Nobody else may send it: it begins as the engine's own do. */
export const LINK_USED = "pawl.link";

/** Keeps a link until it is used or expires; one that is cancelled is revoked. Every worker has it. */
export const linkWorkflow: Workflow<KeptLink, "used" | "expired"> = workflow(
  { name: LINK_WORKFLOW, version: "1.0.0" },
  (ctx, link: KeptLink) =>
    ctx.waitFor<"used", "expired">(LINK_USED, {
      timeout: Math.max(1, link.expiresAt - ctx.now()),
      default: "expired",
    }),
);

/** Only `pawl.links` makes such a run: any other would be a link that nobody has given out. */
export function assertNoLink(target: Workflow | string): void {
  const name = typeof target === "string" ? target : target?.name;
  if (name !== LINK_WORKFLOW || target === (linkWorkflow as unknown)) return;
  throw new PawlError("invalid_argument", "A link is no workflow. Use pawl.links.create(approval, options).");
}
