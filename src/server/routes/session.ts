import { DONE } from "../answers.ts";
import { ROLES } from "../credentials.ts";
import { unauthenticated } from "../failure.ts";
import { type Call, type Route, route } from "../route.ts";
import { cookieName, cookieOf, cookieText } from "../session-cookie.ts";
import type { Session } from "../sessions.ts";
import { listOf, nullable, object, oneOf, type Shape, text } from "../shape.ts";

const SESSION: Shape = object("Who has signed in.", {
  user: text("Their name."),
  role: oneOf("The first of their roles.", ROLES),
  roles: listOf("What they may do.", oneOf("A role.", ROLES)),
  store: text("The store that is theirs."),
  csrf: nullable(text("What every request of this session that changes something sends as x-pawl-csrf.")),
});

export const sessionRoutes: readonly Route[] = [
  route(
    {
      method: "POST",
      path: "/api/session",
      role: "public",
      summary: "Signs a browser in with a token, and sets its cookie.",
      body: { token: text("A token of a credential, or a one-time token.") },
      answer: SESSION,
    },
    ({ body, headers, server }) => {
      const who = server.credentials.takeOnce(body.token) ?? server.credentials.find(body.token);
      if (who === null) throw unauthenticated("This token is not known here, or was used before. Ask for another one.");
      const session = server.sessions.create(who);
      const cookie = cookieText(cookieName(headers.get("host") ?? undefined), session.id, isSecure(server));
      return answer(session, cookie);
    },
  ),
  route(
    {
      method: "GET",
      path: "/api/session",
      role: "viewer",
      summary: "Says who has signed in.",
      answer: SESSION,
    },
    ({ who, headers, server }) => {
      const id = idOf({ headers });
      const session = id === null ? null : server.sessions.find(id);
      return factsOf(session ?? { who, csrf: null });
    },
  ),
  route(
    {
      method: "DELETE",
      path: "/api/session",
      role: "viewer",
      summary: "Signs out.",
      answer: DONE,
    },
    ({ headers, server }) => {
      const id = idOf({ headers });
      if (id !== null) server.sessions.end(id);
      const name = cookieName(headers.get("host") ?? undefined);
      return Response.json({ ok: true }, { headers: { "set-cookie": cookieText(name, "", isSecure(server)) } });
    },
  ),
];

function idOf({ headers }: Pick<Call, "headers">): string | null {
  return cookieOf(headers, cookieName(headers.get("host") ?? undefined));
}

function isSecure({ publicUrl }: Call["server"]): boolean {
  return publicUrl?.startsWith("https:") === true;
}

function factsOf({ who, csrf }: Pick<Session, "who"> & { readonly csrf: string | null }): object {
  const { name, roles, store } = who;
  return { user: name, role: roles[0], roles, store, csrf };
}

function answer(session: Session, cookie: string): Response {
  return Response.json(factsOf(session), { headers: { "set-cookie": cookie } });
}
