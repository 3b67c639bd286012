import { appendFile, mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import type { Notifier } from "../core/notification.ts";

/** Appends each notification to a file, as a line of JSON. */
export function fileNotifier(path: string, options: { readonly name?: string } = {}): Notifier {
  return {
    name: options.name ?? "file",
    async notify(notification) {
      await mkdir(dirname(path), { recursive: true });
      await appendFile(path, `${JSON.stringify(notification)}\n`);
    },
  };
}
