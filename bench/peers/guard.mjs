// Runs a command for as long as its own standard input is open, so that a server never outlives the bench, however that ends.
import { spawn } from "node:child_process";

const GRACE_MS = 5000;

const [command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ["ignore", "inherit", "inherit"] });
child.once("exit", (code) => process.exit(code ?? 1));
child.once("spawn", () => process.send?.(child.pid));
process.stdin.resume().once("close", () => {
  child.kill("SIGTERM");
  setTimeout(() => child.kill("SIGKILL"), GRACE_MS);
});
