// Server-sent events
// A page that nobody looks at holds no connection: browsers allow only a few to one server, and a forgotten tab would take one for ever. When it
// is looked at again, it is told that it may have missed something.
//
//   EV1. A connection that breaks is taken up again, and then the page is told that it may have missed something.
//   EV2. A browser gives up for good where the server answers with a refusal: it is asked why, which leads to the sign-in page if the session has
//        ended; anything else is tried again after a while.
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "./api.ts";

export type EventHandlers = Readonly<Record<string, (data: unknown) => void>>;

export interface EventOptions {
  /** Events may have been missed: load what is shown again. */
  readonly onGap?: () => void;
}

const AGAIN_MS = 3000;

/** Follows a stream of events; `null` follows nothing. True while it is connected. */
export function useEvents(path: string | null, handlers: EventHandlers, { onGap }: EventOptions = {}): boolean {
  const latest = useRef({ handlers, onGap });
  latest.current = { handlers, onGap };
  const [isLive, setLive] = useState(false);

  useEffect(() => {
    if (path === null) return undefined;
    const stream = new Following(path, () => latest.current, setLive);
    const look = () => (document.hidden ? stream.close() : stream.open());
    document.addEventListener("visibilitychange", look);
    look();
    return () => {
      document.removeEventListener("visibilitychange", look);
      stream.close();
    };
  }, [path]);

  return isLive;
}

interface Listeners {
  readonly handlers: EventHandlers;
  readonly onGap: (() => void) | undefined;
}

class Following {
  readonly #path: string;
  readonly #latest: () => Listeners;
  readonly #setLive: (isLive: boolean) => void;
  #source: EventSource | null = null;
  #again: number | undefined;
  #hasMissed = false;
  #isOver = false;

  constructor(path: string, latest: () => Listeners, setLive: (isLive: boolean) => void) {
    this.#path = path;
    this.#latest = latest;
    this.#setLive = setLive;
  }

  open(): void {
    if (this.#source !== null || this.#isOver) return;
    const source = new EventSource(this.#path);
    this.#source = source;
    source.onopen = () => {
      this.#setLive(true);
      if (this.#hasMissed) this.#latest().onGap?.();
      this.#hasMissed = false;
    };
    source.onerror = () => {
      this.#hasMissed = true;
      this.#setLive(false);
      if (source.readyState === EventSource.CLOSED) this.#refused();
    };
    for (const name of Object.keys(this.#latest().handlers))
      source.addEventListener(name, (event) =>
        this.#latest().handlers[name]?.(JSON.parse((event as MessageEvent<string>).data || "null")),
      );
    // The server ends a stream that has no more to tell; a browser would ask for it again and again.
    source.addEventListener("end", () => {
      this.#isOver = true;
      this.close();
    });
  }

  close(): void {
    window.clearTimeout(this.#again);
    this.#source?.close();
    this.#source = null;
    this.#hasMissed = true;
    this.#setLive(false);
  }

  #refused(): void {
    this.close();
    this.#again = window.setTimeout(() => this.open(), AGAIN_MS);
    get("/api/session").catch(() => null);
  }
}
