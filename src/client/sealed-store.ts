// The sealed store
// A store whose rows hold nothing of a user's that can be read. Values go through the codec before they come here; this is for what stands beside them:
// progress, cost, stop reasons, reasons of cancels and holds, what waits are about, digests of inputs, what the audit log says beside who did what, and
// with `names` every name that users choose.
//
//   SS1. What goes in is sealed with its place, what comes out is opened; the store between knows nothing of it, and neither do those who use it.
//   SS2. What cannot be opened comes out as it is kept: no row can keep a worker from its other runs. Whoever needs the value is told (`readField`).
//   SS3. Names are sealed so that the same name is the same text: the store compares them, finds by them and holds them apart as before.
import type { FieldAddress, NameSealer } from "../base/envelope.ts";
import { hasCode } from "../base/errors.ts";
import { type AuditRecord, assertAudit, type NewAudit } from "../core/audit.ts";
import { assertHold, type HoldRow, type NewHold } from "../core/holds.ts";
import type { RunFilter } from "../core/run-query.ts";
import type {
  ClaimedRun,
  FenceReply,
  InboxRow,
  KeyRow,
  Mail,
  Message,
  Needs,
  NewChild,
  NewKey,
  NewRun,
  ParentLink,
  RowPatch,
  RunCommit,
  RunRow,
  Sealed,
  StateRow,
  Store,
  Verdict,
  WaitChange,
  WaitKind,
  WaitRow,
} from "../core/store.ts";
import type { Keyring } from "./keyring.ts";

/** The engine's own words, which say nothing about anybody. */
const OWN_REASONS: ReadonlySet<string> = new Set(["completed", "cancelled", "error", "deadline_exceeded"]);
/** Waits that the engine names itself: by reasons, slots and rates. */
const OWN_WAITS: ReadonlySet<WaitKind> = new Set<WaitKind>(["decision", "slot", "rate"]);

/** In front of what was changed or moved, for whoever looks at it. */
const REFUSED = "refused: ";

const PLAIN: NameSealer = { seal: (name) => name, open: (text) => text };

/** What carries no value goes straight through, and so does what only some stores have. */
export function sealedStore(store: Store, keyring: Keyring): Store {
  const sealing = new Sealing(keyring);
  const own: Partial<Store> = {
    ...reads(store, sealing),
    ...writes(store, sealing),
    ...keeps(store, sealing),
    ...transacts(store, sealing),
    ...NO_FILES,
  };
  const sealed = new Proxy(own as Store, {
    get(target, name: keyof Store) {
      if (name in target) return target[name];
      const value: unknown = store[name];
      return typeof value === "function" ? value.bind(store) : value;
    },
    // Some methods are looked for by name before they are called.
    has: (target, name) => name in target || name in store,
  });
  plainStores.set(sealed, { store, keyring });
  return sealed;
}

/** Files of runs are for people to read: where values are sealed, results are in the journal alone. */
const NO_FILES: Partial<Store> = { files: undefined } as unknown as Partial<Store>;

const plainStores = new WeakMap<Store, { readonly store: Store; readonly keyring: Keyring }>();

/** The store as it is, for whoever wants to see what is kept. */
export function plainStoreOf(store: Store): Store {
  return plainStores.get(store)?.store ?? store;
}

/** Whether its values are sealed, and yet what is not is read as well. */
export function readsPlain(store: Store): boolean {
  return plainStores.get(store)?.keyring.readsPlain === true;
}

function reads(store: Store, sealing: Sealing): Partial<Store> {
  return {
    run: async (id) => orNull(await store.run(id), (row) => sealing.openRow(row)),
    runs: async (query) =>
      (await store.runs({ ...query, ...sealedFilter(query, sealing) })).map((row) => sealing.openRow(row)),
    counts: (filter, bound) => store.counts({ ...filter, ...sealedFilter(filter, sealing) }, bound),
    inbox: async (run) => (await store.inbox(run)).map((row) => sealing.openInbox(row)),
    waits: async ({ name, after, ...query }) => {
      const isOwn = query.kind !== undefined && OWN_WAITS.has(query.kind);
      const named = {
        ...(name !== undefined && { name: isOwn ? name : sealing.names.seal(name) }),
        ...(after !== undefined && { after: { run: after.run, key: sealing.names.seal(after.key) } }),
      };
      return (await store.waits({ ...query, ...named })).map((row) => sealing.openWait(row));
    },
    state: async (run) => (await store.state(run)).map((row) => ({ ...row, key: sealing.names.open(row.key) })),
    key: async (space, key) => {
      const row = await store.key(space, sealing.names.seal(key));
      return orNull(row, (held) => sealing.openKey(held, space, key));
    },
    claim: async (request) => (await store.claim(request)).map((claimed) => sealing.openClaimed(claimed)),
    take: async (worker, run, options) =>
      orNull(await store.take(worker, run, options), (claimed) => sealing.openClaimed(claimed)),
    owned: async (worker, options) => (await store.owned(worker, options)).map((mail) => sealing.openMail(mail)),
    fence: async (request): Promise<FenceReply> => {
      const reply = await store.fence(request);
      return { ...reply, moved: reply.moved.map((mail) => sealing.openMail(mail)) };
    },
  };
}

/** What of a filter the store compares with names. */
function sealedFilter({ tag, slot }: RunFilter, sealing: Sealing): Pick<RunFilter, "tag" | "slot"> {
  return {
    ...(tag !== undefined && { tag: sealing.names.seal(tag) }),
    ...(slot !== undefined && { slot: sealing.need(slot) }),
  };
}

function writes(store: Store, sealing: Sealing): Partial<Store> {
  return {
    commit: async (commit) => {
      const verdicts = await store.commit({ ...commit, runs: commit.runs.map((part) => sealing.sealCommit(part)) });
      return verdicts.map((verdict, index) => sealing.openVerdict(verdict, commit.runs[index]));
    },
    deliver: (message) => store.deliver(sealing.sealMessage(message)),
  };
}

/** What operators do. The chain of the audit log is over what is kept: whoever checks it reads the store as it is. */
function keeps(store: Store, sealing: Sealing): Partial<Store> {
  return {
    record: async (entry) => {
      assertAudit(entry);
      return sealing.openAudit(await store.record(sealing.sealAudit(entry)));
    },
    audits: async (query) => (await store.audits(query)).map((record) => sealing.openAudit(record)),
    hold: async (run, hold) => {
      assertHold(hold);
      return orNull(await store.hold(run, sealing.sealHold(run, hold)), (row) => sealing.openHold(row));
    },
    releaseHold: async (run) => orNull(await store.releaseHold(run), (row) => sealing.openHold(row)),
    holds: async (query) => (await store.holds(query)).map((row) => sealing.openHold(row)),
  };
}

/** What only some stores have. */
function transacts(store: Store, sealing: Sealing): Partial<Store> {
  const { transact, enlist } = store;
  return {
    ...(transact !== undefined && {
      transact: async (request, work) => {
        let part: RunCommit | undefined;
        const seal = (sealed: Sealed): Sealed => {
          part = sealed.commit;
          return { ...sealed, commit: sealing.sealCommit(sealed.commit) };
        };
        const verdict = await transact.call(store, request, (sql) => {
          const sealed = work(sql);
          return "then" in sealed ? sealed.then(seal) : seal(sealed);
        });
        return sealing.openVerdict(verdict, part);
      },
    }),
    ...(enlist !== undefined && {
      // It throws at once where the transaction is none of its own, and so must this.
      enlist: (transaction, commit) =>
        enlist
          .call(store, transaction, sealing.sealCommit(commit))
          .then((verdict) => sealing.openVerdict(verdict, commit)),
    }),
  };
}

function orNull<T, R>(row: T | null, open: (row: T) => R): R | null {
  return row === null ? null : open(row);
}

class Sealing {
  readonly #keyring: Keyring;
  readonly names: NameSealer;

  constructor(keyring: Keyring) {
    this.#keyring = keyring;
    this.names = keyring.names ?? PLAIN;
  }

  /** Behind the name of its workflow, which the store looks at, a slot or a rate has a key of the user's making. */
  need(text: string): string {
    return mapBehindSlash(text, (key) => this.names.seal(key));
  }

  sealCommit(part: RunCommit): RunCommit {
    const { run, create, row, children, messages, waits, state, keys } = part;
    return {
      ...part,
      ...(create !== undefined && { create: this.#sealNew(create) }),
      ...(row !== undefined && { row: this.#sealPatch(run, row) }),
      ...(children !== undefined && { children: children.map((child) => this.#sealChild(child)) }),
      ...(messages !== undefined && { messages: messages.map((message) => this.sealMessage(message)) }),
      ...(waits !== undefined && { waits: waits.map((change) => this.#sealWait(run, change)) }),
      ...(state !== undefined && { state: state.map((one): StateRow => ({ ...one, key: this.names.seal(one.key) })) }),
      ...(keys !== undefined && { keys: keys.map((key) => this.#sealKey(key)) }),
    };
  }

  /** The reason of a cancel is kept in the row of the run that it is for. */
  sealMessage(message: Message): Message {
    const { kind, to, data, name } = message;
    if (kind !== "cancel") return { ...message, name: name === "" ? name : this.names.seal(name) };
    return { ...message, data: typeof data === "string" ? this.#keyring.seal(data, rowField(to, "cancel")) : data };
  }

  #sealNew(create: NewRun): NewRun {
    const { key, tags, parent, needs } = create;
    return {
      ...create,
      key: orNull(key, this.names.seal),
      tags: tags.map(this.names.seal),
      parent: orNull(parent, (link): ParentLink => ({ ...link, key: this.names.seal(link.key) })),
      ...(needs != null && { needs: this.#sealNeeds(needs) }),
    };
  }

  #sealChild(child: NewChild): NewChild {
    return { ...child, create: this.#sealNew(child.create) };
  }

  #sealNeeds({ slot, rate }: Needs): Needs {
    return { slot: this.need(slot), rate: orNull(rate, (text) => this.need(text)) };
  }

  #sealPatch(run: string, patch: RowPatch): RowPatch {
    const { progress, cost, stopReason, needs } = patch;
    const seal = (field: string, text: string) => this.#keyring.seal(text, rowField(run, field));
    return {
      ...patch,
      ...(progress !== undefined && { progress: seal("progress", progress) }),
      ...(cost !== undefined && { cost: seal("cost", cost) }),
      ...(stopReason !== undefined && !OWN_REASONS.has(stopReason) && { stopReason: seal("stop reason", stopReason) }),
      ...(needs !== undefined && { needs: this.#sealNeeds(needs) }),
    };
  }

  #sealWait(run: string, change: WaitChange): WaitChange {
    if ("close" in change) return { close: this.names.seal(change.close) };
    if (!("open" in change)) return change;
    const { key, kind, name, detail } = change.open;
    return {
      open: {
        ...change.open,
        key: this.names.seal(key),
        name: OWN_WAITS.has(kind) ? name : this.names.seal(name),
        detail: orNull(detail, (text) => this.#keyring.seal(text, rowField(run, `wait ${key}`))),
      },
    };
  }

  /** A digest of an input that can be guessed is as good as the input. It stays with its key, whichever run has that. */
  #sealKey(key: NewKey): NewKey {
    return {
      ...key,
      key: this.names.seal(key.key),
      digest: this.#keyring.seal(key.digest, digestField(key.space, key.key)),
    };
  }

  openRow(row: RunRow): RunRow {
    const { id, key, tags, parent, progress, cost, stopReason, slot, rate } = row;
    const { open } = this.names;
    return {
      ...row,
      key: orNull(key, open),
      tags: tags.map(open),
      parent: orNull(parent, (link): ParentLink => ({ ...link, key: open(link.key) })),
      progress: this.#open(progress, rowField(id, "progress")),
      cost: this.#open(cost, rowField(id, "cost")),
      stopReason: this.#open(stopReason, rowField(id, "stop reason")),
      cancel: this.#open(row.cancel, rowField(id, "cancel")),
      slot: orNull(slot, (text) => mapBehindSlash(text, open)),
      rate: orNull(rate, (text) => mapBehindSlash(text, open)),
    };
  }

  openMail(mail: Mail): Mail {
    const cancel = this.#open(mail.cancel, rowField(mail.run, "cancel"));
    return { ...mail, cancel, inbox: mail.inbox.map((row) => this.openInbox(row)) };
  }

  openClaimed(claimed: ClaimedRun): ClaimedRun {
    return { ...this.openMail(claimed), row: this.openRow(claimed.row), journal: claimed.journal };
  }

  openInbox(row: InboxRow): InboxRow {
    return { ...row, name: this.names.open(row.name) };
  }

  openWait(row: WaitRow): WaitRow {
    const key = this.names.open(row.key);
    const detail = this.#open(row.detail, rowField(row.run, `wait ${key}`));
    return { ...row, key, name: this.names.open(row.name), detail };
  }

  openKey(row: KeyRow, space: string, key: string): KeyRow {
    return { ...row, digest: this.#open(row.digest, digestField(space, key)) };
  }

  sealHold(run: string, hold: NewHold): NewHold {
    return { ...hold, why: this.#keyring.seal(hold.why, rowField(run, "hold")) };
  }

  openHold(row: HoldRow): HoldRow {
    return { ...row, why: this.#open(row.why, rowField(row.run, "hold")) };
  }

  /** A digest of what was given is as good as that, where it can be guessed. */
  sealAudit(entry: NewAudit): NewAudit {
    const { payload, detail } = entry;
    return {
      ...entry,
      payload: orNull(payload, (text) => this.#keyring.seal(text, auditField(entry, "payload"))),
      detail: orNull(detail, (text) => this.#keyring.seal(text, auditField(entry, "detail"))),
    };
  }

  openAudit(record: AuditRecord): AuditRecord {
    const { payload, detail } = record;
    return {
      ...record,
      payload: this.#open(payload, auditField(record, "payload")),
      detail: this.#open(detail, auditField(record, "detail")),
    };
  }

  openVerdict(verdict: Verdict, part: RunCommit | undefined): Verdict {
    if (verdict.kind !== "refused") return verdict;
    if (verdict.why === "exists") return { ...verdict, holder: this.openRow(verdict.holder) };
    if (verdict.why !== "key") return verdict;
    // The store says who holds one of the keys, not which of them it is: only the right one opens what is held.
    const held = (part?.keys ?? []).map(({ space, key }) => this.openKey(verdict.holder, space, key));
    return { ...verdict, holder: held.find(({ digest }) => !digest.includes(verdict.holder.digest)) ?? verdict.holder };
  }

  #open(text: string, at: FieldAddress): string;
  #open(text: string | null, at: FieldAddress): string | null;
  #open(text: string | null, at: FieldAddress): string | null {
    if (text === null) return text;
    try {
      return this.#keyring.open(text, at) as string;
    } catch (error) {
      // Without the key it stays what it is; what was changed must not pass for that.
      return hasCode(error, "key_missing") ? text : `${REFUSED}${text}`;
    }
  }
}

function mapBehindSlash(text: string, map: (key: string) => string): string {
  const end = text.indexOf("/");
  return end < 0 ? text : `${text.slice(0, end + 1)}${map(text.slice(end + 1))}`;
}

function rowField(run: string, field: string): FieldAddress {
  return { run, seq: -1, field };
}

/** The number of a record is not known before it is kept: what it says in the clear is its place. */
function auditField({ who, action, subject, from, outcome }: NewAudit, field: "payload" | "detail"): FieldAddress {
  return { run: "audit", seq: -1, field: JSON.stringify([field, who, action, subject, from, outcome]) };
}

function digestField(space: string, key: string): FieldAddress {
  return { run: `${space}/${key}`, seq: -1, field: "digest" };
}
