import { expect, it } from "vitest";
import { ROLES, type Role } from "../../src/server/credentials.ts";
import { isWrite, type Route } from "../../src/server/route.ts";
import { ALL_ROUTES } from "../../src/server/routes/all.ts";
import { dumpOf, keyOf, plant, requestOf, SAMPLE_WORKFLOWS } from "./samples.ts";
import { type Person, serverWorld, type World } from "./world.ts";

const ACCESS = [...ROLES, "public", "own"];

/** What a role may use besides what it is named after. */
const MAY: Readonly<Record<Role, readonly string[]>> = {
  viewer: ["viewer"],
  operator: ["viewer", "operator"],
  approver: ["viewer", "approver"],
  admin: ["viewer", "operator", "approver", "admin"],
};

async function planted() {
  const world = await serverWorld({
    engine: { workflows: SAMPLE_WORKFLOWS },
    others: ["acme"],
    workflows: SAMPLE_WORKFLOWS,
  });
  const ids = await plant(world.pawl);
  return { world, ids };
}

async function statusOf({ ask }: World, route: Route, as: Person, ids: Parameters<typeof requestOf>[1]) {
  const { what, body } = requestOf(route, ids);
  const response = await ask(what, { as, ...(body !== undefined && { body }) });
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  if (isStream) await response.body?.cancel();
  return { status: response.status, text: isStream ? "" : await response.text() };
}

it("Q3 every route has a rule, and a line of its own", () => {
  expect(ALL_ROUTES.filter(({ spec }) => !ACCESS.includes(spec.role)).map(keyOf)).toEqual([]);
  expect(new Set(ALL_ROUTES.map(keyOf)).size).toBe(ALL_ROUTES.length);
  // What changes something is for those who may act; only what signs in, out, or proves itself is not.
  const writes = ALL_ROUTES.filter((route) => isWrite(route) && ["public", "viewer"].includes(route.spec.role));
  expect(writes.map(keyOf).sort()).toEqual(["DELETE /api/session", "POST /api/session"]);
});

it("Q3 each route is for those who have its role, and for nobody else; refused, it changes nothing", async () => {
  const { world, ids } = await planted();
  const people: readonly (Role | "nobody")[] = ["nobody", ...ROLES];
  for (const route of ALL_ROUTES) {
    const { role } = route.spec;
    if (role === "public" || role === "own") continue;
    for (const person of people) {
      const isAllowed = person !== "nobody" && MAY[person].includes(role);
      const before = isAllowed || !isWrite(route) ? null : await dumpOf(world.pawl);
      const { status, text } = await statusOf(world, route, person, ids);
      const what = `${keyOf(route)} as ${person}: ${status} ${text.slice(0, 300)}`;
      if (person === "nobody") expect(status, what).toBe(401);
      else if (!isAllowed) expect(status, what).toBe(403);
      else expect([200, 201, 202, 404, 409], what).toContain(status);
      if (before !== null) expect(await dumpOf(world.pawl), what).toEqual(before);
    }
    await world.pawl.idle();
  }
});

it("Q4 I24 what belongs to another store is not there, and nothing of it changes", async () => {
  const { world, ids } = await planted();
  const before = await dumpOf(world.pawl);
  for (const route of ALL_ROUTES) {
    const { path, role } = route.spec;
    if (role === "public" || role === "own") continue;
    const { status, text } = await statusOf(world, route, "admin@acme", ids);
    const what = `${keyOf(route)}: ${status} ${text.slice(0, 200)}`;
    const isAbout = /:(id|a|b)\b/.test(path) || (path.includes(":name") && route.spec.method !== "PUT");
    if (isAbout) expect(status, what).toBe(404);
    // Their own log has what they have tried.
    else if (path !== "/api/audit") for (const id of Object.values(ids)) expect(text, what).not.toContain(id);
  }
  // Ids in filters and cursors lead nowhere else either.
  for (const query of [`parent=${ids.waiting}`, "tag=vip", "workflow=order"])
    expect(await world.json(`GET /api/runs?${query}`, { as: "admin@acme" }), query).toMatchObject({
      runs: expect.not.arrayContaining([expect.objectContaining({ id: ids.waiting })]),
    });
  expect((await world.ask(`GET /api/runs?cursor=${ids.blocked}`, { as: "admin@acme" })).status).toBe(404);
  expect(await world.json(`GET /api/approvals?run=${ids.asking}`, { as: "admin@acme" })).toMatchObject({
    approvals: [],
  });
  // Other stores are named by credentials alone.
  for (const headers of [{ "x-pawl-store": "default" }, { "x-tenant": "default" }])
    expect((await world.ask(`GET /api/runs/${ids.waiting}`, { as: "admin@acme", headers })).status).toBe(404);
  expect((await world.ask("GET /api/runs?store=default", { as: "admin@acme" })).status).toBe(400);
  expect(await dumpOf(world.pawl)).toEqual(before);
});
