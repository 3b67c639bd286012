// What a page shows of the server: loaded, kept while it is loaded again, and dropped when the page asks for something else.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get } from "./api.ts";

export interface Resource<T> {
  readonly data: T | null;
  readonly error: Error | null;
  readonly isLoading: boolean;
  /** Resolves when it is there. Asked again meanwhile, it is loaded once more. */
  reload(): Promise<void>;
  /** What is known without asking: a change that the server has pushed. */
  set(change: (data: T) => T): void;
}

interface Loaded<T> {
  readonly path: string | null;
  readonly data: T | null;
  readonly error: Error | null;
}

/** A request whose answer is still to come, and what was pushed meanwhile: the answer may be older. */
interface Asked<T> {
  readonly controller: AbortController;
  readonly pushed: ((data: T) => T)[];
}

/** `null`: nothing is asked for. With `keep`, what another path has given is shown until the new one has answered. */
export function useResource<T>(path: string | null, { keep = false } = {}): Resource<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({ path: null, data: null, error: null });
  const wanted = useRef(path);
  const under = useRef<Asked<T> | null>(null);
  wanted.current = path;

  const reload = useCallback(async () => {
    const asked = wanted.current;
    under.current?.controller.abort();
    under.current = null;
    if (asked === null) return;
    const controller = new AbortController();
    const pushed: Asked<T>["pushed"] = [];
    under.current = { controller, pushed };
    try {
      const answer = await get<T>(asked, controller.signal);
      if (controller.signal.aborted) return;
      under.current = null;
      setLoaded({ path: asked, data: pushed.reduce<T>((data, change) => change(data), answer), error: null });
    } catch (error) {
      if (controller.signal.aborted) return;
      under.current = null;
      setLoaded((before) => ({
        path: asked,
        data: before.path === asked ? before.data : null,
        error: error as Error,
      }));
    }
  }, []);

  useEffect(() => {
    void reload();
    return () => under.current?.controller.abort();
  }, [path, reload]);

  const set = useCallback((change: (data: T) => T) => {
    under.current?.pushed.push(change);
    setLoaded((before) => (before.data === null ? before : { ...before, data: change(before.data) }));
  }, []);

  const isCurrent = loaded.path === path;
  return {
    data: isCurrent || (keep && path !== null) ? loaded.data : null,
    error: isCurrent ? loaded.error : null,
    isLoading: path !== null && !isCurrent,
    reload,
    set,
  };
}

/** Calls `act` some time after it was asked to, and again if it was asked meanwhile: never twice at once, so that what takes long still comes to an end. */
export function useThrottled(act: () => void | Promise<void>, ms: number): () => void {
  const latest = useRef(act);
  latest.current = act;
  const timer = useRef<number | null>(null);
  const isAsked = useRef(false);
  useEffect(() => () => window.clearTimeout(timer.current ?? undefined), []);
  return useCallback(() => {
    isAsked.current = true;
    const later = () => {
      timer.current = window.setTimeout(async () => {
        isAsked.current = false;
        await latest.current();
        timer.current = null;
        if (isAsked.current) later();
      }, ms);
    };
    if (timer.current === null) later();
  }, [ms]);
}

/** The same, loaded again whenever `change` is another one. */
export function useReloading<T>(path: string, change: number): Resource<T> {
  const resource = useResource<T>(path);
  useEffect(() => {
    if (change > 0) void resource.reload();
  }, [change]);
  return resource;
}

/** Loads again from time to time, while somebody looks. */
export function useRefreshing(reload: () => Promise<void>, ms: number): void {
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) void reload();
    }, ms);
    return () => clearInterval(timer);
  }, [reload, ms]);
}
