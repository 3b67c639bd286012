// Links to approvals
// Making and revoking them is for operators; the pages are for whoever has a link. A look decides nothing, by whatever method and however often: only
// the post of the page's own form does (B54).
import { PawlError } from "../../base/errors.ts";
import type { LinkDecision, OpenedLink, Person } from "../../client/approval-links.ts";
import { audited, type Deed, recordRefusal } from "../../client/audited.ts";
import { linkUrl } from "../../client/notification-links.ts";
import type { Pawl } from "../../client/pawl.ts";
import { VOTES } from "../../core/approval.ts";
import { DONE } from "../answers.ts";
import { placeOf, signedIn } from "../audits.ts";
import { isAllowed, OWN_STORE, type Who } from "../credentials.ts";
import { forbidden, notFound, unauthenticated } from "../failure.ts";
import { isNonce, newNonce } from "../form-nonce.ts";
import { decidedPage, decisionPage, isRefusal, LINK_STYLE, refusedPage, signInPage } from "../link-page.ts";
import { NOBODY } from "../refusals.ts";
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
    async ({ pawl, params }) => {
      const { id } = await pawl.approvals.get(params.id);
      return { links: await pawl.links.list(id) };
    },
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
];

/** Pages for people: no part of the API. */
export const linkPages: readonly Route[] = [
  route(
    {
      method: "GET",
      path: "/approve/:token",
      role: "own",
      summary: "Shows what a link is for. Decides nothing.",
      answers: "text/html",
    },
    look,
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
    (call) => (call.body.accessToken === undefined ? decide(call) : signIn(call)),
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

type FoundLink =
  | { readonly pawl: Pawl; readonly person: Person | null; readonly opened: OpenedLink }
  | { readonly pawl: Pawl | null; readonly refusal: PawlError };

/** Which store has the link: its token is the credential, and leads to no other. */
async function findLink({ params, who, server }: LinkCall): Promise<FoundLink> {
  let refusal = notFound("such link");
  for (const [store, pawl] of server.tenants) {
    const person = who?.store === store ? { name: who.name, roles: who.groups } : null;
    try {
      return { pawl, person, opened: await pawl.links.open(params.token, person) };
    } catch (error) {
      if (!isRefusal(error)) throw error;
      if (error.fields["reason"] !== "unknown") return { pawl, refusal: error };
      refusal = error;
    }
  }
  return { pawl: null, refusal };
}

async function look(call: LinkCall): Promise<Response> {
  const { token } = call.params;
  const found = await findLink(call);
  if ("opened" in found)
    return decisionPage(found.opened, newNonce({ token, hash: found.opened.link.hash, user: found.opened.by }));
  if (found.refusal.fields["reason"] === "sign_in") return signInPage(newNonce({ token, hash: "", user: "" }));
  return refusedPage(found.refusal);
}

/** A session as for any other page of the server; then the link is looked at again. */
async function signIn(call: FormCall): Promise<Response> {
  const { params, body, server, headers } = call;
  const { token } = params;
  if (!isNonce(body.nonce, { token, hash: "", user: "" })) return refused(call, null, foreignForm());
  const who = server.credentials.find(body.accessToken ?? "");
  if (who === null) {
    await refused(call, null, unauthenticated("Somebody has tried to sign in with a token that is not known."));
    return signInPage(newNonce({ token, hash: "", user: "" }), "This token is not known here.");
  }
  const { id } = await signedIn(call, who);
  const isSecure = server.publicUrl?.startsWith("https:") === true;
  const cookie = cookieText(cookieName(headers.get("host") ?? undefined), id, isSecure);
  return new Response(null, { status: 303, headers: { location: `/approve/${token}`, "set-cookie": cookie } });
}

async function decide(call: FormCall): Promise<Response> {
  const { params, body, headers, from, server } = call;
  const { token } = params;
  const found = await findLink(call);
  if ("refusal" in found) return refused(call, found.pawl, found.refusal);
  const { pawl, person, opened } = found;
  const { link, by } = opened;
  if (!isNonce(body.nonce, { token, hash: link.hash, user: by })) return refused(call, pawl, foreignForm());
  const place = placeOf(from, headers);
  const deed: Deed = {
    who: by,
    action: ACTION,
    subject: link.approval,
    from: place,
    payload: link.hash,
    detail: { run: link.run, link: link.id, for: link.for, decision: body.decision ?? null },
  };
  const work = () => pawl.links.decide(token, { ...saidIn(body), from: place }, person);
  try {
    const receipt = await audited(pawl.store, deed, work, (message, error) => server.log.error(message, { error }));
    return decidedPage(receipt, by);
  } catch (error) {
    if (isRefusal(error)) return refusedPage(error);
    throw error;
  }
}

const ACTION = "POST /approve/:token";

/** The page that says why, and a record of the attempt. */
async function refused(call: FormCall, pawl: Pawl | null, error: PawlError): Promise<Response> {
  const { headers, from, server, who } = call;
  const store = (pawl ?? server.tenants.get(OWN_STORE))?.store;
  const { link, approval } = error.fields;
  const subject = typeof approval === "string" ? approval : null;
  const detail = { link: link ?? null };
  const deed = { action: ACTION, subject, from: placeOf(from, headers), payload: null, detail };
  if (store !== undefined && who === null) await server.refusals.add(store, from, deed, error);
  else if (store !== undefined) await recordRefusal(store, { ...deed, who: who?.name ?? NOBODY }, error);
  return refusedPage(error);
}

function saidIn({ decision, reason = "", hash }: FormCall["body"]): LinkDecision {
  if (decision === undefined) throw new PawlError("invalid_argument", "Choose one of the buttons of the page.");
  if (decision === "changes_requested" && reason.trim() === "")
    throw new PawlError("invalid_argument", "Say which changes are needed: go back and give a reason.");
  return { decision, ...(reason.trim() !== "" && { reason }), ...(hash !== undefined && { hash }) };
}

function foreignForm(): PawlError {
  return forbidden(
    "This form was not made by the page of this link, or the page has changed since. Open the link again and look.",
    {
      field: "nonce",
    },
  );
}
