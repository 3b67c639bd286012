// Reading server-sent events
//
//   ER1. A connection that breaks is made again behind the last id that came. What has no id is told anew by the server, as it is then.
//   ER2. "end" ends it for good; a refusal of the server is thrown.
import { type ErrorCode, PawlError } from "../base/errors.ts";

export interface ReadEvent {
  readonly event: string;
  readonly id: string | null;
  readonly data: unknown;
}

/** The first wait before connecting again, and the longest. */
const AGAIN_MS = 200;
const AGAIN_MAX_MS = 5000;

export async function* readEvents(
  connect: (headers: Record<string, string>) => Promise<Response>,
  signal?: AbortSignal,
): AsyncGenerator<ReadEvent, void, void> {
  let last: string | null = null;
  for (let broken = 0; ; broken++) {
    const response = await connectAgain(connect, last, broken > 0);
    if (response !== null)
      for await (const event of eventsIn(response)) {
        broken = 0;
        if (event.event === "end") return;
        if (event.event === "error") throw errorIn(event.data, response.status);
        last = event.id ?? last;
        if (event.event !== "ping") yield event;
      }
    if (signal?.aborted === true) return;
    await pause(Math.min(AGAIN_MS * 2 ** broken, AGAIN_MAX_MS));
  }
}

/** `null`: nobody was there, as while a server restarts. At the first time that is an error. */
async function connectAgain(
  connect: (headers: Record<string, string>) => Promise<Response>,
  last: string | null,
  isAgain: boolean,
): Promise<Response | null> {
  try {
    return await connect(last === null ? {} : { "last-event-id": last });
  } catch (error) {
    if (!isAgain || !(error instanceof TypeError)) throw error;
    return null;
  }
}

async function* eventsIn({ body }: Response): AsyncGenerator<ReadEvent, void, void> {
  if (body === null) return;
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
      if (done || value === undefined) return;
      const parts = (text + value).split("\n\n");
      text = parts.pop() ?? "";
      for (const part of parts) yield eventOf(part);
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function eventOf(part: string): ReadEvent {
  const fields = new Map(
    part.split("\n").map((line) => {
      const at = line.indexOf(": ");
      return [line.slice(0, at), line.slice(at + 2)] as const;
    }),
  );
  return {
    event: fields.get("event") ?? "",
    id: fields.get("id") ?? null,
    data: JSON.parse(fields.get("data") ?? "null"),
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** What the server said, or what can be said if it was not the server that answered. */
export function errorIn(said: unknown, status: number): PawlError {
  const { error } = (said ?? {}) as { readonly error?: Readonly<Record<string, unknown>> };
  const { code = "unknown_outcome", message = `The server answered ${status}.`, fields } = error ?? {};
  return new PawlError(code as ErrorCode, String(message), { fields: { ...(fields as object), status } });
}
