import { once } from "node:events";
import { createServer } from "node:net";

/** A port that nobody listens on, for a server that cannot choose one itself. */
export async function freePort() {
  const probe = createServer();
  probe.listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}
