import { spawn } from "node:child_process";

/** Opens an address in the user's browser, if there is one. The address is printed as well, so nothing is lost if there is none. */
export function openBrowser(url: string): void {
  const [command, ...args] = commandFor(process.platform, url);
  const child = spawn(command, args, { stdio: "ignore", detached: true });
  child.on("error", () => {});
  child.unref();
}

function commandFor(platform: NodeJS.Platform, url: string): [string, ...string[]] {
  if (platform === "darwin") return ["open", url];
  // `start` takes its first quoted argument for a title.
  if (platform === "win32") return ["cmd", "/c", "start", "", url];
  return ["xdg-open", url];
}
