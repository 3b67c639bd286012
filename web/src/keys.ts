// Keys
// Pages say which keys they listen to while they are shown; the newest one wins. "g r" is g, then r. Text fields keep their keys, but for Escape.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

export interface Binding {
  /** For the list of keys; a binding without words is not listed. */
  readonly says?: string;
  act(event: KeyboardEvent): void;
}

export type Bindings = Readonly<Record<string, Binding>>;

const stack = signal<readonly { readonly current: Bindings }[]>([]);
const PREFIX_MS = 1200;
let prefix: { readonly key: string; readonly at: number } | null = null;

export function useKeys(bindings: Bindings): void {
  const latest = useRef(bindings);
  latest.current = bindings;
  useEffect(() => {
    stack.value = [...stack.peek(), latest];
    return () => {
      stack.value = stack.peek().filter((one) => one !== latest);
    };
  }, []);
}

/** Every key that does something now, and what. */
export function listedKeys(): readonly (readonly [string, string])[] {
  const all = new Map<string, string>();
  for (const { current } of stack.value)
    for (const [key, { says }] of Object.entries(current)) if (says !== undefined) all.set(key, says);
  return [...all];
}

export function startKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
    if (isTyping(event.target) && event.key !== "Escape") return;
    // An open dialog has its own keys, and the browser closes it by Escape.
    if (document.querySelector("dialog[open]") !== null) return;
    const sequence = prefix !== null && event.timeStamp - prefix.at < PREFIX_MS ? `${prefix.key} ${event.key}` : null;
    prefix = null;
    const binding = (sequence === null ? undefined : find(sequence)) ?? find(event.key);
    if (binding !== undefined) {
      event.preventDefault();
      binding.act(event);
    } else if (isPrefix(event.key)) prefix = { key: event.key, at: event.timeStamp };
  });
}

function find(key: string): Binding | undefined {
  return stack.peek().findLast(({ current }) => current[key] !== undefined)?.current[key];
}

function isPrefix(key: string): boolean {
  return stack.peek().some(({ current }) => Object.keys(current).some((one) => one.startsWith(`${key} `)));
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.matches("input:not([type=checkbox]), textarea, select, [contenteditable]")
  );
}
