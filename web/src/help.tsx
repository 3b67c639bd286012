import type { JSX } from "preact";
import { Dialog } from "./dialog.tsx";
import { listedKeys } from "./keys.ts";

const NAMES: Readonly<Record<string, string>> = { Escape: "Esc", ArrowLeft: "←", ArrowRight: "→" };

export function Help({ onClose }: { onClose(): void }): JSX.Element {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl class="keys">
        {listedKeys().map(([key, says]) => (
          <div key={key}>
            <dt>
              {key.split(" ").map((one) => (
                <kbd key={one}>{NAMES[one] ?? one}</kbd>
              ))}
            </dt>
            <dd>{says}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog" class="dialog-actions">
        <button type="submit">Close</button>
      </form>
    </Dialog>
  );
}
