// What a server takes on. Every limit has its reason; all can be given with `limits`.

/** So many at once, and after that so many a second. */
export interface Bucket {
  readonly burst: number;
  readonly perSecond: number;
}

export interface ServerLimits {
  /** The longest body of a request. */
  readonly bodyBytes: number;
  /** How deep JSON may be nested. */
  readonly jsonDepth: number;
  /** All headers of a request together. */
  readonly headerBytes: number;
  /** How long the headers, and the whole of a request, may take to arrive. */
  readonly headersMs: number;
  readonly requestMs: number;
  /** How long an unused connection is kept. */
  readonly keepAliveMs: number;
  readonly connections: number;
  /** Requests of one credential. */
  readonly perCredential: Bucket;
  /** Requests of all credentials of one store. */
  readonly perTenant: Bucket;
  /** Requests of one address that has not signed in. */
  readonly perAddress: Bucket;
  /** Refusals of senders without a credential that the audit log has one by one: of one address, and of all. The rest are counted there. */
  readonly refusalsPerAddress: Bucket;
  readonly refusals: Bucket;
  /** Event streams that are open at once: in all, of one store, and of one credential. */
  readonly streams: number;
  readonly streamsPerTenant: number;
  readonly streamsPerCredential: number;
  /** A reader of events who takes nothing for so long is cut off. */
  readonly streamStallMs: number;
  /** A quiet event stream says so often that it is there. */
  readonly pingMs: number;
  readonly sessions: number;
  /** A session that nobody has used for so long is over. */
  readonly sessionIdleMs: number;
}

export const SERVER_LIMITS: ServerLimits = {
  // What a journal takes as one value is more, but such inputs belong into a file that the input names.
  bodyBytes: 1_048_576,
  jsonDepth: 64,
  headerBytes: 16_384,
  // A person on a bad line sends headers within a second; whoever takes longer holds a connection for its own sake.
  headersMs: 10_000,
  requestMs: 30_000,
  keepAliveMs: 15_000,
  connections: 4096,
  // A page asks a dozen things when it opens; a script that asks more than a hundred times a second should stream.
  perCredential: { burst: 400, perSecond: 100 },
  perTenant: { burst: 2000, perSecond: 500 },
  perAddress: { burst: 60, perSecond: 10 },
  // Enough to see what somebody tries; a log that strangers can fill is read by nobody.
  refusalsPerAddress: { burst: 5, perSecond: 5 / 60 },
  refusals: { burst: 100, perSecond: 1 },
  streams: 2048,
  // One store never has all of them.
  streamsPerTenant: 1024,
  streamsPerCredential: 512,
  streamStallMs: 30_000,
  // Proxies close what is silent for a minute.
  pingMs: 15_000,
  sessions: 10_000,
  sessionIdleMs: 43_200_000,
};
