import { spawn } from "node:child_process";
import { type Duration, toMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import type { Notification, Notifier } from "../core/notification.ts";

export interface CommandNotifierOptions {
  /** Unique among the notifiers of a process. */
  readonly name?: string;
  /** How long the command may take. Default 30 s. */
  readonly timeout?: Duration;
}

const TOLD = 500;

/** Runs a command for each notification, without a shell, and gives it the notification as JSON on its standard input. Exit code 0 means sent. */
export function commandNotifier(argv: readonly string[], options: CommandNotifierOptions = {}): Notifier {
  const [file, ...args] = argv;
  if (file === undefined)
    throw new PawlError("invalid_argument", 'commandNotifier needs a command: ["notify-send", "Pawl"].');
  const timeoutMs = toMs(options.timeout ?? "30s", "timeout");
  return {
    name: options.name ?? "command",
    notify: (notification, { signal }) =>
      run(file, args, notification, AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])),
  };
}

function run(file: string, args: readonly string[], notification: Notification, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: ["pipe", "ignore", "pipe"], signal, killSignal: "SIGKILL" });
    let said = "";
    child.stderr.on("data", (data: Buffer) => {
      if (said.length < TOLD) said += data.toString();
    });
    child.on("error", reject);
    child.on("close", (code, killedBy) => {
      if (code === 0) return resolve();
      const how = killedBy === null ? `ended with exit code ${code}` : `was ended by ${killedBy}`;
      reject(new Error(`${file} ${how}. ${said.slice(0, TOLD).trim()}`));
    });
    // A command that does not read its input is none of our business.
    child.stdin.on("error", () => {});
    child.stdin.end(`${JSON.stringify(notification)}\n`);
  });
}
