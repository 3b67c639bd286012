// Every limit and default of the engine in one place, each with its reason. Times are milliseconds.

export const LIMITS = {
  /** One encoded value (64 MiB). Larger ones belong in files or object stores, with the journal holding the address. */
  valueBytes: 67_108_864,
  /** What the engine writes around a value (names, ids, digests) does not count: a value within its limit is always recorded. */
  envelopeBytes: 65_536,
  /** The reason of a cancel: a sentence for people, copied to every child. */
  reasonBytes: 4096,
  /** Values above this are compressed; below it brotli costs more than it saves. */
  compressAboveBytes: 4096,
  /** Entries in one commit: keeps the time that a single sync holds the lock bounded. */
  commitEntries: 8192,
  /** Runs that go on between two commits: bounds the steps that a crash makes run again. More would hardly be faster. */
  sliceRuns: 128,
  /** How long replay waits for a recorded call that the body has not issued, in case it awaits something slow of its own (P3). */
  replayStallMs: 60_000,
  /** How long a cancelled body may take to end before the run is closed without it. */
  cancelGraceMs: 30_000,
  /** A sleeping pass stays in memory if it is due this soon and others do not need its place: replaying it would cost more (P33). */
  lingerMs: 1000,
  /** How long a run rests at first, and at most, while others have reserved what is left of its budget. */
  budgetPauseMs: 1000,
  budgetPauseMaxMs: 30_000,
  /** Deaths without progress after which a run is a suspect and runs alone: one death of a process may hit a thousand good runs (P28). */
  deathsAmongOthers: 2,
  /** Deaths alone and without progress after which a run is parked (P28). */
  deathsAlone: 3,
  /** How many runs one claim may bring: bounds the journal bytes read at once. */
  claimBatch: 64,
  /** How many lines of waiting runs one claim compares; of more than that, it goes through some each time, in turn. */
  linesPerClaim: 500,
  /** Runs without a worker of their version that one look parks, of each version. */
  parkBatch: 200,
  /** Parked runs that one look goes through, to see whether this worker can go on with them. */
  settleBatch: 200,
  /** Progress reports of one run are written at most this often. */
  progressEveryMs: 200,
  /** One chunk of a stream (256 KiB): a piece of what a step tells on the way. What is larger belongs in its result. */
  chunkBytes: 262_144,
  /** Chunks are written at most this often: a reader sees them soon, and a thousand tokens a second are twenty writes. */
  streamEveryMs: 50,
  /** They are written sooner once so many bytes wait (64 KiB): what is in memory only is lost with the process. */
  streamBatchBytes: 65_536,
  /** Chunks in one write: keeps the time that it holds the store's lock bounded. */
  streamBatchChunks: 2000,
  /** What one attempt may have waiting to be written (16 MiB): a store that is away must not fill the memory. */
  streamBacklogBytes: 16_777_216,
  /** Entries and chunks that a reader of streams asks for at once: bounds what it has in memory. */
  streamPage: 256,
  /** Page size of lists, and the most that may be asked for. */
  listPage: 50,
  listPageMax: 1000,
  /** The shortest interval of a schedule: below it a loop in a workflow is cheaper and as good. */
  everyMs: 1000,
  /** The shortest time between two reminders of an approval: each is an entry and a notification. */
  remindMs: 60_000,
  /** How much longer than its link the run lives that keeps it: time to end by itself. A day. */
  linkGraceMs: 86_400_000,
  /** A slot that is found later than this counts as missed: time enough for a restart or a take-over. */
  misfireMs: 60_000,
  /** Missed slots that `misfire: "catchUp"` makes up for, the newest of them; older ones are skipped, and that is told. */
  catchUpSlots: 1000,
  /** Missed slots that are counted one by one under the other policies. */
  missedSlots: 100,
  /** How far back missed slots are looked for at first. */
  slotLookMs: 60_000,
  /** Slots of a schedule that may wait for the run before them. */
  queuedSlots: 1000,
  /** How often a schedule looks whether the run that its queue waits for has ended. */
  queueLookMs: 1000,
  /** When a schedule that could not be settled is tried again. */
  scheduleRetryMs: 30_000,
  /** How long a change of a schedule that one worker cannot read is left to others, before it is left out. An hour. */
  changePatienceMs: 3_600_000,
  /** Messages that one run of the alerts takes: the store remembers the ids of all of them until it ends. */
  alertMessages: 500,
  /** Actions that the next run of the alerts is told of, the newest: it begins with a copy of them. */
  alertActions: 2000,
  /** How long what one worker has no key for is left to others, before it is given up. An hour. */
  alertPatienceMs: 3_600_000,
  /** How long runs of the alerts are kept that have ended: the next one knows what they knew. An hour. */
  alertKeptMs: 3_600_000,
  /** Reports in one message: bounds what a worker has in memory while the store is away, too. */
  reportsPerMessage: 500,
  /** How long reports are gathered before they are sent. */
  reportEveryMs: 1000,
  /** How far back a look for alerts goes through journals for what a process may have left untold. A day. */
  lookBackMs: 86_400_000,
  /** How many entries it reads for that. */
  lookBackEntries: 50_000,
  /** Open waits that one look for alerts goes through. */
  alertLook: 1000,
} as const;

/** Time given to one attempt of a step, by what it does (S4-24). */
export const STEP_TIMEOUTS_MS = { model: 90_000, api: 45_000, database: 15_000, code: 60_000 } as const;

export const DEFAULTS = {
  /** Whole run: 14 days. */
  runDeadlineMs: 1_209_600_000,
  /** How long a decision may take: 48 hours. */
  approvalMs: 172_800_000,
  /** How often people may deny the very same action before a run may not ask them again. */
  maxDenials: 3,
  /** How long a notification is worth sending: a day. */
  notifyMs: 86_400_000,
  leaseMs: 15_000,
  /** A process whose event loop has not moved for this long loses its runs (P26). */
  stallMs: 300_000,
  /** Runs in memory at once. */
  concurrency: 1024,
  /** How often to look for work when no hint came. */
  pollMs: 1000,
  /** How often to look for dead workers. */
  sweepMs: 5000,
  /** How often to look for orphans and for runs past their retention. */
  housekeepingMs: 60_000,
  /** How long runs may find no worker with their version before they are parked: a rolling deployment is no mismatch. 5 minutes. */
  versionGraceMs: 300_000,
  drainMs: 10_000,
  /** 30 and 90 days. */
  retention: { succeededMs: 2_592_000_000, failedMs: 7_776_000_000 },
} as const;
