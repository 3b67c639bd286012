// The outside world, in one file
// Services that know nothing of Pawl. Whatever one of them is asked becomes a line of a ledger file, so that it survives the death of
// any process and can be counted. Most know the idempotency keys they have seen: asked again, they change nothing and repeat their answer.
//
//   LEDGER            where the ledger is; default .pawl/ledger.jsonl
//   FAKES_LATENCY_MS  how long an answer takes; default 20
//   FAKES_LOSE        an action whose answer gets lost the first time, such as "charge"
import { appendFileSync, closeSync, fstatSync, mkdirSync, openSync, readSync } from "node:fs";
import { dirname } from "node:path";

/** One request as the outside saw it. */
export interface LedgerLine {
  readonly action: string;
  /** What it is about: an order, a customer, a source. */
  readonly about: string;
  readonly key: string;
  /** False: the key was known, so nothing happened. */
  readonly did: boolean;
  readonly answer: unknown;
  readonly pid: number;
  readonly at: number;
}

/** The way back. Whatever happens here happens after the effect and before its answer arrives. */
export const wayBack = {
  async travel({ action, did }: LedgerLine): Promise<void> {
    await pause(Number(process.env["FAKES_LATENCY_MS"] ?? 20));
    if (did && action === process.env["FAKES_LOSE"]) {
      throw Object.assign(new Error(`the connection broke before the answer to "${action}" came`), {
        code: "ECONNRESET",
      });
    }
  },
};

export interface Order {
  readonly id: string;
  readonly cents: number;
  readonly email: string;
}

export const bank = {
  charge: (order: Order, key: string) =>
    ask("charge", order.id, key, () => ({ payment: `pay-${order.id}`, cents: order.cents })),
  /** Whether it has a charge with this key. */
  charged: (key: string) => lookUp<{ payment: string; cents: number }>("charge", key),
  payBack: (payment: string, key: string) => ask("pay back", payment, key, () => ({ payment })),
};

export const mailer = {
  send: (to: string, text: string, key: string) => ask("mail", to, key, () => ({ to, text })),
};

export const billing = {
  customers: (count: number): string[] => Array.from({ length: count }, (_, i) => `customer-${i + 1}`),
  invoice: (customer: string, month: string, key: string) =>
    ask("invoice", customer, key, () => ({ invoice: `${month}-${customer}`, cents: 100 + customer.length })),
};

export const library = {
  search: (source: string, topic: string, key: string) =>
    ask("search", source, key, () => ({ source, found: [...topic].length * source.length })),
};

export const analyst = {
  summarise: (topic: string, findings: readonly { readonly found: number }[], key: string) =>
    ask("analyse", topic, key, () => {
      const sources = findings.reduce((sum, { found }) => sum + found, 0);
      return { title: `All about ${topic}`, sources };
    }),
};

export const press = {
  write: (topic: string, text: string, key: string) =>
    ask("page", topic, key, () => ({ page: `page-${topic}`, signs: text.length })),
  check: (topic: string, key: string) => ask("check", topic, key, () => ({ page: `page-${topic}`, mistakes: 0 })),
  /** Knows no keys: two requests are two publications. */
  publish: (topic: string, key: string) => act("publish", topic, key, { address: `guides/${topic}` }),
  published: (key: string) => lookUp<{ address: string }>("publish", key),
};

export interface RefundRequest {
  readonly order: string;
  readonly cents: number;
  readonly email: string;
  /** Who asks for it, and so may not approve it. */
  readonly agent: string;
}

export const refunds = {
  draft: ({ order, cents }: RefundRequest, key: string) =>
    ask("draft", order, key, () => ({ draft: `draft-${order}`, cents })),
  withdraw: (draft: string, key: string) => ask("withdraw", draft, key, () => ({ draft })),
  review: ({ order, cents }: RefundRequest, key: string) =>
    ask("review", order, key, () => ({
      risk: cents > 10_000 ? ("high" as const) : ("medium" as const),
      finding: `order ${order} was paid`,
    })),
  issue: (draft: string, cents: number, key: string) =>
    ask("issue", draft, key, () => ({ payment: `refund-${draft}`, cents })),
  reverse: (payment: string, key: string) => ask("reverse", payment, key, () => ({ payment })),
};

export interface Patient {
  readonly id: string;
  readonly physician: string;
}

export const clinic = {
  gather: (patient: string, source: string, key: string, _signal: AbortSignal) =>
    ask("gather", source, key, () => ({ source, notes: `${source} of ${patient}` })),
  analyse: (gathered: readonly { readonly notes: string }[], key: string) =>
    ask("analyse", "patient", key, () => `seen: ${gathered.map(({ notes }) => notes).join("; ")}`),
  write: (phase: string, analysis: string, key: string) =>
    ask("write", phase, key, () => `${phase}: ${analysis.length} signs`),
  deliver: (patient: string, report: string, key: string) =>
    ask("deliver", patient, key, () => ({ delivered: `report of ${report.length} signs` })),
  /** Whether it has a report with this key. */
  delivered: (key: string) => lookUp<{ delivered: string }>("deliver", key),
};

export interface BugInfo {
  readonly issue: string;
  readonly title: string;
  readonly team: string;
  readonly isReproducible: boolean;
}

export interface Candidate {
  readonly idea: string;
  readonly patch: string;
  readonly score: number;
}

export const tracker = {
  read: (issue: string, key: string): Promise<BugInfo> =>
    ask("read", issue, key, () => ({ issue, title: "it crashes on start", team: "app", isReproducible: true })),
  route: (issue: string, team: string, key: string) => ask("route", issue, key, () => ({ team })),
  /** Knows no keys: two requests are two comments. */
  comment: (issue: string, body: string) => act("comment", issue, "", { body }),
  comments: (issue: string) => Ledger.open().answers<{ body: string }>("comment", issue),
};

export const developer = {
  reproduce: (issue: string, key: string) => ask("reproduce", issue, key, () => ({ steps: ["start it"] })),
  propose: ({ issue }: BugInfo, idea: string, key: string): Promise<Candidate> =>
    ask("propose", `${issue} ${idea}`, key, () => ({ idea, patch: `${idea} for ${issue}\n`, score: idea.length })),
};

export const reviews = {
  /** To add somebody again changes nothing. */
  addReviewer: (change: string, reviewer: string) =>
    ask("reviewer", change, `${change} ${reviewer}`, () => ({ reviewer })),
};

/** Knows no keys: two requests are two jobs. */
export const jobs = {
  create: (name: string, when: string) => act("job", name, "", { name, when }),
  find: (name: string) => Ledger.open().answers<{ name: string; when: string }>("job", name)[0],
};

/** Sends whatever it is given, and can be asked what it has sent. */
export const postOffice = {
  send: (to: string, text: string, key: string) => act("mail", to, key, { to, text }),
  sent: (key: string): { to: string; text: string } | null => {
    const known = lookUp<{ to: string; text: string }>("mail", key);
    return known.found ? known.value : null;
  },
};

/** The web, as far as one needs it: it can be searched, read and published in. */
export const web = {
  search: (query: string, key: string) => ask("search", query, key, () => [`https://${query}.example/all`]),
  read: (url: string, key: string) => ask("read", url, key, () => `What ${new URL(url).host} says.`),
  publish: (title: string, text: string, key: string) =>
    ask("publish", title, key, () => ({ url: `https://news.example/${title.length}-${text.length}` })),
};

/** A service that does what it is told, each time. */
async function act<T>(action: string, about: string, key: string, answer: T): Promise<T> {
  const line = { action, about, key, did: true, answer, pid: process.pid, at: Date.now() };
  Ledger.open().append(line);
  await wayBack.travel(line);
  return answer;
}

async function ask<T>(action: string, about: string, key: string, act: () => T): Promise<T> {
  const ledger = Ledger.open();
  const known = ledger.find(action, key);
  const answer = known === undefined ? act() : (known.answer as T);
  const line = { action, about, key, did: known === undefined, answer, pid: process.pid, at: Date.now() };
  ledger.append(line);
  await wayBack.travel(line);
  return answer;
}

/** What a service says that is asked whether it knows a key. Nothing is changed by it. */
function lookUp<T>(
  action: string,
  key: string,
): { readonly found: true; readonly value: T } | { readonly found: false } {
  const line = Ledger.open().find(action, key);
  return line === undefined ? { found: false } : { found: true, value: line.answer as T };
}

class Ledger {
  static readonly #opened = new Map<string, Ledger>();
  readonly #file: string;
  readonly #effects = new Map<string, LedgerLine>();
  readonly #all: LedgerLine[] = [];
  #readUpTo = 0;

  static open(): Ledger {
    const file = process.env["LEDGER"] ?? ".pawl/ledger.jsonl";
    const ledger = Ledger.#opened.get(file) ?? new Ledger(file);
    Ledger.#opened.set(file, ledger);
    return ledger;
  }

  constructor(file: string) {
    this.#file = file;
    mkdirSync(dirname(file), { recursive: true });
  }

  find(action: string, key: string): LedgerLine | undefined {
    this.#readOn();
    return this.#effects.get(`${action} ${key}`);
  }

  /** What was answered whenever this was done. */
  answers<T>(action: string, about: string): T[] {
    this.#readOn();
    return this.#all.filter((line) => line.action === action && line.about === about).map(({ answer }) => answer as T);
  }

  #readOn(): void {
    for (const line of this.#newLines()) {
      if (!line.did) continue;
      this.#effects.set(`${line.action} ${line.key}`, line);
      this.#all.push(line);
    }
  }

  append(line: LedgerLine): void {
    appendFileSync(this.#file, `${JSON.stringify(line)}\n`);
  }

  /** What this and other processes have appended since the last look. */
  #newLines(): LedgerLine[] {
    const file = openSync(this.#file, "a+");
    const bytes = Buffer.alloc(fstatSync(file).size - this.#readUpTo);
    readSync(file, bytes, 0, bytes.length, this.#readUpTo);
    closeSync(file);
    // Another process may be in the middle of a line.
    const whole = bytes.subarray(0, bytes.lastIndexOf("\n") + 1);
    this.#readUpTo += whole.length;
    const lines = whole.toString().split("\n").filter(Boolean);
    return lines.map((line) => JSON.parse(line) as LedgerLine);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
