// Server-sent events
// A page that nobody looks at holds no connection: browsers allow only a few to one server, and a forgotten tab would take one for ever. When it
// is looked at again, it is told that it may have missed something.
import { useEffect, useRef, useState } from "preact/hooks";

export type EventHandlers = Readonly<Record<string, (data: unknown) => void>>;

export interface EventOptions {
  /** Events may have been missed: load what is shown again. */
  readonly onGap?: () => void;
}

/** Follows a stream of events; `null` follows nothing. True while it is connected. */
export function useEvents(path: string | null, handlers: EventHandlers, { onGap }: EventOptions = {}): boolean {
  const latest = useRef({ handlers, onGap });
  latest.current = { handlers, onGap };
  const [isLive, setLive] = useState(false);

  useEffect(() => {
    if (path === null) return undefined;
    let source: EventSource | null = null;
    let hasMissed = false;
    const close = () => {
      source?.close();
      source = null;
      hasMissed = true;
      setLive(false);
    };
    const open = () => {
      if (source !== null || document.hidden) return;
      source = new EventSource(path);
      source.onopen = () => {
        setLive(true);
        if (hasMissed) latest.current.onGap?.();
        hasMissed = false;
      };
      source.onerror = () => {
        setLive(false);
        hasMissed = true;
      };
      for (const name of Object.keys(latest.current.handlers))
        source.addEventListener(name, (event) =>
          latest.current.handlers[name]?.(JSON.parse((event as MessageEvent<string>).data || "null")),
        );
      // The server ends a stream that has no more to tell; a browser would ask for it again and again.
      source.addEventListener("end", () => {
        source?.close();
        source = null;
        setLive(false);
      });
    };
    const look = () => (document.hidden ? close() : open());
    document.addEventListener("visibilitychange", look);
    open();
    return () => {
      document.removeEventListener("visibilitychange", look);
      source?.close();
    };
  }, [path]);

  return isLive;
}
