import { STARTED } from "../answers.ts";
import { notFound } from "../failure.ts";
import { type Route, route } from "../route.ts";
import { receive } from "../webhooks.ts";

export const hookRoutes: readonly Route[] = [
  route(
    {
      method: "POST",
      path: "/api/hooks/:name",
      role: "own",
      summary:
        "Takes a signed webhook and starts the run that it is configured for. The same delivery again is the same run.",
      reads: "bytes",
      status: 202,
      answer: STARTED,
    },
    ({ params, headers, bytes, server }) => {
      const hook = server.hooks.get(params.name);
      const pawl = hook === undefined ? undefined : server.tenants.get(hook.store);
      if (hook === undefined || pawl === undefined) throw notFound("such hook");
      return receive(params.name, hook, pawl, { headers, bytes });
    },
  ),
];
