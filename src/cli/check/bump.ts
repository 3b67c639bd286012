// Which bump a change needs, which one its version has, and why (S0-50).
import { compareVersions, parseVersion } from "../../base/semver.ts";
import type { Workflow } from "../../core/workflow.ts";
import { BUMPS, type Bump, type Difference, differencesOf, highest } from "./difference.ts";

/** What became of a workflow between two definitions of it. */
export interface BumpVerdict {
  readonly workflow: string;
  /** `null`: it is new. */
  readonly from: string | null;
  /** `null`: it is gone. */
  readonly to: string | null;
  readonly needed: Bump;
  readonly given: Bump;
  readonly ok: boolean;
  /** Each with the bump that it needs. */
  readonly reasons: readonly Difference[];
  /** What to do, if it is not enough. */
  readonly advice: string | null;
}

/** Today's definitions against those of a previous file. */
export function bumpsOf(before: readonly Workflow[], after: readonly Workflow[]): BumpVerdict[] {
  const names = [...new Set([...after, ...before].map(({ name }) => name))];
  return names.flatMap((name) => {
    const [old, now] = [versionsOf(before, name), versionsOf(after, name)];
    const [newest, latest] = [now.at(-1), old.at(-1)];
    if (newest === undefined) return [gone(latest!)];
    if (latest === undefined) return [added(newest)];
    // What is kept beside the newest has to be what it was.
    const kept = old.flatMap((one) => {
      const same = now.find(({ version }) => version === one.version);
      return same === undefined || same === newest ? [] : [bumpBetween(one, same)];
    });
    return [bumpBetween(latest, newest), ...kept.filter(({ ok }) => !ok)];
  });
}

/** Two definitions of one workflow. */
function bumpBetween(before: Workflow, after: Workflow): BumpVerdict {
  return verdictOf(after.name, before.version, after.version, differencesOf(before, after));
}

/** A patch need not be told of: nothing that runs depend on has changed. */
export function verdictOf(workflow: string, from: string, to: string, reasons: readonly Difference[]): BumpVerdict {
  const needed = highest(reasons.map(({ needs }) => needs));
  const given = bumpFrom(from, to);
  const isBack = compareVersions(parseVersion(to), parseVersion(from)) < 0;
  const isEnough = BUMPS.indexOf(given) >= BUMPS.indexOf(needed) || (needed === "patch" && given === "none");
  const advice = isBack
    ? `Version ${to} is older than ${from}: runs that ${from} has gone on with are not taken by it.`
    : isEnough
      ? null
      : `Make it ${bumped(from, needed)}.`;
  return { workflow, from, to, needed, given, ok: isEnough && !isBack, reasons, advice };
}

function bumpFrom(from: string, to: string): Bump {
  const [a, b] = [parseVersion(from), parseVersion(to)];
  if (a.major !== b.major) return "major";
  if (a.minor !== b.minor) return "minor";
  return a.patch === b.patch ? "none" : "patch";
}

function bumped(version: string, needed: Bump): string {
  const { major, minor, patch } = parseVersion(version);
  if (needed === "major") return `${major + 1}.0.0`;
  return needed === "minor" ? `${major}.${minor + 1}.0` : `${major}.${minor}.${patch + 1}`;
}

function versionsOf(workflows: readonly Workflow[], name: string): Workflow[] {
  return workflows
    .filter((one) => one.name === name)
    .sort((a, b) => compareVersions(parseVersion(a.version), parseVersion(b.version)));
}

function added({ name, version }: Workflow): BumpVerdict {
  const nothing = { needed: "none", given: "none", ok: true, reasons: [], advice: null } as const;
  return { workflow: name, from: null, to: version, ...nothing };
}

function gone({ name, version }: Workflow): BumpVerdict {
  const reasons: Difference[] = [
    { needs: "major", what: "it is no longer exported: nobody could go on with its runs" },
  ];
  const advice = "Keep it until its runs are over: `pawl ls --workflow` shows them.";
  return { workflow: name, from: version, to: null, needed: "major", given: "none", ok: false, reasons, advice };
}
