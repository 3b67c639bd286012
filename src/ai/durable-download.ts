import { createDownload, type Experimental_DownloadFunction } from "ai";
import type { Context } from "../core/context.ts";

type Download = ReturnType<typeof createDownload>;

/**
 * Fetches the files of a prompt that the model cannot fetch itself, each once and in a step: the SDK would do so in the body, again in every round and
 * replay. For `experimental_download` of the SDK's functions; `DurableAgent` has it already. `download` is how: by default the SDK's own way.
 */
export function durableDownload(ctx: Context, download: Download = createDownload()): Experimental_DownloadFunction {
  const fetched = new Map<string, ReturnType<Download>>();
  const fetchOnce = (url: URL): ReturnType<Download> => {
    const known = fetched.get(url.href);
    if (known !== undefined) return known;
    const options = { kind: "api", input: url.href } as const;
    const file = ctx.step("download", ({ signal }) => download({ url, abortSignal: signal }), options);
    fetched.set(url.href, file);
    return file;
  };
  return (files) =>
    Promise.all(
      files.map(({ url, isUrlSupportedByModel }) => (isUrlSupportedByModel ? Promise.resolve(null) : fetchOnce(url))),
    );
}
