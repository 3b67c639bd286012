// The judge. It knows what was acknowledged and what happened outside from files that no killed process owns, reads the store, and compares.
import { join } from "node:path";
import { jsonCodec } from "../../dist/base/envelope.js";
import { openJournal } from "../../dist/core/values.js";
import { nodeHost } from "../../dist/worker/node-host.js";
import { Evidence } from "./evidence.mjs";
import { Ledger } from "./ledger.mjs";
import { RULES } from "./rules.mjs";
import { stepStories } from "./step-story.mjs";

export const FILES = { store: "pawl.db", ledger: "ledger.jsonl", acks: "acks.jsonl" };

const ENDED = new Set(["succeeded", "failed", "cancelled"]);
const SOUND = "I3 journals are dense and their checksums hold";
const THERE = "I1 I17 every acknowledged start is there, once, with its input";
const ORPHANS = "I10 nothing is an orphan";
const WHOLE = "the store is whole";

export class Judge {
  evidence = new Evidence();
  store;
  /** By rule: how much was judged. */
  judged;
  violations = [];
  #known = new Set();
  #ledgers;
  #rules;
  #atOnce;
  #mayBeLost;

  /**
   * Ledgers are in `folder`. `rules` are those that runs are judged by, `atOnce` of them at a time. `mayBeLost(time)` is true if a start that was
   * acknowledged at that time need not be there.
   */
  constructor(folder, store, { rules = RULES, atOnce = 1, mayBeLost = () => false } = {}) {
    this.store = store;
    this.#rules = rules;
    this.#atOnce = atOnce;
    this.#mayBeLost = mayBeLost;
    this.judged = new Map([SOUND, THERE, ORPHANS, ...rules.map(({ name }) => name), WHOLE].map((name) => [name, 0]));
    this.#ledgers = [FILES.ledger, FILES.acks].map((file) => new Ledger(join(folder, file)));
  }

  /** Takes in what was booked since. To be called before a journal is read: whatever was booked by then must be in it. */
  readLedgers() {
    for (const ledger of this.#ledgers) this.evidence.take(ledger.news());
  }

  violation(rule, text, run = null) {
    const key = `${rule} ${run} ${text}`;
    if (this.#known.has(key)) return;
    this.#known.add(key);
    this.violations.push({ rule, run, text });
  }

  async judgeOrphans() {
    const orphans = await this.store.orphans();
    this.#count(ORPHANS, 1);
    for (const { run, why } of orphans) this.violation(ORPHANS, why, run);
  }

  async judgeRun(id, { isFinal = false } = {}) {
    const row = await this.store.run(id);
    if (row === null) return this.violation(THERE, "it is not in the store", id);
    const stored = await this.store.journal(id);
    const journal = this.#open(row, stored);
    if (journal === null) return;
    const [waits, inbox] = ENDED.has(row.state)
      ? await Promise.all([this.store.waits({ run: id }), this.store.inbox(id)])
      : [[], []];
    const facts = {
      row,
      journal,
      hashes: stored.map(({ hash }) => hash),
      waits,
      inbox,
      evidence: this.evidence.of(id),
      steps: stepStories(id, journal),
      cancelAsked: await this.#isCancelAsked(row),
      isFinal,
    };
    for (const rule of this.#rules) {
      const { judged, wrong } = rule.of(facts);
      if (isFinal) this.#count(rule.name, judged);
      for (const text of wrong) this.violation(rule.name, text, id);
    }
  }

  /** Everything there is, once more and from the beginning. */
  async judgeAll() {
    this.readLedgers();
    const rows = await this.allRuns();
    await this.#judgeStarts(rows);
    const left = rows.values();
    const judgeRest = async () => {
      for (const { id } of left) await this.judgeRun(id, { isFinal: true });
    };
    await Promise.all(Array.from({ length: this.#atOnce }, judgeRest));
    await this.judgeOrphans();
    for (const fault of (await this.store.inspect()).faults) this.violation(WHOLE, fault);
    this.#count(WHOLE, 1);
  }

  async allRuns(states) {
    const rows = [];
    for (let before; ; before = rows.at(-1).id) {
      const page = await this.store.runs({ limit: 500, ...(states && { states }), ...(before && { before }) });
      rows.push(...page);
      // The engine's own runs, such as the one that keeps alerts, have no end that could be computed.
      if (page.length < 500) return rows.filter(({ workflow }) => !workflow.startsWith("pawl."));
    }
  }

  #count(rule, by) {
    this.judged.set(rule, (this.judged.get(rule) ?? 0) + by);
  }

  #open(row, stored) {
    this.#count(SOUND, 1);
    try {
      // The row was read first: what it knows of the journal must be there, and the journal may have grown since.
      return openJournal(nodeHost, jsonCodec, row, stored);
    } catch (error) {
      this.violation(SOUND, error.message, row.id);
      return null;
    }
  }

  /** Whoever has a cancelled parent may be cancelled as well. */
  async #isCancelAsked({ id, parent }) {
    if (this.evidence.of(id).isCancelAsked) return true;
    const above = parent === null ? null : await this.store.run(parent.run);
    return above !== null && this.#isCancelAsked(above);
  }

  async #judgeStarts(rows) {
    const byToken = groupedByToken(rows);
    for (const { token, how, workflow, input, runs, ackedAt } of this.evidence.starts.values()) {
      const there = byToken.get(token) ?? [];
      this.#count(THERE, runs.size);
      for (const id of runs)
        if (!there.some((row) => row.id === id) && !this.#mayBeLost(ackedAt))
          this.violation(THERE, `the start of ${token} was acknowledged, and there is no such run`, id);
      if (runs.size > 1 || there.length > 1)
        this.violation(
          THERE,
          `${token} was to be one run (by ${how}); there are ${there.map(({ id }) => id).join(", ")}`,
        );
      for (const { id } of there) await this.#judgeInput(id, workflow, input);
    }
  }

  async #judgeInput(id, workflow, input) {
    const [first] = await this.store.journal(id, { limit: 1 });
    const started = first === undefined ? null : JSON.parse(first.data);
    const isSame = started?.workflow === workflow && JSON.stringify(started.input) === JSON.stringify(input);
    if (!isSame)
      this.violation(
        THERE,
        `it was started as ${workflow} with ${JSON.stringify(input)}, and is recorded otherwise`,
        id,
      );
  }
}

function groupedByToken(rows) {
  const groups = new Map();
  for (const row of rows) groups.set(row.tags[0], [...(groups.get(row.tags[0]) ?? []), row]);
  return groups;
}
