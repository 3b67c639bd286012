import { createRequire } from "node:module";

type OwnFile =
  | "#crash-life"
  | "#detector-life"
  | "#dev-examples"
  | "#load"
  | "#pulse"
  | "#pulse-postgres"
  | "#ts-hook"
  | "#worker-process";

/**
 * The path of one of this package's own built files, for a thread or another process. By its name in package.json: the files of dist are
 * joined, so none knows where its neighbour is, and sources under test use the built one as well (Node 20 runs no TypeScript).
 */
export function ownFile(name: OwnFile): string {
  return createRequire(import.meta.url).resolve(name);
}
