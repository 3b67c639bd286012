import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { messageOf } from "../api.ts";
import { parseJson } from "../dialog.tsx";
import { JsonField } from "../run/json-field.tsx";
import { say } from "../toast.tsx";
import type { WireApproval } from "../wire.ts";

interface Decision {
  readonly decision: "approved" | "denied" | "changes_requested";
  readonly reason?: string;
  readonly arguments?: unknown;
  /** Of the action that was shown. */
  readonly hash: string;
}

interface DecideProps {
  readonly approval: WireApproval;
  decide(decision: Decision): Promise<void>;
}

const DONE = { approved: "Approved.", denied: "Denied.", changes_requested: "Changes are requested." } as const;

export function Decide({ approval, decide }: DecideProps): JSX.Element {
  const [reason, setReason] = useState("");
  const [changes, setChanges] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const wanted = parseJson(changes ?? "");
  const send = async (decision: Decision["decision"]) => {
    setBusy(true);
    setError(null);
    try {
      await decide({
        decision,
        hash: approval.hash,
        ...(reason !== "" && { reason }),
        ...(decision === "changes_requested" && "value" in wanted && { arguments: wanted.value }),
      });
      say(DONE[decision]);
    } catch (thrown) {
      setError(messageOf(thrown));
    }
    setBusy(false);
  };
  return (
    <form class="decide" onSubmit={(event) => event.preventDefault()}>
      <label class="field">
        <span>Reason, for the record and for whoever waits</span>
        <textarea rows={2} value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
      {changes !== null && (
        <JsonField
          label="The arguments as you would have them, as JSON"
          text={changes}
          error={wanted.error}
          onInput={setChanges}
        />
      )}
      {error !== null && (
        <p class="form-error" role="alert">
          {error}
        </p>
      )}
      <div class="decide-buttons">
        <button type="button" class="approve" disabled={isBusy} onClick={() => void send("approved")}>
          Approve
        </button>
        <button type="button" class="danger" disabled={isBusy} onClick={() => void send("denied")}>
          Deny
        </button>
        {changes === null ? (
          <button type="button" onClick={() => setChanges(JSON.stringify(approval.action.arguments, null, 2) ?? "")}>
            Ask for changes…
          </button>
        ) : (
          <button
            type="button"
            disabled={isBusy || wanted.error !== undefined}
            onClick={() => void send("changes_requested")}
          >
            Ask for these changes
          </button>
        )}
      </div>
    </form>
  );
}
