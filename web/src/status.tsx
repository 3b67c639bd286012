// Statuses: each has a colour, a shape and a word, so that none of them is needed to tell them apart.
import type { ComponentChildren, JSX } from "preact";
import type { WireSummary } from "./wire.ts";

export type Tone = "running" | "waiting" | "parked" | "succeeded" | "failed" | "cancelled" | "quiet";

const SHAPES: Readonly<Record<Tone, ComponentChildren>> = {
  running: (
    <>
      <circle cx="8" cy="8" r="5.5" fill="none" stroke="currentColor" stroke-width="2" opacity="0.3" />
      <path
        class="spin"
        d="M8 2.5a5.5 5.5 0 0 1 5.5 5.5"
        fill="none"
        stroke="currentColor"
        stroke-width="2.2"
        stroke-linecap="round"
      />
    </>
  ),
  waiting: (
    <g fill="none" stroke="currentColor" stroke-width="1.7" stroke-linecap="round">
      <circle cx="8" cy="8" r="5.8" />
      <path d="M8 4.8V8l2.2 1.6" />
    </g>
  ),
  parked: (
    <>
      <rect x="2" y="2" width="12" height="12" rx="2.5" fill="currentColor" />
      <path class="cut" d="M6.2 5.2v5.6M9.8 5.2v5.6" stroke-width="1.8" stroke-linecap="round" />
    </>
  ),
  succeeded: (
    <>
      <circle cx="8" cy="8" r="6.4" fill="currentColor" />
      <path
        class="cut"
        d="M5.1 8.2l2 2 3.8-4.2"
        fill="none"
        stroke-width="1.8"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </>
  ),
  failed: (
    <>
      <path d="M5.2 1.6h5.6l3.6 3.6v5.6l-3.6 3.6H5.2l-3.6-3.6V5.2z" fill="currentColor" />
      <path class="cut" d="M5.8 5.8l4.4 4.4M10.2 5.8l-4.4 4.4" stroke-width="1.8" stroke-linecap="round" />
    </>
  ),
  cancelled: (
    <g fill="none" stroke="currentColor" stroke-width="1.7">
      <circle cx="8" cy="8" r="5.8" />
      <path d="M4 12L12 4" />
    </g>
  ),
  quiet: <circle cx="8" cy="8" r="2.6" fill="currentColor" />,
};

export function Shape({ tone }: { readonly tone: Tone }): JSX.Element {
  return (
    <svg class="shape" viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
      {SHAPES[tone]}
    </svg>
  );
}

export function Status({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }): JSX.Element {
  return (
    <span class={`status tone-${tone}`}>
      <Shape tone={tone} />
      <span>{children}</span>
    </span>
  );
}

/** The state in a word that people use, and how it is shown. */
export function toneOf({ status, state }: Pick<WireSummary, "status" | "state">): Tone {
  return state === "parked" ? "parked" : status;
}

export function RunState({ run }: { readonly run: Pick<WireSummary, "status" | "state"> }): JSX.Element {
  return <Status tone={toneOf(run)}>{WORDS[run.state] ?? run.state}</Status>;
}

const WORDS: Readonly<Record<string, string>> = {
  accepted: "Queued",
  running: "Running",
  retrying: "Retrying",
  waiting: "Waiting",
  compensating: "Undoing",
  parked: "Parked",
  succeeded: "Succeeded",
  failed: "Failed",
  cancelled: "Cancelled",
};

/** For statuses of steps, waits, children, effects and workers. */
const TONES: Readonly<Record<string, Tone>> = {
  running: "running",
  retrying: "waiting",
  open: "waiting",
  planned: "waiting",
  begun: "waiting",
  late: "waiting",
  unknown: "parked",
  stopped: "parked",
  completed: "succeeded",
  succeeded: "succeeded",
  executed: "succeeded",
  received: "succeeded",
  fired: "succeeded",
  decided: "succeeded",
  answered: "succeeded",
  approved: "succeeded",
  live: "succeeded",
  done: "succeeded",
  failed: "failed",
  denied: "failed",
  refused: "failed",
  dead: "failed",
  expired: "failed",
  "timed out": "failed",
};

export function toneOfWord(word: string): Tone {
  return TONES[word] ?? "cancelled";
}

export function Word({ word }: { readonly word: string }): JSX.Element {
  return <Status tone={toneOfWord(word)}>{word}</Status>;
}
