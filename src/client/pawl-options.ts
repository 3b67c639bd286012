import type { Clock } from "../base/clock.ts";
import type { Duration } from "../base/duration.ts";
import type { Codec } from "../base/envelope.ts";
import type { Log } from "../core/context.ts";
import type { Notifier } from "../core/notification.ts";
import type { Observer } from "../core/observer.ts";
import type { Redaction } from "../core/redactor.ts";
import type { Workflow } from "../core/workflow.ts";
import type { AlertOptions } from "./alert-options.ts";
import type { WorkflowTrigger } from "./events.ts";
import type { EncryptionOptions } from "./keyring.ts";
import type { SecretOrigin } from "./secrets.ts";

/** What an engine is opened with. */
export interface PawlOptions {
  /** This process works on them. None: it is a client only. */
  readonly workflows?: readonly Workflow<never, unknown>[];
  /** Runs in memory at once. Default 1,024. */
  readonly concurrency?: number;
  /** How long this process may be silent before others take its runs. Default 15 s. */
  readonly lease?: Duration;
  /** How long its event loop may stand still before it stops renewing its lease. Default 5 min. */
  readonly stall?: Duration;
  /** "power" (default): an acknowledged commit survives power loss. "process": it survives the death of the process only. */
  readonly durability?: "power" | "process";
  /** How values are kept; the default is readable JSON, compressed when large. */
  readonly codec?: Codec;
  /** Seals everything that users' values are in, whatever the store: AES-256-GCM with these keys. Give all processes of a store the same. Default: nothing is. */
  readonly encryption?: EncryptionOptions;
  /** What is taken out of values before they are recorded or logged: properties by name, patterns, or what a function finds. Default: nothing. */
  readonly redact?: Redaction | readonly Redaction[];
  /** Where `info.secret(name)` finds what a secret stands for; the first that has it. Default: nowhere. */
  readonly secrets?: SecretOrigin | readonly SecretOrigin[];
  /** Where warnings and errors go. Default: stderr. */
  readonly logger?: Log;
  readonly clock?: Clock;
  /** How often to look for work when nobody said that there is some. Default 1 s. */
  readonly poll?: Duration;
  /** How long finished runs are kept: 30 days, failed and cancelled ones 90. `false`: for ever. */
  readonly retention?: { readonly succeeded?: Duration; readonly failed?: Duration } | false;
  /**
   * How long runs may find no worker with their version, while this process has another one of their workflow, before they are parked for somebody to
   * decide. Default 5 min: time enough for a rolling deployment.
   */
  readonly versionGrace?: Duration;
  /** Drain and hand runs back on SIGINT and SIGTERM. Default true for a process with workflows. */
  readonly handleSignals?: boolean;
  /** Where people are told of approvals. Give them to every process that has workflows. */
  readonly notifiers?: readonly Notifier[];
  /** When somebody should look at something; they are told by the notifiers, or else by the log. `false`: this process looks for nothing. */
  readonly alerts?: AlertOptions | false;
  /** Who watches what its runs do, such as `otel()` of pawl/otel. Default: nobody. */
  readonly observers?: readonly Observer[];
  /** What tokens of `ctx.callback` are made with: at least 32 characters, the same in all processes. A new one goes in front of the old one. */
  readonly secret?: string | readonly string[];
  /** Where people reach the server, such as "https://pawl.example": notifications of approvals then have links to decide with. Default: none. */
  readonly publicUrl?: string;
  /** Events that start runs, besides those that workflows declare with `on`. */
  readonly triggers?: readonly WorkflowTrigger[];
  /** A name for people; ownership never depends on it. Default: the host's name. */
  readonly name?: string;
}
