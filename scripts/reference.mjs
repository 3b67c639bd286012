// Writes docs/reference/options.md from the sources and docs/reference/cli.md from the built command's own help.
// With `--print docs/reference/options.md` it prints that page instead; a test compares it with the file.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Command } from "commander";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path) => readFileSync(join(root, path), "utf8");

const PAGES = {
  "docs/reference/options.md": async () => optionsPage(),
  "docs/reference/cli.md": () => cliPage(),
};

const limits = read("src/core/limits.ts");
const DEFAULTS = constantsIn(limits, "DEFAULTS");
const LIMITS = constantsIn(limits, "LIMITS");
const TIMEOUTS = constantsIn(limits, "STEP_TIMEOUTS_MS");
const BREAKER = constantsIn(read("src/core/breaker.ts"), "DEFAULT_BREAKER");
const RETRY = constantsIn(read("src/core/retry.ts"), "DEFAULT_RETRY");

const timeouts = Object.entries(TIMEOUTS.values).map(([kind, ms]) => `${kind} ${duration(ms)}`);

/** Where each interface is, and the default of each option as the code has it. */
const INTERFACES = [
  {
    name: "PawlOptions",
    file: "src/client/pawl-options.ts",
    about: "`Pawl.open(url?, options?)`",
    defaults: {
      workflows: "none",
      concurrency: number(DEFAULTS.values.concurrency),
      lease: duration(DEFAULTS.values.leaseMs),
      stall: duration(DEFAULTS.values.stallMs),
      durability: '`"power"`',
      codec: "readable JSON",
      encryption: "nothing is sealed",
      redact: "nothing",
      secrets: "none",
      logger: "stderr",
      clock: "the system's",
      poll: duration(DEFAULTS.values.pollMs),
      retention: `${duration(DEFAULTS.values["retention.succeededMs"])}; ${duration(DEFAULTS.values["retention.failedMs"])}`,
      versionGrace: duration(DEFAULTS.values.versionGraceMs),
      handleSignals: "`true` with `workflows`",
      notifiers: "none",
      alerts: "see AlertOptions",
      observers: "none",
      secret: "none: callbacks cannot be opened or answered",
      publicUrl: "none: notifications have no links",
      triggers: "none",
      name: "the host's name",
    },
  },
  {
    name: "EncryptionOptions",
    file: "src/client/keyring.ts",
    about: "`encryption` of `Pawl.open`",
    defaults: { keys: "required", tenant: "nobody", names: "names stay readable", plain: '`"read"`' },
  },
  {
    name: "Redaction",
    file: "src/core/redactor.ts",
    about: "`redact` of `Pawl.open` and of a workflow",
    defaults: { fields: "none", patterns: "none", text: "none" },
  },
  {
    name: "AlertOptions",
    file: "src/client/alert-options.ts",
    about: "`alerts` of `Pawl.open`",
    defaults: {
      owner: "nobody by name",
      quiet: "10 min",
      every: "1 min",
      retryStorm: "50 in 1 min",
      stuckApproval: "4 h, 24 h",
      strandedRun: "10 min",
      budget: "0.8",
      duplicateEffect: "`true`",
      replayFailure: "`true`",
      orphanedRun: "`true`",
      parkedRun: "`true`",
      compensationIncomplete: "`true`",
    },
  },
  {
    name: "OtelOptions",
    file: "src/otel/otel.ts",
    about: "`otel(options?)` of `pawl/otel`",
    defaults: { tracer: "the global provider's", content: "`false`" },
  },
  {
    name: "FileStoreOptions",
    file: "src/stores/file/file-store.ts",
    about: '`fileStore(dir, options?)`; `Pawl.open("file:dir")` takes `durability` and `clock` of its own options',
    defaults: {
      clock: "the system's",
      leaseClock: "the system's",
      durability: '`"power"`',
      onPurge: '`"archive"`',
      fault: "none",
    },
  },
  {
    name: "WorkflowOptions",
    file: "src/core/workflow.ts",
    about: "`workflow(options, handler)`",
    defaults: {
      name: "required",
      version: '`"1.0.0"`',
      input: "not checked",
      output: "not checked",
      retry: "see RetryOptions",
      timeout: `by kind: ${timeouts.join(", ")}`,
      deadline: duration(DEFAULTS.values.runDeadlineMs),
      guard: '`"warn"`',
      onMissing: '`"park"`',
      owner: "nobody by name",
      retention: "what each worker's `retention` says",
      concurrency: "any number",
      budget: "no limit",
      retryBudget: "no limit",
      breakers: "see BreakerOptions",
      rate: "any number",
      uses: "none",
      versionPolicy: '`"semver"`',
      redact: "nothing",
      migrations: "none",
      on: "none",
    },
  },
  {
    name: "Migration",
    file: "src/core/migration.ts",
    about: "`migrations` of a workflow",
    defaults: { from: "required", to: "required", migrate: "required" },
  },
  {
    name: "BulkRequest",
    file: "src/client/bulk.ts",
    about: "`pawl.operations.bulk(request)`, with `by`, who does it, and `from`, from where",
    defaults: {
      action: "required",
      filter: "required",
      dryRun: "`false`",
      reason: "none",
      compensate: "`false`",
      onProgress: "nobody is told",
      signal: "none",
    },
  },
  {
    name: "PurgeOptions",
    file: "src/client/operations.ts",
    about: "`pawl.operations.purge(options)`, with `by`, who does it, and `from`, from where",
    defaults: {
      workflow: "all of them",
      succeeded: duration(DEFAULTS.values["retention.succeededMs"]),
      failed: duration(DEFAULTS.values["retention.failedMs"]),
      dryRun: "`false`",
    },
  },
  {
    name: "RewriteOptions",
    file: "src/client/rewrite.ts",
    about: "`pawl.rewrite(run, options)`",
    defaults: {
      input: "as it is",
      state: "as it is",
      adopted: "as it is",
      version: "as it is",
      cause: "required",
      by: "required",
      reason: "required",
    },
  },
  {
    name: "MachineOptions",
    file: "src/flows/machine.ts",
    about: "`machine(options, define)`, beside all of WorkflowOptions",
    defaults: {
      state: "required",
      schema: "not checked",
      merge: "a patch replaces; parallel ones conflict",
      escalation: "nobody",
    },
  },
  {
    name: "CodeStep",
    file: "src/flows/machine-step.ts",
    about:
      "`step(…)` and `evaluator(…)` of a machine; also `next` and `can`, and `kind`, `timeout`, `retry`, `recovery`, `spend` and `breaker` of StepOptions",
    defaults: { run: "required" },
  },
  {
    name: "EffectStep",
    file: "src/flows/machine-step.ts",
    about:
      "`effect(…)` of a machine; also `next` and `can`, `keyScope`, `class` and `idempotent` of EffectSpec, and all of EffectOptions",
    defaults: {
      do: "required",
      detect: "none",
      undo: "none: it stays",
      key: "derived, by `keyScope`",
      needs: "none",
      decide: "required",
    },
  },
  {
    name: "ApprovalStep",
    file: "src/flows/machine-step.ts",
    about: "`approval(…)` of a machine; also all of ApproveOptions that is not named here",
    defaults: {
      action: "required",
      approvers: "required",
      evidence: "none",
      approved: "required",
      denied: "as `onDenied` says",
      expired: "as `onExpired` says",
      changes: "as `onChanges` says",
      onDenied: '`"compensate"`',
      onExpired: '`"escalate"`',
      onChanges: '`"compensate"`',
      patch: "none",
    },
  },
  {
    name: "AgentStep",
    file: "src/flows/machine-step.ts",
    about: "`agent(…)` of a machine; also `next` and `can`, and the options of `ctx.step` as of CodeStep",
    defaults: {
      run: "required",
      result: "not checked",
      decide: "required",
      onRefusal: "the run fails with `refused`",
      onEscalation: "`escalation` is asked, or the run fails with `escalated`",
      proposals: "3",
    },
  },
  {
    name: "ParallelStep",
    file: "src/flows/machine-step.ts",
    about: "`parallel(…)` of a machine",
    defaults: { branches: "required", next: "required" },
  },
  {
    name: "BudgetOptions",
    file: "src/core/budget.ts",
    about: "`budget` of a workflow, a start or a child. Any other name is a unit of your own.",
    defaults: { usd: "no limit", tokens: "no limit", calls: "no limit", time: "no limit", onExceeded: '`"park"`' },
  },
  {
    name: "BreakerOptions",
    file: "src/core/breaker.ts",
    about: "`breakers` of a workflow, by name",
    defaults: {
      failures: number(BREAKER.values.failures),
      window: duration(BREAKER.values.windowMs),
      cooldown: duration(BREAKER.values.cooldownMs),
    },
  },
  {
    name: "RetryBudgetOptions",
    file: "src/core/retry-budget.ts",
    about: "`retryBudget` of a workflow",
    defaults: { max: "required", per: "required" },
  },
  {
    name: "ConcurrencyLimit",
    file: "src/core/flow-control.ts",
    about: "`concurrency` of `workflow(options, handler)`",
    defaults: { limit: "required", key: "none" },
  },
  {
    name: "RateLimit",
    file: "src/core/flow-control.ts",
    about: "`rate` of `workflow(options, handler)`",
    defaults: { limit: "required", per: "required", key: "none" },
  },
  {
    name: "StepOptions",
    file: "src/core/context.ts",
    about: "`ctx.step(name, fn, options?)`",
    defaults: {
      key: "the name; `name#2` for its second use",
      input: "not compared",
      kind: '`"code"`',
      timeout: `the workflow's, else by kind: ${timeouts.join(", ")}`,
      retry: "the workflow's",
      recovery: '`"rerun"`',
      spend: "nothing",
      breaker: "none",
      noProgress: "not looked at",
      dry: '`"run"` for kind `"model"`, else what is recorded',
    },
  },
  {
    name: "UndoableStepOptions",
    file: "src/core/context.ts",
    about: "`ctx.step(name, fn, options)` for a step that can be taken back; beside all of StepOptions",
    defaults: { undo: "required" },
  },
  {
    name: "EffectSpec",
    file: "src/core/effect.ts",
    about: "`ctx.effect(name, spec, options?)`",
    defaults: {
      do: "required",
      detect: "none",
      undo: "none: it stays",
      key: "derived, by `keyScope`",
      keyScope: '`"step"`',
      class: '`"write"`',
      idempotent: "`false`",
      needs: "none",
      dry: '`"run"` for class `"read"`, else what is recorded',
    },
  },
  {
    name: "ForkOptions",
    file: "src/client/fork-effects.ts",
    about: "`pawl.fork(id, options)`",
    defaults: { at: "required", effects: '`"live"`; of a dry run what it is', id: "a new one" },
  },
  {
    name: "EffectOptions",
    file: "src/core/effect.ts",
    about:
      '`ctx.effect(name, spec, options)`; also `kind` (default `"api"`), `timeout`, `retry`, `spend` and `breaker` of StepOptions',
    defaults: { recovery: 'by the guard: `"detect"`, `"rerun"` or `"ask"`' },
  },
  {
    name: "NoProgress",
    file: "src/core/no-progress.ts",
    about: "`noProgress` of `ctx.step(name, fn, options?)`",
    defaults: { repeats: "required", args: "`undefined`" },
  },
  {
    name: "DurableModelOptions",
    file: "src/ai/durable-model.ts",
    about: "`durableModel(ctx, model, options?)` of `pawl/ai`; also `timeout`, `retry` and `breaker` of StepOptions",
    defaults: { name: '`"model"`', price: "tokens are counted, nothing else", spend: "a trace of each unit" },
  },
  {
    name: "DurableToolsOptions",
    file: "src/ai/durable-tools.ts",
    about:
      "`durableTools(ctx, tools, options?)` of `pawl/ai`; `DurableAgent` takes them, too, with `price` and `spend`",
    defaults: { effects: '`"write"` for each', approvals: "nobody" },
  },
  {
    name: "ToolEffectOptions",
    file: "src/ai/durable-tools.ts",
    about: "`effects` of `durableTools`, by tool; also `timeout`, `retry`, `spend` and `breaker` of StepOptions",
    defaults: { class: '`"write"`', idempotent: "`false`", detect: "none", undo: "none: it stays" },
  },
  {
    name: "TransactionOptions",
    file: "src/core/sql.ts",
    about: "`ctx.transaction(name, fn, options?)`",
    defaults: {
      key: "the name; `name#2` for its second use",
      timeout: `the workflow's, else ${duration(TIMEOUTS.values.database)}`,
      retry: "the workflow's",
      isolation: '`"read committed"`',
      dry: "what is recorded",
    },
  },
  {
    name: "ApproveOptions",
    file: "src/core/approval.ts",
    about: "`ctx.approve(name, options)`",
    defaults: {
      action: "required",
      approvers: "required",
      evidence: "none",
      risk: '`"medium"`',
      kind: '`"authorisation"`',
      quorum: "1",
      fourEyes: "`false`",
      notBy: "nobody",
      actor: "none",
      policyVersion: "none",
      timeout: duration(DEFAULTS.values.approvalMs),
      validFor: "for ever",
      remind: "never",
      escalate: "none",
      serviceLevels: "the same for every risk",
      autoApprove: "`false`",
      maxDenials: "see MaxDenials",
      onDenied: '`"compensate"`',
      onExpired: '`"escalate"`',
      onChanges: '`"compensate"`',
    },
  },
  {
    name: "MaxDenials",
    file: "src/core/approval.ts",
    about: "`maxDenials` of `ctx.approve(name, options)`",
    defaults: { action: number(DEFAULTS.values.maxDenials), tool: "no limit" },
  },
  {
    name: "ApprovalAction",
    file: "src/core/approval.ts",
    about: "`action` of `ctx.approve(name, options)`",
    defaults: { tool: "required", version: "none", arguments: "required", resources: "none" },
  },
  {
    name: "EscalationLevel",
    file: "src/core/approval.ts",
    about: "`escalate` of `ctx.approve(name, options)`",
    defaults: { after: "required", action: "required", to: "none", notify: "who may decide", revoke: "`false`" },
  },
  {
    name: "ServiceLevel",
    file: "src/core/approval.ts",
    about: "`serviceLevels` of `ctx.approve(name, options)`",
    defaults: { timeout: "the approval's", remind: "the approval's", escalate: "the approval's" },
  },
  {
    name: "ApprovalQuery",
    file: "src/client/approvals.ts",
    about: "`pawl.approvals.list(query?)`",
    defaults: {
      run: "any",
      by: "anybody",
      roles: "any",
      risk: "any",
      cursor: "the first page",
      limit: number(LIMITS.values.listPage),
    },
  },
  {
    name: "Decision",
    file: "src/client/approvals.ts",
    about: "`pawl.approvals.decide(id, decision)`",
    defaults: {
      decision: "required",
      by: "required",
      roles: "none",
      reason: "none",
      from: "none",
      arguments: "none",
      hash: "that of the approval",
      link: "none",
    },
  },
  {
    name: "LinkOptions",
    file: "src/client/approval-links.ts",
    about: "`pawl.links.create(approval, options)`",
    defaults: {
      for: "required",
      roles: "none",
      expires: "with the approval",
      signIn: "only for a role",
      by: "nobody by name",
    },
  },
  {
    name: "LinkDecision",
    file: "src/client/approval-links.ts",
    about: "`pawl.links.decide(token, decision, person?)`",
    defaults: { decision: "required", reason: "none", arguments: "none", hash: "the link's", from: "not known" },
  },
  {
    name: "Trigger",
    file: "src/core/trigger.ts",
    about: "`on` of a workflow, and with `workflow` also `triggers` of `Pawl.open`",
    defaults: { event: "required", where: "any", input: '`"data"`' },
  },
  {
    name: "ReceivedWebhook",
    file: "src/notify/webhook-verification.ts",
    about: "`verifyWebhook(received)` of `pawl/notify`",
    defaults: {
      headers: "required",
      body: "required",
      secret: "required",
      scheme: '`"standard"`',
      dedupe: '`"body"`',
      tolerance: "5 min",
      now: "the system's time",
    },
  },
  {
    name: "CallbackFailure",
    file: "src/client/callbacks.ts",
    about: "`pawl.callbacks.fail(token, failure)` and `pawl.callbacks.revoke(id, failure)`",
    defaults: { reason: "required", detail: "none" },
  },
  {
    name: "WebhookNotifierOptions",
    file: "src/notify/webhook-notifier.ts",
    about: "`webhookNotifier(options)` of `pawl/notify`",
    defaults: {
      url: "required",
      secret: "required",
      name: '`"webhook"`',
      timeout: "10 s",
      allowPrivate: "`false`",
      allowHttp: "`false`",
      resolve: "as the system does",
    },
  },
  {
    name: "CommandNotifierOptions",
    file: "src/notify/command-notifier.ts",
    about: "`commandNotifier(argv, options?)` of `pawl/notify`",
    defaults: { name: '`"command"`', timeout: "30 s" },
  },
  {
    name: "RetryOptions",
    file: "src/core/retry.ts",
    about: "`retry` of a workflow or a step. A number is `max`; `false` means no retries.",
    defaults: {
      max: number(RETRY.values.max),
      base: duration(RETRY.values.baseMs),
      factor: number(RETRY.values.factor),
      cap: `${duration(RETRY.values.capMs)}, or \`base\` where that is longer`,
      jitter: `\`${RETRY.values.jitter}\``,
      on: `\`${JSON.stringify(RETRY.values.on)}\``,
    },
  },
  {
    name: "StartOptions",
    file: "src/client/start.ts",
    about: "`pawl.start(workflow, input, options?)` and `pawl.run(…)`",
    defaults: {
      id: "a new UUIDv7",
      key: "none: every start is a new run",
      tags: "none",
      deadline: `the workflow's (${duration(DEFAULTS.values.runDeadlineMs)})`,
      delay: "none",
      debounce: "none: every start is by itself",
      priority: "0",
      transaction: "none",
      budget: "the workflow's",
      advance: "`false`",
      version: "the newest of a live worker",
      adopted: "nothing",
    },
  },
  {
    name: "StreamOptions",
    file: "src/client/stream.ts",
    about: "`run.stream(options?)`",
    defaults: { key: "all steps", after: "from the beginning" },
  },
  {
    name: "EventsOptions",
    file: "src/client/run-events.ts",
    about: "`run.events(options?)`",
    defaults: { after: "from the beginning" },
  },
  {
    name: "JournalRange",
    file: "src/client/run.ts",
    about: "`run.journal(range?)`",
    defaults: { from: "0", limit: "all" },
  },
  {
    name: "AppOptions",
    file: "src/server/app.ts",
    about: "`createApp(options)` of `pawl/server`: the server without a socket",
    defaults: {
      pawl: "none",
      tenants: "none",
      credentials: "none",
      hosts: "none",
      publicUrl: "none",
      trustProxy: "`false`",
      limits: "as below",
      workflows: "none",
      web: "the one that Pawl brings along",
      hooks: "none",
      logger: "stderr",
    },
  },
  {
    name: "ServeOptions",
    file: "src/server/serve.ts",
    about: "`serve(options)` of `pawl/server`; beside all of AppOptions",
    defaults: { port: "7295", host: "127.0.0.1", user: "the user of this process" },
  },
  {
    name: "ClientOptions",
    file: "src/server/client.ts",
    about: "`createClient(options?)` of `pawl/server/client`",
    defaults: { url: "in a browser: where its page came from", token: "none", csrf: "none", fetch: "the global one" },
  },
  {
    name: "PhasesOptions",
    file: "src/flows/phase-spec.ts",
    about: "`phases(options, list)`; beside all of WorkflowOptions",
    defaults: {
      correlation: "none",
      prefix: '`"wf"`',
      runId: "prefix, name, key and date",
      outputs: "beside a SQLite file, else `.pawl/outputs`",
      onFailed: '`"block"`',
      result: "what each phase gave",
    },
  },
  {
    name: "Phase",
    file: "src/flows/phase-spec.ts",
    about: "`phases(options, list)`; beside all of PhaseStep",
    defaults: { when: "always", steps: "none: the phase is a step itself" },
  },
  {
    name: "PhaseStep",
    file: "src/flows/phase-spec.ts",
    about:
      "a step of a phase; one of `run`, `effect`, `approve`, `manual`, `sleep`, `waitFor`, `call`; also `kind`, `timeout`, `retry`, `spend` and `breaker` of StepOptions",
    defaults: {
      name: "required",
      output: "none: the journal keeps the result",
      recovery: "as `ctx.step` and `ctx.effect`",
      satisfied: "not asked",
      input: "`undefined`",
    },
  },
  {
    name: "ManualOptions",
    file: "src/flows/phase-spec.ts",
    about: "`manual` of a step",
    defaults: { instructions: "required", outputs: "none" },
  },
  {
    name: "AdvanceOptions",
    file: "src/client/advance.ts",
    about: "`pawl.advance(run, options?)`",
    defaults: { to: '`"phase"`', signal: "none" },
  },
  {
    name: "ImportOptions",
    file: "src/client/import.ts",
    about: "`pawl.import(document, options)`",
    defaults: { workflow: "required", outputs: "the working directory", input: "what the document says" },
  },
  {
    name: "Decider",
    file: "src/stores/file/held-documents.ts",
    about: "`pawl.documents.rebuild(run, options)`, and part of the two below",
    defaults: { by: "required", reason: "required" },
  },
  {
    name: "AcceptOptions",
    file: "src/client/documents.ts",
    about: "`pawl.documents.accept(run, options)`",
    defaults: { workflow: "the one that this process works on" },
  },
  {
    name: "FreshOptions",
    file: "src/client/documents.ts",
    about: "`pawl.documents.fresh(run, options)`",
    defaults: { force: "`false`" },
  },
  {
    name: "ScheduleOptions",
    file: "src/client/schedules.ts",
    about: "`pawl.schedule(name, workflow, options)`",
    defaults: {
      cron: "this or `every`",
      every: "this or `cron`",
      zone: '`"UTC"`',
      anchor: "when the schedule was made",
      input: "`undefined`",
      overlap: '`"allow"`',
      misfire: '`"fireOnce"`',
      tags: "none",
      priority: "0",
      deadline: `the workflow's (${duration(DEFAULTS.values.runDeadlineMs)})`,
      version: "the newest of a live worker at each slot",
    },
  },
  {
    name: "Debounce",
    file: "src/client/debounce.ts",
    about: "`debounce` of `pawl.start(workflow, input, options?)`",
    defaults: { key: "required", wait: "required", max: "no limit" },
  },
  {
    name: "WaitOptions",
    file: "src/core/context.ts",
    about: "`ctx.waitFor(signal, options?)` and `ctx.callback(name, options?)`",
    defaults: { timeout: "none", default: "none: a timeout rejects", schema: "not checked" },
  },
  {
    name: "CallOptions",
    file: "src/core/context.ts",
    about: "`ctx.call(workflow, input, options?)` and `ctx.spawn(…)`",
    defaults: {
      key: "the workflow's name; `name#2` for its second use",
      tags: "none",
      priority: "the parent's",
      budget: "the workflow's",
    },
  },
  {
    name: "MapOptions",
    file: "src/core/context.ts",
    about: "`ctx.map(items, fn, options?)`. `partial: true` lets the others go on when an item fails.",
    defaults: { concurrency: "all items" },
  },
  {
    name: "WriteFileOptions",
    file: "src/guards/write-file.ts",
    about: "`writeFile(path, content, options?)` of `pawl/guards`",
    defaults: { before: "no undo" },
  },
  {
    name: "CommentOptions",
    file: "src/guards/comment.ts",
    about: "`comment(options)` of `pawl/guards`",
    defaults: {
      list: "required",
      post: "required",
      text: "required",
      read: "itself, its `body` or its `text`",
      marker: "an HTML comment",
      remove: "no undo",
    },
  },
  {
    name: "GitCommitOptions",
    file: "src/guards/git-commit.ts",
    about: "`gitCommit(options)` of `pawl/guards`",
    defaults: {
      cwd: "required",
      message: "required",
      paths: "what is staged",
      resultFile: "no file",
      allowEmpty: "`false`",
      undo: "`false`",
    },
  },
  {
    name: "CreateIfAbsentOptions",
    file: "src/guards/create-if-absent.ts",
    about: "`createIfAbsent(options)` of `pawl/guards`",
    defaults: { find: "required", create: "required", lock: "none" },
  },
  {
    name: "NotifyOnceOptions",
    file: "src/guards/notify-once.ts",
    about: "`notifyOnce(options)` of `pawl/guards`",
    defaults: { sent: "required", send: "required" },
  },
  {
    name: "InsertOnceOptions",
    file: "src/guards/insert-once.ts",
    about: "`insertOnce(options)` of `pawl/guards`",
    defaults: {
      db: "required",
      table: "required",
      schema: "as the database finds it",
      keyColumn: "required",
      row: "required",
      returning: "none",
      undo: "`false`",
    },
  },
  {
    name: "SessionOptions",
    file: "src/agent/session.ts",
    about: "`new Session(options)` of `pawl/agent`",
    defaults: {
      id: "required",
      createdAt: "required",
      tags: "none",
      parent: "none",
      slices: "only which sections of the prompt were opened",
      log: "nobody",
    },
  },
  {
    name: "SliceOptions",
    file: "src/agent/slice.ts",
    about: "`slice(name, options?)` of `pawl/agent`",
    defaults: {
      version: "1",
      schema: "none",
      policy: '`"state"`',
      initial: "nothing",
      migrate: "none",
      formerly: "none",
      on: "none",
    },
  },
  {
    name: "RestoreOptions",
    file: "src/agent/restore.ts",
    about: "`session.restore(snapshot, options?)` of `pawl/agent`",
    defaults: { onUnknownSlice: '`"error"`', logs: '`"keep"`' },
  },
  {
    name: "SubscribeOptions",
    file: "src/agent/bus.ts",
    about: "`bus.subscribe(type, handler, options?)` of `pawl/agent`",
    defaults: { session: "all" },
  },
  {
    name: "CheckpointTriggerOptions",
    file: "src/agent/trigger.ts",
    about: "`checkpointTrigger(options?)` of `pawl/agent`",
    defaults: { events: "`[UpdateStep]`" },
  },
  {
    name: "PromptSpec",
    file: "src/agent/prompt.ts",
    about: "`prompt(spec)` of `pawl/agent`",
    defaults: {
      namespace: "required",
      key: "required",
      version: '`"1.0.0"`',
      sections: "required",
      output: "any text",
      params: "not checked",
    },
  },
  {
    name: "SectionSpec",
    file: "src/agent/section.ts",
    about: "`section(spec)` of `pawl/agent`",
    defaults: {
      title: "required",
      key: "required",
      body: "required",
      visibility: '`"full"`',
      summary: "none",
      tools: "none",
      enabled: "always",
    },
  },
  {
    name: "PlanningSectionOptions",
    file: "src/agent/planning-section.ts",
    about: "`planningSection(options?)` of `pawl/agent`",
    defaults: { strategy: '`"plan-act-reflect"`', durable: "`true`" },
  },
  {
    name: "ResultsSectionOptions",
    file: "src/agent/progress-section.ts",
    about: "`resultsSection(options)` of `pawl/agent`",
    defaults: { title: "required", key: "required", slice: "required", line: "required" },
  },
  {
    name: "AgentOptions",
    file: "src/agent/agent.ts",
    about: "`agent(options)` of `pawl/agent`, beside `WorkflowOptions` and `RoundOptions`",
    defaults: {
      model: "required",
      prompt: "required",
      session: "one with a plan",
      durability: '`"perCall"`',
      checkpoint: "when a step of the plan is done",
      completion: '`"planDone"` if the prompt has planning tools, else `"returned"`',
      approvals: "nobody is asked, unless the tool says so",
      escalation: "nobody is asked: the run fails",
      outcomeTools: "`true`",
      bus: "nobody hears of them",
      breaker: "none",
    },
  },
  {
    name: "RoundOptions",
    file: "src/agent/evaluate.ts",
    about: "`agent(options)` and `modelAdapter(model, options?)` of `pawl/agent`",
    defaults: {
      tools: "those of the prompt",
      allow: "all",
      maxRounds: "100",
      noProgress: "`{ repeats: 3, same: 10, refused: 10 }`",
      settings: "the provider's",
      reserve: "by the length of the conversation",
      price: "none",
      stream: "`false`",
    },
  },
  {
    name: "StallOptions",
    file: "src/agent/stall.ts",
    about: "`noProgress` of agents",
    defaults: { repeats: "3", same: "10", refused: "10" },
  },
  {
    name: "ToolFacts",
    file: "src/agent/tool.ts",
    about: "`tool(spec)` of `pawl/agent`: what a tool is",
    defaults: {
      name: "required",
      description: "required",
      class: "required",
      idempotent: "`false`",
      approval: "the agent's policy for its class",
      version: "none",
      timeout: "45 s",
      retry: "the workflow's; none for what could happen twice",
      breaker: "none",
      spend: "nothing",
      inOrder: "`false`",
    },
  },
  {
    name: "ToolSpec",
    file: "src/agent/tool.ts",
    about: "`tool(spec)` of `pawl/agent`: what it does",
    defaults: { input: "required", output: "none", run: "required", detect: "none", undo: "none" },
  },
  {
    name: "QuestionSpec",
    file: "src/agent/question.ts",
    about: "`question(spec)` of `pawl/agent`: a tool that a signal answers",
    defaults: {
      name: "required",
      description: "required",
      input: "required",
      signal: "required",
      timeout: "as long as the run may",
      schema: "none",
      output: "none",
    },
  },
  {
    name: "McpToolsOptions",
    file: "src/agent/mcp-tools.ts",
    about: "`mcpTools(client, options?)` of `pawl/agent`",
    defaults: {
      allow: "all",
      class: "by what the server says",
      approval: "the agent's policy for its class",
      prefix: "nothing",
    },
  },
  {
    name: "LoopOptions",
    file: "src/agent/loop.ts",
    about: "`new AgentLoop(options)` and `new DurableLoop(options)` of `pawl/agent`",
    defaults: {
      adapter: "required",
      bus: "one of its own",
      session: "one with a plan",
      prompt: "required",
      deadline: "none",
      budget: "no limit",
      retry: "see RetryOptions",
      log: "stderr",
      clock: "the system's",
    },
  },
  {
    name: "DurableLoopRules",
    file: "src/agent/durable-loop.ts",
    about:
      "`new DurableLoop(options)` of `pawl/agent`, beside `LoopOptions` and `directory: { root, worker }` or `store`",
    defaults: {
      trigger: "`checkpointTrigger()`",
      request: "not checked",
      completion: '`"planDone"` with planning tools, else `"returned"`',
      checkpoint: "see CheckpointOptions",
      onRequestDiffers: '`"warn"`',
      onRepeatedRequest: '`"begin"`',
      onUnknownSlice: '`"error"`',
      onCorruptCheckpoint: '`"fallback"`',
      whileRunning: '`"refuse"`',
      resumeInProcess: "`false`",
      restartStarted: "`true`",
      maxAge: "any age",
      onClear: '`"archive"`',
    },
  },
  {
    name: "CheckpointOptions",
    file: "src/agent/checkpoint-writer.ts",
    about: "`checkpoint` of a `DurableLoop`, beside `SaveOptions`",
    defaults: { async: "`false`", onFailure: '`"warn"`' },
  },
  {
    name: "SaveOptions",
    file: "src/agent/checkpoint-store.ts",
    about: "`checkpoint` of a `DurableLoop`, and `store.saveCheckpoint(checkpoint, options?)`",
    defaults: { compress: "`false`", incremental: "always everything", history: "1" },
  },
  {
    name: "KeyValueStoreOptions",
    file: "src/agent/key-value-store.ts",
    about: "`keyValueStore(server, options)` of `pawl/agent`",
    defaults: { worker: "required", prefix: '`"workers/"`', lease: "30 s", clock: "the system's" },
  },
  {
    name: "MailboxOptions",
    file: "src/agent/mailbox.ts",
    about: "`mailbox(options)` of `pawl/agent`; also `version`, `deadline` and `owner` of `WorkflowOptions`",
    defaults: {
      name: "required",
      handler: "required",
      maxDeliveries: "5",
      backoff: "n minutes, at most 15",
      immediate: "`refused`, `schema_mismatch`, `invalid_argument`",
      never: "none",
      capacity: "any number",
      reply: "nobody is told",
      onDeadLetter: "nobody is told",
    },
  },
  {
    name: "DetectorTest",
    file: "src/testing/check-detector.ts",
    about: "`checkDetector(test)` and `detectorTest(test)` of `pawl/testing`",
    defaults: { effect: "required", key: '`"run-1/effect"`', recorder: "none", observe: "none" },
  },
  {
    name: "LintOptions",
    file: "src/testing/lint-effects.ts",
    about: "`lintEffects(workflow, input, options?)` of `pawl/testing`",
    defaults: { recorder: "none", script: "none", plays: "none", workflows: "none", fresh: "none" },
  },
  {
    name: "LintPlay",
    file: "src/testing/lint-effects.ts",
    about: "`plays` of `lintEffects(workflow, input, options?)`",
    defaults: { input: "that of the first play", script: "none" },
  },
  {
    name: "CrashOptions",
    file: "src/testing/crash-everywhere.ts",
    about: "`crashEverywhere(workflow, input, options?)` of `pawl/testing`",
    defaults: {
      modes: "all three",
      pairs: "`false`",
      at: "all points",
      seed: "1",
      budgetMs: "none",
      workflows: "none",
      script: "none",
      fresh: "none",
      observe: "none",
      encryption: "nothing is sealed",
      recorder: "none",
    },
  },
];

// Options that say enough by their name.
const MEANINGS = {
  "PawlOptions.clock": "Where time comes from.",
  "StepOptions.retry": "Which errors are tried again, and when.",
  "StartOptions.tags": "To find the run by.",
  "WaitOptions.default": "What the wait resolves with when its time is over.",
  "BudgetOptions.tokens": "Of models.",
  "CallOptions.tags": "To find the child by.",
  "CallOptions.priority": "Higher goes first.",
};

function optionsPage() {
  const sections = INTERFACES.map(({ name, file, about, defaults }) => {
    const rows = membersOf(read(file), name).map((member) => optionRow(name, member, defaults));
    const unknown = Object.keys(defaults).filter((option) => !rows.some((row) => row.option === option));
    if (unknown.length > 0)
      throw new Error(`${name} has no option ${unknown.join(", ")}: correct scripts/reference.mjs.`);
    const lines = rows.map((row) => `| \`${row.option}\` | \`${row.type}\` | ${row.fallback} | ${row.meaning} |`);
    return [`## ${name}`, "", about, "", "| Option | Type | Default | Meaning |", "|---|---|---|---|", ...lines].join(
      "\n",
    );
  });
  return `${[
    "# Options",
    "Every option and its default. This page is generated from the sources by `node scripts/reference.mjs`.",
    'A duration is a number of milliseconds, or text such as `"90s"`, `"1h 30m"`, `"3 days"`.',
    ...sections,
    "## Fixed values",
    "Not options: what the engine does in any case, each with its reason.",
    fixedTable("Limits", LIMITS),
    fixedTable("Rhythms and defaults", DEFAULTS),
  ].join("\n\n")}\n`;
}

function optionRow(owner, { option, type, doc, isOptional }, defaults) {
  const fallback = defaults[option];
  if (fallback === undefined) throw new Error(`${owner}.${option} has no default in scripts/reference.mjs.`);
  if (!isOptional && fallback !== "required") throw new Error(`${owner}.${option} is required.`);
  const meaning = doc || MEANINGS[`${owner}.${option}`];
  if (!meaning) throw new Error(`${owner}.${option} is not explained: give it a comment.`);
  assertAgree(`${owner}.${option}`, meaning, fallback);
  const told = meaning.replace(/ ?Default(?! for):? [^.]*(\.\d[^.]*)*\.(?= |$)/, "");
  return {
    option,
    type: cell(type),
    fallback,
    meaning: cell(told),
  };
}

/** A comment that names a figure must name the one in the code. */
function assertAgree(what, doc, fallback) {
  const [, said] = /\bDefault ([\d,]+(?:\.\d+)?(?: [a-z]+)?)\.(?: |$)/.exec(doc) ?? [];
  if (said === undefined || said === fallback) return;
  throw new Error(`The comment of ${what} says "${said}", the code "${fallback}".`);
}

function fixedTable(title, { values, docs }) {
  const rows = Object.entries(values).map(([name, value]) => {
    const shown = /Ms$/.test(name) ? duration(value) : number(value);
    return `| \`${name}\` | ${shown} | ${cell(docs[name] ?? "")} |`;
  });
  return [`| ${title} | Value | Why |`, "|---|---|---|", ...rows].join("\n");
}

/** The members of an exported interface: name, type, comment. */
function membersOf(text, name) {
  const start = text.search(new RegExp(`^export interface ${name}\\b[^{]*\\{`, "m"));
  if (start < 0) throw new Error(`There is no interface ${name}.`);
  const body = text.slice(text.indexOf("{\n", start) + 2, text.indexOf("\n}\n", start) + 1);
  const member =
    /(?: {2}\/\*\*([\s\S]*?)\*\/\n)? {2}(?:readonly (\w+)(\?)?: ([^;]*(?:\{[^}]*\}[^;]*)*)|(\w+)(\?)?(\([^;]*\)): ([^;)]*(?:\([^)]*\))?[^;)]*));\n/g;
  return [...body.matchAll(member)].map(
    ([, doc = "", option, optional, type, method, isOptional, given, returned]) => ({
      option: option ?? method,
      type: (type ?? `${given} => ${returned}`).replaceAll("readonly ", "").replaceAll(/\s+/g, " "),
      doc: plain(doc),
      isOptional: (optional ?? isOptional) !== undefined,
    }),
  );
}

/** The figures of an exported constant, flat, with the comments above them. */
function constantsIn(text, name) {
  const start = text.search(new RegExp(`^export const ${name}\\b[^=]*= \\{`, "m"));
  const inline = /^[^\n]*\{ (.*) \} as const;/.exec(text.slice(start))?.[1];
  const body =
    inline === undefined ? text.slice(text.indexOf("{\n", start) + 2, text.indexOf("\n}", start) + 1) : `${inline},`;
  const [values, docs] = [{}, {}];
  const entry = /(?:\/\*\*([\s\S]*?)\*\/\s*)?\b(\w+): (\{[^}]*\}|[^,\n]+),/g;
  for (const [, doc = "", key, value] of body.matchAll(entry)) {
    if (value.startsWith("{")) {
      for (const [, inner, figure] of value.matchAll(/(\w+): ([\d_]+)/g)) {
        values[`${key}.${inner}`] = literal(figure);
        docs[`${key}.${inner}`] = plain(doc);
      }
    } else {
      values[key] = literal(value);
      docs[key] = plain(doc);
    }
  }
  if (Object.keys(values).length === 0) throw new Error(`${name} has no figures.`);
  return { values, docs };
}

function literal(text) {
  return JSON.parse(text.replaceAll("_", "").trim());
}

/** A comment as one line, without the ids of rules. */
function plain(doc) {
  return doc
    .replaceAll(/^\s*\*? ?/gm, " ")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/ \((?:[A-Z]\d*-?\d+(?:, )?)+\)/g, "")
    .trim();
}

function cell(text) {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}

function number(value) {
  return value.toLocaleString("en");
}

function duration(ms) {
  const units = [
    ["day", 86_400_000],
    ["min", 60_000],
    ["s", 1000],
  ];
  for (const [unit, size] of units) {
    if (ms < size || ms % size !== 0) continue;
    // 60 s reads better than 1 min, and 90 s has no other name.
    if (unit === "min" && ms < 120_000) continue;
    return `${number(ms / size)} ${unit}${unit === "day" && ms > size ? "s" : ""}`;
  }
  return `${ms} ms`;
}

async function cliPage() {
  const program = await commandLine();
  const top = helpOf(program);
  const commands = commandsOf(program).flatMap((command) => [command, ...commandsOf(command)]);
  const [overview = "", codes = ""] = top.split(/\n(?=Exit codes:)/);
  return `${[
    "# Command line",
    "This page is the command's own help, collected by `node scripts/reference.mjs`.",
    fenced(overview),
    "## Exit codes",
    fenced(codes),
    ...commands.map((command) => `## pawl ${wordsOf(command).join(" ")}\n\n${fenced(helpOf(command))}`),
  ].join("\n\n")}\n`;
}

/** The built command line, kept from parsing anything: to load it once for each of its helps would take most of the time. */
async function commandLine() {
  const { parseAsync } = Command.prototype;
  const { exit } = process;
  let program = null;
  Command.prototype.parseAsync = async function keep() {
    program = this;
  };
  // A command ends with it.
  process.exit = () => {};
  await import(new URL("../dist/cli/main.js", import.meta.url).href);
  Command.prototype.parseAsync = parseAsync;
  process.exit = exit;
  return program;
}

/** Those below it that its help names, in that order. */
function commandsOf(command) {
  const visible = command.createHelp().visibleCommands(command);
  return visible.filter((one) => one.name() !== "help");
}

function wordsOf(command) {
  return command.parent === null ? [] : [...wordsOf(command.parent), command.name()];
}

/** What it prints when it is asked for help. */
function helpOf(command) {
  let printed = "";
  const print = (text) => {
    printed += text;
  };
  const plain = { writeOut: print, getOutHelpWidth: () => 80, getOutHasColors: () => false };
  const before = command.configureOutput();
  command.configureOutput(plain).outputHelp();
  command.configureOutput(before);
  return printed.trim();
}

function fenced(text) {
  return `\`\`\`text\n${text.trim()}\n\`\`\``;
}

const [, , flag, page] = process.argv;
if (flag === "--print") process.stdout.write(await PAGES[page]());
else for (const [path, make] of Object.entries(PAGES)) writeFileSync(join(root, path), await make());
