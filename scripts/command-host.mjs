// Runs commands one after the other in one process. Each is loaded anew, and finds the folder, the environment and the arguments that it would
// have in a process of its own; what it prints and how it ends is told in a line of JSON.
//
//   command-host.mjs dist/cli/main.js     then on stdin, a line each: { folder, env, args }
import { Socket as DatagramSocket } from "node:dgram";
import { Socket } from "node:net";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [, , main] = process.argv;
const { href } = pathToFileURL(main);
const tell = process.stdout.write.bind(process.stdout);

const printed = { stdout: "", stderr: "" };
for (const name of ["stdout", "stderr"]) {
  process[name].write = (text, ...rest) => {
    printed[name] += text;
    rest.at(-1)?.();
    return true;
  };
}
// Some commands block the network of their process; the next one has it again.
const { connect } = Socket.prototype;
const { send } = DatagramSocket.prototype;
// A command ends with it.
process.exit = () => {};

let count = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const { folder, env, args } = JSON.parse(line);
  Object.assign(printed, { stdout: "", stderr: "" });
  process.chdir(folder);
  process.env = env;
  process.argv = [process.execPath, main, ...args];
  process.exitCode = undefined;
  Object.assign(Socket.prototype, { connect });
  Object.assign(DatagramSocket.prototype, { send });
  await import(`${href}?${++count}`);
  process.stdout.removeAllListeners("error");
  tell(`${JSON.stringify({ code: process.exitCode ?? 0, ...printed })}\n`);
}
process.exitCode = 0;
