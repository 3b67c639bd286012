// Links to approvals
// Making and revoking them is for operators; the pages are for whoever has a link. A look decides nothing, by whatever method and however often: only
// the post of the page's own form does (B54).
import { PawlError } from "../../base/errors.ts";
import type { OpenedLink, Person } from "../../client/approval-links.ts";
import { linkUrl } from "../../client/notification-links.ts";
import type { Pawl } from "../../client/pawl.ts";
import { VOTES } from "../../core/approval.ts";
import { DONE } from "../answers.ts";
import { isAllowed, type Who } from "../credentials.ts";
import { forbidden, notFound } from "../failure.ts";
import { isNonce, newNonce } from "../form-nonce.ts";
import { decidedPage, decisionPage, isRefusal, LINK_STYLE, refusedPage, signInPage } from "../link-page.ts";
import { type Call, type Route, route } from "../route.ts";
import { cookieName, cookieText } from "../session-cookie.ts";
import { flag, listOf, moment, nullable, object, oneOf, optional, type Shape, text } from "../shape.ts";

/** A field of a form that may stay empty. */
function note(description: string, maxLength: number): Shape<string> {
  return { schema: { type: "string", description, maxLength }, isOptional: false };
}

const LINK: Shape = object("A link to an approval, without its token.", {
  id: text("Its id."),
  approval: text("The approval that it is for."),
  run: text("The run that asks."),
  hash: text("Of the action that it was made for."),
  for: text("Who decides with it."),
  roles: listOf("What they are.", text("A role.")),
  signIn: flag("Whether they must sign in."),
  expiresAt: moment("Until when it may be used."),
  by: nullable(text("Who made it.")),
  status: oneOf("Whether it is of use.", ["open", "used", "expired", "revoked"]),
});

export const linkRoutes: readonly Route[] = [
  route(
    {
      method: "POST",
      path: "/api/approvals/:id/links",
      role: "operator",
      summary: "Makes a link with which one person, or the members of one role, may decide about an approval.",
      body: {
        for: text('Who decides with it: "ann", or "role:physician", whose members sign in.'),
        roles: optional(listOf("What the person is.", text("A role."), { max: 20 })),
        expires: optional(text('How long it may be used, such as "2 hours".')),
        signIn: optional(flag("Whether they must sign in. Only admins may make links that do without.")),
      },
      status: 201,
      answer: object("A link that was made. Nobody can read its address again.", {
        id: text("Its id."),
        url: text("Its page."),
        expiresAt: moment("Until when it may be used."),
      }),
    },
    async ({ pawl, params, body, who, server, url }) => {
      const signIn = signInFor(who, body.signIn);
      const { id, token, expiresAt } = await pawl.links.create(params.id, { ...body, signIn, by: who.name });
      return { id, url: linkUrl(server.publicUrl ?? url.origin, token), expiresAt };
    },
  ),
  route(
    {
      method: "GET",
      path: "/api/approvals/:id/links",
      role: "operator",
      summary: "Lists the links of an approval, without their tokens.",
      answer: object("Newest first.", { links: listOf("Those that are kept.", LINK) }),
    },
    async ({ pawl, params }) => ({ links: await pawl.links.list(params.id) }),
  ),
  route(
    {
      method: "DELETE",
      path: "/api/approvals/:id/links/:link",
      role: "operator",
      summary: "Revokes a link.",
      answer: DONE,
    },
    async ({ pawl, params, who }) => {
      const links = await pawl.links.list(params.id);
      if (!links.some(({ id }) => id === params.link)) throw notFound("such link of this approval");
      await pawl.links.revoke(params.link, `Revoked by ${who.name}.`);
      return { ok: true };
    },
  ),
  route(
    {
      method: "GET",
      path: "/approve/:token",
      role: "own",
      summary: "Shows what a link is for. Decides nothing.",
      answers: "text/html",
    },
    (call) => orRefusal(() => look(call)),
  ),
  route(
    {
      method: "POST",
      path: "/approve/:token",
      role: "own",
      summary: "Decides, by the form of the page.",
      reads: "form",
      body: {
        nonce: text("Of the page's form."),
        hash: optional(text("Of the action that the page showed.")),
        decision: optional(oneOf("What was decided.", VOTES)),
        reason: optional(note("Why.", 1000)),
        accessToken: optional(text("Of whoever signs in.")),
      },
      answers: "text/html",
    },
    (call) => orRefusal(() => (call.body.accessToken === undefined ? decide(call) : signIn(call))),
  ),
  route(
    {
      method: "GET",
      path: "/approve.css",
      role: "public",
      summary: "The style of the pages of links.",
      answers: "text/plain",
    },
    () =>
      new Response(LINK_STYLE, {
        headers: { "content-type": "text/css; charset=utf-8", "cache-control": "max-age=3600" },
      }),
  ),
];

/** A link that does without speaks for its person, whoever holds it. So operators, who hold what they make, can only make others. */
function signInFor(who: Who, asked: boolean | undefined): boolean {
  if (asked !== false) return true;
  if (isAllowed(who, "admin")) return false;
  throw forbidden("Only admins may make links without sign-in: whoever has one decides as somebody else.", {
    field: "signIn",
  });
}

type LinkCall = Call<{ readonly token: string }>;

interface FormCall extends LinkCall {
  readonly body: {
    readonly nonce: string;
    readonly hash?: string;
    readonly decision?: (typeof VOTES)[number];
    readonly reason?: string;
    readonly accessToken?: string;
  };
}

/** Which store has the link: its token is the credential, and leads to no other. */
async function openLink({
  params,
  who,
  server,
}: LinkCall): Promise<{ pawl: Pawl; person: Person | null; opened: OpenedLink }> {
  const { token } = params;
  let unknown: unknown = null;
  for (const [store, pawl] of server.tenants) {
    const person = who?.store === store ? { name: who.name, roles: who.groups } : null;
    try {
      return { pawl, person, opened: await pawl.links.open(token, person) };
    } catch (error) {
      if (!isReason(error, "unknown")) throw error;
      unknown = error;
    }
  }
  throw unknown;
}

function isReason(error: unknown, reason: string): boolean {
  return error instanceof PawlError && error.code === "link_refused" && error.fields["reason"] === reason;
}

async function orRefusal(work: () => Promise<Response>): Promise<Response> {
  try {
    return await work();
  } catch (error) {
    if (isRefusal(error)) return refusedPage(error);
    throw error;
  }
}

async function look(call: LinkCall): Promise<Response> {
  const { token } = call.params;
  try {
    const { opened } = await openLink(call);
    return decisionPage(opened, newNonce({ token, hash: opened.link.hash, user: opened.by }));
  } catch (error) {
    if (!isReason(error, "sign_in")) throw error;
    return signInPage(newNonce({ token, hash: "", user: "" }));
  }
}

/** A session as for any other page of the server; then the link is looked at again. */
async function signIn({ params, body, server, headers }: FormCall): Promise<Response> {
  const { token } = params;
  if (!isNonce(body.nonce, { token, hash: "", user: "" })) throw foreignForm();
  const who = server.credentials.find(body.accessToken ?? "");
  if (who === null) return signInPage(newNonce({ token, hash: "", user: "" }), "This token is not known here.");
  const { id } = server.sessions.create(who);
  const isSecure = server.publicUrl?.startsWith("https:") === true;
  const cookie = cookieText(cookieName(headers.get("host") ?? undefined), id, isSecure);
  return new Response(null, { status: 303, headers: { location: `/approve/${token}`, "set-cookie": cookie } });
}

async function decide(call: FormCall): Promise<Response> {
  const { params, body, headers, from } = call;
  const { token } = params;
  const { pawl, person, opened } = await openLink(call);
  const { hash } = opened.link;
  if (!isNonce(body.nonce, { token, hash, user: opened.by })) throw foreignForm();
  const { decision, reason = "" } = body;
  if (decision === undefined) throw new PawlError("invalid_argument", "Choose one of the buttons of the page.");
  if (decision === "changes_requested" && reason.trim() === "")
    throw new PawlError("invalid_argument", "Say which changes are needed: go back and give a reason.");
  const receipt = await pawl.links.decide(
    token,
    {
      decision,
      ...(reason.trim() !== "" && { reason }),
      ...(body.hash !== undefined && { hash: body.hash }),
      from: placeOf(from, headers),
    },
    person,
  );
  return decidedPage(receipt, opened.by);
}

const AGENT_LENGTH = 200;

/** Where somebody is: the address, and what the browser says about itself. */
export function placeOf(from: string, headers: Headers): string {
  const agent = headers.get("user-agent") ?? "";
  return agent === "" ? from : `${from}, ${agent.slice(0, AGENT_LENGTH)}`;
}

function foreignForm(): PawlError {
  return forbidden(
    "This form was not made by the page of this link, or the page has changed since. Open the link again and look.",
    {
      field: "nonce",
    },
  );
}
