// Short news about what was just done. Failures stay until they are closed.
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { messageOf } from "./api.ts";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isFailure: boolean;
  readonly link?: { readonly href: string; readonly text: string };
}

const toasts = signal<readonly Toast[]>([]);
let last = 0;
const SHOWN_MS = 6000;

export function say(text: string, link?: Toast["link"]): void {
  const id = add({ text, isFailure: false, ...(link !== undefined && { link }) });
  setTimeout(() => close(id), SHOWN_MS);
}

export function sayFailure(error: unknown): void {
  add({ text: messageOf(error), isFailure: true });
}

function add(toast: Omit<Toast, "id">): number {
  last += 1;
  toasts.value = [...toasts.value.slice(-3), { ...toast, id: last }];
  return last;
}

function close(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

export function Toasts(): JSX.Element {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, isFailure, link }) => (
        <div key={id} class={isFailure ? "toast toast-failure" : "toast"}>
          <span>{text}</span>
          {link !== undefined && <a href={link.href}>{link.text}</a>}
          <button type="button" class="link" aria-label="Close this message" onClick={() => close(id)}>
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}
