// Restate: this process is the service; the server is another one, which outlives it like the database of the others.
import { randomUUID } from "node:crypto";
import * as restate from "@restatedev/restate-sdk";
import * as clients from "@restatedev/restate-sdk-clients";

const PARALLEL_ATTACHES = 128;

export async function open({ place, body }) {
  const bench = restate.service({
    name: "bench",
    handlers: {
      steps: async (ctx, input) => {
        let sum = 0;
        for (let i = 0; i < input.steps; i++) sum += await ctx.run("add", () => body(input, i));
        return sum;
      },
      sleeper: async (ctx, input) => {
        await ctx.run("add", () => body(input, 0));
        await ctx.sleep({ days: 30 });
      },
    },
  });
  await restate.serve({ services: [bench], port: place.port });
  await register(place);
  const ingress = clients.connect({ url: place.ingress });
  const client = ingress.serviceClient(bench);
  const sender = ingress.serviceSendClient(bench);
  return {
    run: (input) => client.steps(input),
    // Only a run with an idempotency key can be waited for later.
    start: (name, input) => sender[name](input, clients.rpc.sendOpts({ idempotencyKey: randomUUID() })),
    result: limited(PARALLEL_ATTACHES, (send) => ingress.result(send)),
    close: async () => {},
  };
}

async function register({ admin, port, isRegistered }) {
  if (isRegistered) return;
  const answer = await fetch(`${admin}/deployments`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ uri: `http://127.0.0.1:${port}` }),
  });
  if (!answer.ok) throw new Error(`the service could not be registered: ${await answer.text()}`);
}

/** The same function, with at most so many calls under way. */
function limited(most, call) {
  let under = 0;
  const waiting = [];
  return async (argument) => {
    if (under >= most) await new Promise((resolve) => waiting.push(resolve));
    else under += 1;
    try {
      return await call(argument);
    } finally {
      const next = waiting.shift();
      if (next === undefined) under -= 1;
      else next();
    }
  };
}
