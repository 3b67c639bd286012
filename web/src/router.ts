// Which page is shown: the address, and nothing else, decides. Filters live in it, too, so that a view can be sent to somebody.
import { computed, signal } from "@preact/signals";

const place = signal(read());

export const path = computed(() => place.value.pathname);
export const query = computed(() => new URLSearchParams(place.value.search));

function read(): { readonly pathname: string; readonly search: string } {
  return { pathname: location.pathname, search: location.search };
}

export function navigate(to: string, { replace = false } = {}): void {
  if (to === location.pathname + location.search) return;
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  const before = place.value.pathname;
  place.value = read();
  if (before !== place.value.pathname) scrollTo(0, 0);
}

/** Changes parameters of the address; empty ones go. */
export function setQuery(change: Readonly<Record<string, string | null>>): void {
  const next = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(change))
    if (value === null || value === "") next.delete(name);
    else next.set(name, value);
  const text = next.toString();
  navigate(location.pathname + (text === "" ? "" : `?${text}`), { replace: true });
}

export function startRouter(): void {
  addEventListener("popstate", () => {
    place.value = read();
  });
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const link = (event.target as Element).closest?.("a");
    if (link?.target !== "" || link.hasAttribute("download") || link.origin !== location.origin) return;
    if (link.pathname.startsWith("/api/")) return;
    event.preventDefault();
    navigate(link.pathname + link.search);
  });
}
