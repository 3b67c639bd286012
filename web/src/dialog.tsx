// Dialogs: the browser's own, which keeps the focus inside and closes by Escape.
import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { messageOf } from "./api.ts";
import { sayFailure } from "./toast.tsx";

export function Dialog({
  title,
  onClose,
  children,
}: {
  readonly title: string;
  onClose(): void;
  readonly children: ComponentChildren;
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  // Not an effect after the next frame: keys that come before that are the dialog's, too.
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    // Gives the focus back: only what is no longer behind a dialog can have it.
    return () => shown?.close();
  }, []);
  // The browser would give the focus back first and say so later, and a key that opens the dialog again would come in between.
  const cancel = (event: Event) => {
    event.preventDefault();
    onClose();
  };
  const close = (event: Event) => {
    if ((event.currentTarget as HTMLElement).isConnected) onClose();
  };
  return (
    <dialog ref={dialog} aria-label={title} onCancel={cancel} onClose={close}>
      <h2>{title}</h2>
      {children}
    </dialog>
  );
}

export interface ActionDialogProps {
  readonly title: string;
  /** On the button that does it. */
  readonly verb: string;
  readonly isDangerous?: boolean;
  readonly isReady?: boolean;
  readonly children: ComponentChildren;
  act(): Promise<void>;
  onClose(): void;
}

/** Asks once more, or for what is needed; what the server refuses is said where it was asked. */
export function ActionDialog(props: ActionDialogProps): JSX.Element {
  const { title, verb, isDangerous = false, isReady = true, children, act, onClose } = props;
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  // It may be closed before the answer comes, and another one be open in its place by then: that one is not closed for it.
  const isOpen = useRef(true);
  useLayoutEffect(
    () => () => {
      isOpen.current = false;
    },
    [],
  );
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await act();
      if (isOpen.current) onClose();
    } catch (thrown) {
      if (!isOpen.current) return sayFailure(thrown);
      setError(messageOf(thrown));
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        {children}
        {error !== null && (
          <p class="form-error" role="alert">
            {error}
          </p>
        )}
        <div class="dialog-actions">
          <button type="button" onClick={onClose}>
            Close
          </button>
          <button type="submit" class={isDangerous ? "danger" : "primary"} disabled={isBusy || !isReady}>
            {isBusy ? "Working…" : verb}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** JSON that somebody types. */
export function parseJson(text: string): { readonly value?: unknown; readonly error?: string } {
  if (text.trim() === "") return {};
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { error: `This is not JSON: ${messageOf(error)}` };
  }
}
