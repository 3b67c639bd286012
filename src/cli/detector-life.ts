// One question to a detector, or the effect itself, in a process of its own. It answers on its fourth file descriptor, as JSON.
import { writeSync } from "node:fs";
import { actOnce, type DetectorTest, lookOnce } from "../testing/check-detector.ts";
import { chooseDetectors } from "./detector-tests.ts";
import { loadModule } from "./load.ts";
import { blockNetwork } from "./network.ts";
import { errorLine } from "./printable.ts";

/** What it is to do; its first argument, as JSON. */
export interface DetectorTask {
  readonly file: string;
  readonly test: string;
  readonly what: "look" | "act";
  readonly allowNet: boolean;
}

const NEWS = 3;

async function live({ file, test, what, allowNet }: DetectorTask): Promise<void> {
  if (!allowNet) blockNetwork();
  const [chosen] = chooseDetectors(await loadModule(file), file, test);
  const answer = await (what === "look" ? lookOnce : actOnce)(chosen as DetectorTest);
  writeSync(NEWS, JSON.stringify(answer));
}

await live(JSON.parse(process.argv[2] as string) as DetectorTask).catch((error: unknown) => {
  writeSync(process.stderr.fd, errorLine(error));
  process.exit(1);
});
process.exit(0);
