// Deciding about a parked run: the dialog says what follows from a choice, and asks for no more than that needs.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { post } from "../api.ts";
import { ActionDialog, parseJson } from "../dialog.tsx";
import { say } from "../toast.tsx";
import type { WireStatus } from "../wire.ts";
import { CHOICES, type Need, UNKNOWN } from "./choices.ts";
import { JsonField } from "./json-field.tsx";

interface ResolveProps {
  readonly run: WireStatus;
  readonly choice: string;
  onDone(): void;
  onClose(): void;
}

export function ResolveDialog({ run, choice, onDone, onClose }: ResolveProps): JSX.Element {
  const { says, needs, isDangerous = false } = CHOICES[choice] ?? UNKNOWN;
  const [text, setText] = useState("");
  const { value, error, isMissing } = given(needs, text);
  const act = async () => {
    const path = `/api/runs/${encodeURIComponent(run.id)}/resolve`;
    await post(path, { choice, ...(value !== undefined && { value }) });
    say(`Decided: ${choice}.`);
    onDone();
  };
  return (
    <ActionDialog
      title={`Decide: ${choice}`}
      verb={choice}
      isDangerous={isDangerous}
      act={act}
      isReady={error === undefined && !isMissing}
      onClose={onClose}
    >
      <p>{says}</p>
      {needs !== undefined && <NeedField need={needs} text={text} error={error} onInput={setText} />}
    </ActionDialog>
  );
}

interface Given {
  readonly value?: unknown;
  readonly error?: string;
  readonly isMissing: boolean;
}

function given(need: Need | undefined, text: string): Given {
  switch (need?.kind) {
    case undefined:
      return { isMissing: false };
    case "reason":
      return { value: { reason: text }, isMissing: text.trim() === "" };
    case "force":
      return { ...(text !== "" && { value: { force: true } }), isMissing: false };
    case "json":
      return { ...parseJson(text), isMissing: need.isRequired === true && text.trim() === "" };
  }
}

interface NeedFieldProps {
  readonly need: Need;
  readonly text: string;
  readonly error: string | undefined;
  onInput(text: string): void;
}

function NeedField({ need, text, error, onInput }: NeedFieldProps): JSX.Element {
  if (need.kind === "json") return <JsonField label={need.label} text={text} error={error} onInput={onInput} />;
  if (need.kind === "force")
    return (
      <label class="check">
        <input type="checkbox" checked={text !== ""} onChange={() => onInput(text === "" ? "force" : "")} />
        <span>{need.label}</span>
      </label>
    );
  return (
    <label class="field">
      <span>{need.label}</span>
      <input value={text} onInput={(event) => onInput(event.currentTarget.value)} required />
    </label>
  );
}
