import { useEffect, useRef } from "preact/hooks";

/** On a phone, lists of places to go are wider than the screen: where somebody is has to be in view. */
export function useHereInView(here: string): { current: HTMLElement | null } {
  const list = useRef<HTMLElement>(null);
  useEffect(() => {
    const frame = list.current;
    const place = frame?.querySelector('[aria-current="page"], [aria-pressed="true"]');
    if (frame == null || place == null) return;
    const [outer, inner] = [frame.getBoundingClientRect(), place.getBoundingClientRect()];
    // The browser's own way would move the page, too.
    if (inner.left < outer.left || inner.right > outer.right) frame.scrollLeft += inner.left - outer.left - AIR;
  }, [here]);
  return list;
}

/** So much of the place before it stays in view: there is something there. */
const AIR = 48;
