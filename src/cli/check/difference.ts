// What differs between two definitions of a workflow, and which bump each difference needs (S0-44 to S0-46, S0-51).
import type { Uses } from "../../core/journal.ts";
import type { Outline } from "../../core/outline.ts";
import type { Workflow } from "../../core/workflow.ts";
import type { MachineShape, MachineStepShape } from "../../flows/machine-graph.ts";
import type { PhaseShape, StepShape } from "../../flows/phase-plan.ts";

/** From nothing to what no run may go on with by itself. */
export const BUMPS = ["none", "patch", "minor", "major"] as const;
export type Bump = (typeof BUMPS)[number];

export interface Difference {
  readonly needs: Bump;
  /** A clause without a full stop: `phase "review" was added`. */
  readonly what: string;
}

export function highest(levels: readonly Bump[]): Bump {
  return BUMPS[Math.max(0, ...levels.map((level) => BUMPS.indexOf(level)))] ?? "none";
}

/** Everything of the structure that differs; if nothing does, whether anything else can be seen to. */
export function differencesOf(before: Workflow, after: Workflow): Difference[] {
  const found = [
    ...shapeDifferences(before.definition.shape, after.definition.shape),
    ...usesDifferences(before.definition.uses, after.definition.uses),
  ];
  if (found.length > 0 || wordsOf(before) === wordsOf(after)) return found;
  const isPlain = after.definition.shape === undefined;
  const what = isPlain
    ? "its code or configuration was changed; whether it takes another way, only the replay of runs can tell"
    : "code, wording or configuration was changed, and nothing of the structure";
  return [{ needs: "patch", what }];
}

/** What a run has recorded of the definition that it began with, as far as it says. */
export interface Recorded {
  readonly structure: string | null;
  readonly uses: Uses | null;
  readonly outline: Outline | null;
}

export function differencesFromRecord({ structure, uses, outline }: Recorded, after: Workflow): Difference[] {
  const { definition } = after;
  if (structure === null || structure === definition.structure) return [];
  const { shape } = definition;
  const phases = outline !== null && Array.isArray(shape) ? namesDiffer(outline, shape as readonly PhaseShape[]) : [];
  const found = [...phases, ...usesDifferences(uses, definition.uses)];
  if (found.length > 0) return found;
  return [{ needs: "minor", what: "gates, routing or options of steps were changed, and runs do not record which" }];
}

function namesDiffer(outline: Outline, shape: readonly PhaseShape[]): Difference[] {
  const before = outline.phases.map(({ name, steps = [{ name }] }) => ({ name, steps }));
  return phaseNames(before, shape);
}

function shapeDifferences(before: unknown, after: unknown): Difference[] {
  if (before === undefined && after === undefined) return [];
  if (Array.isArray(before) && Array.isArray(after)) return phaseDifferences(before, after);
  if (isMachine(before) && isMachine(after)) return machineDifferences(before, after);
  return [{ needs: "major", what: "it is made in another way: a function, phases or a machine" }];
}

function isMachine(shape: unknown): shape is MachineShape {
  return typeof shape === "object" && shape !== null && "start" in shape;
}

// Phases

interface NamedPhase {
  readonly name: string;
  readonly steps: readonly { readonly name: string }[];
}

function phaseDifferences(before: readonly PhaseShape[], after: readonly PhaseShape[]): Difference[] {
  const kept = pairs(before, after);
  return [
    ...phaseNames(before, after),
    ...kept
      .filter(([old, now]) => old.when !== now.when)
      .map(([{ name }, { when }]): Difference => {
        const what = when ? "is only on the way under a condition now" : "is always on the way now";
        return { needs: "major", what: `routing: phase "${name}" ${what}` };
      }),
    ...kept.flatMap(([old, now]) => pairs(old.steps, now.steps).flatMap(([a, b]) => stepDifferences(old.name, a, b))),
  ];
}

function phaseNames(before: readonly NamedPhase[], after: readonly NamedPhase[]): Difference[] {
  const steps = pairs(before, after).flatMap(([old, now]) =>
    listDifferences(old.steps, now.steps, (name) => `step "${name}" of phase "${now.name}"`, "minor"),
  );
  return [...listDifferences(before, after, (name) => `phase "${name}"`, "major"), ...steps];
}

function listDifferences(
  before: readonly { readonly name: string }[],
  after: readonly { readonly name: string }[],
  called: (name: string) => string,
  added: Bump,
): Difference[] {
  const [old, now] = [before.map(({ name }) => name), after.map(({ name }) => name)];
  const kept = now.filter((name) => old.includes(name));
  const isMoved = old.filter((name) => now.includes(name)).join("\n") !== kept.join("\n");
  return [
    ...now
      .filter((name) => !old.includes(name))
      .map((name): Difference => ({ needs: added, what: `${called(name)} was added` })),
    ...old
      .filter((name) => !now.includes(name))
      .map((name): Difference => ({ needs: "major", what: `${called(name)} was removed` })),
    ...(isMoved ? [{ needs: "major", what: `routing: another order, ${kept.join(", ")}` } as const] : []),
  ];
}

function pairs<T extends { readonly name: string }>(before: readonly T[], after: readonly T[]): [T, T][] {
  return after.flatMap((now) => {
    const old = before.find(({ name }) => name === now.name);
    return old === undefined ? [] : [[old, now] as [T, T]];
  });
}

function stepDifferences(phase: string, before: StepShape, after: StepShape): Difference[] {
  const at = after.name === phase ? `phase "${phase}"` : `step "${after.name}" of phase "${phase}"`;
  if (before.does !== after.does)
    return [{ needs: "major", what: `${at} is \`${after.does}\` now, no longer \`${before.does}\`` }];
  const found: [Bump, string, boolean][] = [
    ["patch", `kind of ${at}`, before.kind !== after.kind],
    ["minor", `output file of ${at}`, before.output !== after.output],
    ["minor", `whether ${at} can be satisfied already`, before.satisfied !== after.satisfied],
    ["minor", `options of the \`${after.does}\` of ${at}`, !isSame(before.options, after.options)],
  ];
  return changedOf(found);
}

function changedOf(found: readonly (readonly [Bump, string, boolean])[]): Difference[] {
  return found.flatMap(([needs, what, isChanged]) => (isChanged ? [{ needs, what: `${what} changed` }] : []));
}

// Machines

function machineDifferences(before: MachineShape, after: MachineShape): Difference[] {
  const names = (shape: MachineShape) => Object.keys(shape.steps);
  const added = names(after).filter((name) => !(name in before.steps));
  const removed = names(before).filter((name) => !(name in after.steps));
  const kept = names(after).filter((name) => name in before.steps);
  return [
    ...added.map((name): Difference => ({ needs: "minor", what: `step "${name}" was added` })),
    ...removed.map((name): Difference => ({ needs: "major", what: `step "${name}" was removed` })),
    ...(before.start === after.start
      ? []
      : [{ needs: "major", what: `routing: it starts with "${after.start}", no longer "${before.start}"` } as const]),
    ...kept.flatMap((name) => machineStep(name, before.steps[name]!, after.steps[name]!, new Set(added))),
    ...changedOf([
      ["minor", "rules of merging", !isSame(before.rules, after.rules)],
      ["minor", "who is asked when a step escalates", !isSame(before.escalation, after.escalation)],
    ]),
  ];
}

function machineStep(
  name: string,
  before: MachineStepShape,
  after: MachineStepShape,
  added: ReadonlySet<string>,
): Difference[] {
  if (before.kind !== after.kind)
    return [{ needs: "major", what: `step "${name}" is of kind ${after.kind} now, no longer ${before.kind}` }];
  const [old, now] = [before.ways.map(wayText), after.ways.map(wayText)];
  const [could, can] = [before.can.filter(isOwnWord), after.can.filter(isOwnWord)];
  const isRoute = after.kind === "parallel";
  return [
    ...before.ways
      .filter((way) => !now.includes(wayText(way)))
      .map((way): Difference => ({ needs: "major", what: `routing: "${name}" no longer leads to ${wayText(way)}` })),
    ...after.ways
      .filter((way) => !old.includes(wayText(way)))
      // A way to a step that was not there before is a part of adding it.
      .map((way): Difference => {
        const needs = added.has(way[1]) ? "minor" : "major";
        return { needs, what: `routing: "${name}" leads to ${wayText(way)} now` };
      }),
    ...could
      .filter((word) => !can.includes(word))
      .map((word): Difference => ({ needs: "major", what: `step "${name}" can no longer ${word}` })),
    ...can
      .filter((word) => !could.includes(word))
      .map((word): Difference => ({ needs: "minor", what: `step "${name}" can ${word} now` })),
    ...changedOf([
      [
        isRoute ? "major" : "minor",
        isRoute ? `routing: what follows the branches of "${name}"` : `options of ${after.kind} "${name}"`,
        !isSame(before.facts, after.facts),
      ],
    ]),
  ];
}

/** Every step can fail, and goes on if there is a way: the ways say so. */
function isOwnWord(word: string): boolean {
  return word !== "fail" && word !== "continue";
}

function wayText([label, to]: MachineStepShape["ways"][number]): string {
  return label === "" ? `"${to}"` : `"${to}" (${label})`;
}

// What both have

function usesDifferences(before: Uses | null, after: Uses | null): Difference[] {
  const [old, now] = [versionsOf(before), versionsOf(after)];
  return [...new Set([...old.keys(), ...now.keys()])]
    .filter((name) => old.get(name) !== now.get(name))
    .map((name): Difference => {
      const [was, is] = [old.get(name) ?? "nothing", now.get(name) ?? "nothing"];
      return { needs: "minor", what: `it uses ${is} of ${name}, no longer ${was}` };
    });
}

function versionsOf(uses: Uses | null): Map<string, string> {
  const kinds = Object.entries(uses ?? {});
  return new Map(
    kinds.flatMap(([kind, named]) => Object.entries(named).map(([name, version]) => [`${kind}.${name}`, version])),
  );
}

function isSame(a: unknown, b: unknown): boolean {
  return wordsIn(a) === wordsIn(b);
}

/** All that can be read of a definition: its options, and the text of its functions. Schemas are left out: they lead anywhere. */
function wordsOf({ definition, ...rest }: Workflow): string {
  const { input: _, output: __, structure: ___, isVersioned: ____, ...readable } = definition;
  const { plan } = rest as { readonly plan?: unknown };
  return wordsIn({ readable, plan });
}

function wordsIn(value: unknown, above: readonly object[] = []): string {
  if (typeof value === "function") return String(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "undefined";
  if (above.includes(value)) return "itself";
  const inner = [...above, value];
  if (Array.isArray(value)) return `[${value.map((one) => wordsIn(one, inner)).join(",")}]`;
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  const texts = entries.map(([key, one]) => `${String(key)}:${wordsIn(one, inner)}`);
  return `{${texts.sort().join(",")}}`;
}
