// Many runs at once. Nothing happens before somebody has seen what would: for runs that were picked, which of them it can be done to; for all that
// fit a filter, what the server has counted in a dry run.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { messageOf, post } from "../api.ts";
import { ActionDialog } from "../dialog.tsx";
import { plural, shortId } from "../format.ts";
import { say } from "../toast.tsx";
import type { WireSummary } from "../wire.ts";
import type { RunFilter } from "./runs-filter.tsx";

type Action = "retry" | "cancel";

export type BulkTarget =
  | { readonly kind: "runs"; readonly action: Action; readonly runs: readonly WireSummary[] }
  | { readonly kind: "filter"; readonly action: Action; readonly filter: RunFilter };

interface BulkAnswer {
  readonly matched: number;
  readonly done: number;
  readonly failed: readonly { readonly id: string; readonly error: unknown }[];
}

interface BulkDialogProps<T> {
  readonly target: T;
  onClose(): void;
  onDone(): void;
}

const WORDS = {
  retry: { verb: "Retry", past: "retried", none: "None of them has failed or was cancelled." },
  cancel: { verb: "Cancel", past: "cancelled", none: "All of them have ended already." },
} as const;

export function BulkDialog({ target, ...rest }: BulkDialogProps<BulkTarget>): JSX.Element {
  return target.kind === "runs" ? (
    <PickedDialog target={target} {...rest} />
  ) : (
    <FilterDialog target={target} {...rest} />
  );
}

function canBe(action: Action, { status }: WireSummary): boolean {
  const hasEnded = status === "succeeded" || status === "failed" || status === "cancelled";
  return action === "cancel" ? !hasEnded : status === "failed" || status === "cancelled";
}

function PickedDialog({ target, onClose, onDone }: BulkDialogProps<BulkTarget & { kind: "runs" }>): JSX.Element {
  const { action, runs } = target;
  const [reason, setReason] = useState("");
  const able = runs.filter((run) => canBe(action, run));
  const { verb, past, none } = WORDS[action];
  const act = async () => {
    const failures: string[] = [];
    for (const { id } of able)
      await post(`/api/runs/${encodeURIComponent(id)}/${action}`, action === "cancel" ? { reason } : {}).catch(
        (error) => failures.push(`${shortId(id)}: ${messageOf(error)}`),
      );
    onDone();
    if (failures.length > 0) throw new Error(`${able.length - failures.length} ${past}. ${failures.join(" ")}`);
    say(`${plural(able.length, "run")} ${past}.`);
  };
  return (
    <ActionDialog
      title={`${verb} ${plural(able.length, "run")}`}
      verb={`${verb} ${plural(able.length, "run")}`}
      isDangerous={action === "cancel"}
      isReady={able.length > 0}
      act={act}
      onClose={onClose}
    >
      {able.length === 0 ? (
        <p>{none}</p>
      ) : (
        <>
          <p>
            {action === "retry"
              ? "For each of them a new run starts that goes on where it stopped:"
              : "Each of them stops; nothing is undone:"}
          </p>
          <ul class="plain">
            {able.slice(0, 8).map(({ id, workflow }) => (
              <li key={id}>
                {workflow} <span class="mono dim">{shortId(id)}</span>
              </li>
            ))}
            {able.length > 8 && <li class="dim">and {plural(able.length - 8, "more run")}</li>}
          </ul>
        </>
      )}
      {able.length < runs.length && able.length > 0 && (
        <p class="dim">
          {runs.length - able.length === 1
            ? "One other of the selection"
            : `${runs.length - able.length} others of the selection`}{" "}
          cannot be {past}: nothing happens to {runs.length - able.length === 1 ? "it" : "them"}.
        </p>
      )}
      {action === "cancel" && <Reason value={reason} onInput={setReason} />}
    </ActionDialog>
  );
}

function FilterDialog({ target, onClose, onDone }: BulkDialogProps<BulkTarget & { kind: "filter" }>): JSX.Element {
  const { action, filter } = target;
  const [reason, setReason] = useState("");
  const [trial, setTrial] = useState<BulkAnswer | string | null>(null);
  const { verb, past } = WORDS[action];
  const body = { action, filter: Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== null)) };
  useEffect(() => {
    post<BulkAnswer>("/api/runs/bulk", { ...body, dryRun: true }).then(setTrial, (error) => setTrial(messageOf(error)));
  }, []);
  const act = async () => {
    const { done, failed } = await post<BulkAnswer>("/api/runs/bulk", {
      ...body,
      dryRun: false,
      ...(reason !== "" && { reason }),
    });
    onDone();
    if (failed.length > 0) throw new Error(`${done} ${past}; ${failed.length} could not be.`);
    say(`${plural(done, "run")} ${past}.`);
  };
  const matched = typeof trial === "object" && trial !== null ? trial.matched : 0;
  return (
    <ActionDialog
      title={`${verb} all that fit the filter`}
      verb={`${verb} ${plural(matched, "run")}`}
      isDangerous={action === "cancel"}
      isReady={matched > 0}
      act={act}
      onClose={onClose}
    >
      {trial === null && <p>Counting what it would do…</p>}
      {typeof trial === "string" && <p class="form-error">{trial}</p>}
      {typeof trial === "object" && trial !== null && (
        <p>
          A dry run found <b>{plural(trial.matched, "run")}</b>. Nothing has happened yet.
        </p>
      )}
      {action === "cancel" && <Reason value={reason} onInput={setReason} />}
    </ActionDialog>
  );
}

function Reason({ value, onInput }: { readonly value: string; onInput(text: string): void }): JSX.Element {
  return (
    <label class="field">
      <span>Reason, for the journal</span>
      <input value={value} onInput={(event) => onInput(event.currentTarget.value)} />
    </label>
  );
}
