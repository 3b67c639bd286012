import { useEffect, useRef } from "preact/hooks";

/** On a phone, lists of places to go are wider than the screen: where somebody is has to be in view. */
export function useHereInView(here: string): { current: HTMLElement | null } {
  const list = useRef<HTMLElement>(null);
  useEffect(() => {
    const frame = list.current;
    if (frame === null) return undefined;
    const look = () => show(frame);
    look();
    // A number that comes later moves those behind it.
    const observer = new MutationObserver(look);
    observer.observe(frame, { childList: true, subtree: true });
    return () => observer.disconnect();
  }, [here]);
  return list;
}

/** So much of the place before it stays in view: there is something there. */
const AIR = 48;

function show(frame: HTMLElement): void {
  const place = frame.querySelector('[aria-current="page"], [aria-pressed="true"]');
  if (place === null) return;
  const [outer, inner] = [frame.getBoundingClientRect(), place.getBoundingClientRect()];
  // The browser's own way would move the page, too.
  if (inner.left < outer.left || inner.right > outer.right) frame.scrollLeft += inner.left - outer.left - AIR;
}
