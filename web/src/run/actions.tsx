// What people may do with a run. Each dialog says what will happen, in the words of the command line.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ForkEffects } from "../../../src/core/dry.ts";
import { post } from "../api.ts";
import { ActionDialog, parseJson } from "../dialog.tsx";
import { navigate } from "../router.ts";
import { say } from "../toast.tsx";
import type { WireStatus } from "../wire.ts";
import { JsonField } from "./json-field.tsx";
import { ResolveDialog } from "./resolve-dialog.tsx";

export type RunAction =
  | { readonly kind: "retry"; readonly from?: string }
  | { readonly kind: "fork"; readonly at: string | number }
  | { readonly kind: "cancel" }
  | { readonly kind: "signal"; readonly name?: string }
  | { readonly kind: "resolve"; readonly choice: string };

interface ActionProps<A> {
  readonly run: WireStatus;
  /** The keys of its steps, as far as they are known: where it can be forked. */
  readonly steps: readonly string[];
  readonly action: A;
  onDone(): void;
  onClose(): void;
}

export function RunActionDialog({ action, ...rest }: ActionProps<RunAction>): JSX.Element {
  switch (action.kind) {
    case "retry":
      return <Retry action={action} {...rest} />;
    case "fork":
      return <Fork action={action} {...rest} />;
    case "cancel":
      return <Cancel action={action} {...rest} />;
    case "signal":
      return <SendSignal action={action} {...rest} />;
    case "resolve":
      return <ResolveDialog choice={action.choice} {...rest} />;
  }
}

type Of<K extends RunAction["kind"]> = ActionProps<RunAction & { readonly kind: K }>;

function pathOf({ id }: WireStatus, what: string): string {
  return `/api/runs/${encodeURIComponent(id)}/${what}`;
}

function goTo(id: string, text: string): void {
  say(text);
  navigate(`/runs/${encodeURIComponent(id)}`);
}

function Retry({ run, action, onClose }: Of<"retry">): JSX.Element {
  const { from } = action;
  const act = async () => {
    const { id } = await post<{ id: string }>(pathOf(run, "retry"), from === undefined ? {} : { from });
    goTo(id, "A new run goes on where the old one stopped.");
  };
  return (
    <ActionDialog title="Retry this run" verb="Retry" act={act} onClose={onClose}>
      <p>
        A new run starts. It inherits everything that was recorded{" "}
        {from === undefined ? (
          "up to the failure, and tries that again."
        ) : (
          <>
            before <code>{from}</code>, and does that again, with all that follows.
          </>
        )}
      </p>
      <p class="dim">This run stays as it is. Steps that are inherited are not done again.</p>
    </ActionDialog>
  );
}

/** What becomes of calls that act outside; "" is what the run that is forked would have: live, or dry if it is dry itself. */
const EFFECTS = [
  ["", "Do them again", "What the steps behind that point do outside is done once more."],
  [
    "replay",
    "Answer them from this run's journal",
    "Nothing is done outside: each call is given what this run recorded.",
  ],
  [
    "dry-run",
    "Try it without them: models and reads run",
    "Nothing is changed outside. Models and reads run, and may cost; other calls are given what this run recorded, or what they say for a dry run.",
  ],
] as const satisfies readonly (readonly [ForkEffects | "", string, string])[];

function Fork({ run, steps, action, onClose }: Of<"fork">): JSX.Element {
  const [at, setAt] = useState(String(action.at));
  const [effects, setEffects] = useState("");
  const [, , says] = EFFECTS.find(([value]) => value === effects) ?? EFFECTS[0];
  const act = async () => {
    const { id } = await post<{ id: string }>(pathOf(run, "fork"), {
      at: /^\d+$/.test(at) ? Number(at) : at,
      ...(effects !== "" && { effects }),
    });
    goTo(id, "This is the fork.");
  };
  return (
    <ActionDialog title="Fork this run" verb="Fork" act={act} isReady={at !== ""} onClose={onClose}>
      <p>
        A new run starts that inherits the journal up to a point, and goes its own way from there. This run stays as it
        is.
      </p>
      <label class="field">
        <span>Before this step, or the entry with this number</span>
        <input value={at} list="steps" onInput={(event) => setAt(event.currentTarget.value)} required />
        <Choices id="steps" of={steps} />
      </label>
      <label class="field">
        <span>What steps and effects behind that point would do outside</span>
        <select value={effects} onChange={(event) => setEffects(event.currentTarget.value)}>
          {EFFECTS.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      </label>
      <p class={effects === "" ? "form-warning" : "dim"}>{says}</p>
    </ActionDialog>
  );
}

/** What a field suggests. */
function Choices({ id, of }: { readonly id: string; readonly of: readonly string[] }): JSX.Element {
  return (
    <datalist id={id}>
      {of.map((one) => (
        <option key={one} value={one} />
      ))}
    </datalist>
  );
}

function Cancel({ run, onDone, onClose }: Of<"cancel">): JSX.Element {
  const [reason, setReason] = useState("");
  const [isUndone, setUndone] = useState(false);
  const act = async () => {
    const { outcome } = await post<{ outcome: string | null }>(pathOf(run, "cancel"), {
      compensate: isUndone,
      ...(reason !== "" && { reason }),
    });
    say(cancelText(outcome));
    onDone();
  };
  return (
    <ActionDialog title="Cancel this run" verb="Cancel the run" isDangerous act={act} onClose={onClose}>
      <p>
        The step that is under way is told to stop, and nothing follows it. A run that was cancelled can be retried.
      </p>
      <label class="field">
        <span>Reason, for the journal</span>
        <input value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
      <label class="check">
        <input type="checkbox" checked={isUndone} onChange={() => setUndone(!isUndone)} />
        <span>Undo what it has done, as far as it says how</span>
      </label>
    </ActionDialog>
  );
}

function cancelText(outcome: string | null): string {
  if (outcome === null) return "Recorded: it stops as soon as a worker is there that has its workflow.";
  return outcome === "cancelling" || outcome === "cancelled" ? "The run is stopping." : `It had ${outcome} before.`;
}

function SendSignal({ run, action, onDone, onClose }: Of<"signal">): JSX.Element {
  const awaited = run.waits.filter(({ kind }) => kind === "signal").map(({ name }) => name);
  const [name, setName] = useState(action.name ?? awaited[0] ?? "");
  const [text, setText] = useState("");
  const payload = parseJson(text);
  const act = async () => {
    await post(pathOf(run, "signal"), { name, ...("value" in payload && { payload: payload.value }) });
    say(`Signal "${name}" is delivered.`);
    onDone();
  };
  return (
    <ActionDialog
      title="Send a signal"
      verb="Send"
      act={act}
      isReady={name !== "" && payload.error === undefined}
      onClose={onClose}
    >
      <label class="field">
        <span>Name</span>
        <input value={name} list="awaited" onInput={(event) => setName(event.currentTarget.value)} required />
        <Choices id="awaited" of={awaited} />
      </label>
      <JsonField label="Payload, as JSON" text={text} error={payload.error} onInput={setText} />
    </ActionDialog>
  );
}
