import type { JSX } from "preact";

interface JsonFieldProps {
  readonly label: string;
  readonly text: string;
  readonly error: string | undefined;
  onInput(text: string): void;
}

export function JsonField({ label, text, error, onInput }: JsonFieldProps): JSX.Element {
  return (
    <label class="field">
      <span>{label}</span>
      <textarea
        class="mono"
        rows={4}
        value={text}
        spellcheck={false}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      {error !== undefined && <span class="form-error">{error}</span>}
    </label>
  );
}
