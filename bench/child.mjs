import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Starts a script with one argument; what it sends arrives with its types. */
export function startChild(script, argument, execArgv = []) {
  return fork(fileURLToPath(script), [JSON.stringify(argument)], { serialization: "advanced", execArgv });
}

/** The next message of a child; rejects if it ends without one. */
export function nextMessage(child) {
  return new Promise((resolve, reject) => {
    const onExit = (code, signal) => reject(new Error(`the child ended with ${signal ?? code} and sent nothing`));
    child.once("exit", onExit);
    child.once("message", (message) => {
      child.off("exit", onExit);
      resolve(message);
    });
  });
}

/** Sends something to a child, unless it is null, and gives its next message. */
export function answerOf(child, message) {
  const next = nextMessage(child);
  if (message !== null) child.send(message);
  return next;
}

/** What a child answers, once it has ended. */
export async function runChild(script, argument, execArgv) {
  const child = startChild(script, argument, execArgv);
  const gone = new Promise((resolve) => child.once("exit", resolve));
  const answer = await nextMessage(child);
  await gone;
  return answer;
}

/** For the child: its argument, and how it sends its only answer and ends. */
export function childArgument() {
  return JSON.parse(process.argv[2]);
}

export function answer(message) {
  process.send(message, () => process.disconnect());
}
