import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { createClient } from "../../src/server/client.ts";
import type { ApiDocument, Operation } from "../../src/server/openapi.ts";
import { ALL_ROUTES } from "../../src/server/routes/all.ts";
import { type JsonSchema, misfitOf } from "../../src/server/shape.ts";
import { keyOf, plant, SAMPLE_WORKFLOWS, samplesOf } from "./samples.ts";
import { HOST, serverWorld } from "./world.ts";

/** What is wrong with a document by the rules of OpenAPI 3.1 that matter here. */
function faultsOf({ openapi, info, paths, components }: ApiDocument): string[] {
  const faults: string[] = [];
  if (!/^3\.1\.\d+$/.test(openapi)) faults.push("openapi");
  if (info.title === "" || info.version === "") faults.push("info");
  const ids = new Set<string>();
  for (const [path, item] of Object.entries(paths)) {
    if (!path.startsWith("/")) faults.push(path);
    for (const [method, operation] of Object.entries(item)) {
      const where = `${method} ${path}`;
      if (!["get", "put", "post", "delete"].includes(method)) faults.push(where);
      if (ids.has(operation.operationId)) faults.push(`${where}: operationId twice`);
      ids.add(operation.operationId);
      faults.push(...operationFaults(where, path, operation, components));
    }
  }
  return faults;
}

function operationFaults(where: string, path: string, operation: Operation, components: object): string[] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  const declared = operation.parameters.filter((one) => one.in === "path");
  const schemes = (components as { securitySchemes: object }).securitySchemes;
  return [
    ...(JSON.stringify(names) === JSON.stringify(declared.map(({ name }) => name))
      ? []
      : [`${where}: path parameters`]),
    ...(declared.every(({ required }) => required) ? [] : [`${where}: required`]),
    ...(Object.keys(operation.responses).some((status) => /^2\d\d$/.test(status)) ? [] : [`${where}: no answer`]),
    ...Object.entries(operation.responses)
      .filter(([status, { description }]) => !/^[1-5]\d\d$/.test(status) || description === "")
      .map(([status]) => `${where}: ${status}`),
    ...operation.security.flatMap((one) => Object.keys(one).filter((name) => !(name in schemes))),
    ...(operation.summary.endsWith(".") ? [] : [`${where}: summary`]),
  ];
}

it("S2-66 the document is valid, has every route with its role, and the client's type has the same routes", async () => {
  const { json } = await serverWorld();
  const document = await json<ApiDocument>("GET /api/openapi.json", { as: "viewer" });
  expect(faultsOf(document)).toEqual([]);
  const listed = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(
      ([method, operation]) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ":$1")} ${operation["x-role"]}`,
    ),
  );
  expect(listed.sort()).toEqual(ALL_ROUTES.map((route) => `${keyOf(route)} ${route.spec.role}`).sort());
  const typed = readFileSync(new URL("../../src/server/api.ts", import.meta.url), "utf8").match(
    /^ {2}"[A-Z]+ \/[^"]*"/gm,
  );
  expect(typed?.map((line) => line.trim().replaceAll('"', "")).sort()).toEqual(ALL_ROUTES.map(keyOf).sort());
  const reference = readFileSync(new URL("../../docs/reference/http-api.md", import.meta.url), "utf8");
  const missing = ALL_ROUTES.filter(
    ({ spec }) => !reference.includes(`| \`${spec.method} ${spec.path}\` | ${spec.role} |`),
  );
  expect(missing.map(keyOf)).toEqual([]);
});

it("S2-66 X-31 every route of the document is reached through the client and answers what the document says", async () => {
  const world = await serverWorld({ engine: { workflows: SAMPLE_WORKFLOWS }, workflows: SAMPLE_WORKFLOWS });
  const ids = await plant(world.pawl);
  const document = await world.json<ApiDocument>("GET /api/openapi.json");
  const sample = samplesOf(ids);
  const seen: string[] = [];
  const client = createClient({
    url: `http://${HOST}`,
    token: world.token("admin"),
    fetch: (async (url: string, init: RequestInit) => {
      const request = new Request(url, init);
      request.headers.set("host", HOST);
      return world.app.fetch(request);
    }) as typeof fetch,
  });
  const faults: string[] = [];
  for (const [path, item] of Object.entries(document.paths)) {
    for (const [method, { responses }] of Object.entries(item)) {
      const key = `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ":$1")}`;
      const { params = { id: ids.waiting }, body } = sample[key] ?? {};
      const [[, good] = []] = Object.entries(responses).filter(([status]) => status.startsWith("2"));
      const [[type, content] = []] = Object.entries(good?.content ?? {});
      const token = key === "POST /api/session" ? { token: world.token("viewer") } : undefined;
      const input = { params, ...((token ?? body) !== undefined && { body: token ?? body }) };
      seen.push(key);
      if (type === "text/event-stream") {
        for await (const event of client.follow(key as never, input as never)) {
          expect(event).toMatchObject({ event: expect.any(String) });
          break;
        }
        continue;
      }
      const answer = await client.call(key as never, input as never).catch((error: unknown) => ({ error }));
      if (answer !== null && typeof answer === "object" && "error" in answer) faults.push(`${key}: ${answer.error}`);
      const misfit = misfitOf((content?.schema ?? {}) as JsonSchema, answer);
      if (misfit !== null) faults.push(`${key}: ${misfit.path} ${misfit.why}`);
      await world.pawl.idle();
    }
  }
  expect(faults).toEqual([]);
  expect(seen.sort()).toEqual(ALL_ROUTES.map(keyOf).sort());
});
