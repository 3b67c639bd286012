// State machines as data
// What something may be, and what it may become. One interpreter walks all tables.
import { PawlError } from "../base/errors.ts";

export interface StateMachine<S extends string = string> {
  /** Of what it is: "run", "effect". Errors call what moved by it. */
  readonly name: string;
  readonly initial: S;
  /** What may follow each state. A state that nothing follows is an end. */
  readonly edges: Readonly<Record<S, readonly S[]>>;
}

export function statesOf<S extends string>({ edges }: StateMachine<S>): readonly S[] {
  return Object.keys(edges) as S[];
}

export function isEnd<S extends string>({ edges }: StateMachine<S>, state: S): boolean {
  return edges[state].length === 0;
}

/** Whether `to` may follow `from`; staying is always allowed before an end. */
export function mayMove<S extends string>(machine: StateMachine<S>, from: S, to: S): boolean {
  return from === to ? !isEnd(machine, from) : machine.edges[from].includes(to);
}

/** Returns `to` if it may follow `from`. `id` says which one moves, for the error. */
export function move<S extends string>(machine: StateMachine<S>, id: string, from: S, to: S): S {
  if (mayMove(machine, from, to)) return to;
  const { name, edges } = machine;
  throw new PawlError(
    "illegal_transition",
    `${name.charAt(0).toUpperCase()}${name.slice(1)} ${id} cannot go from "${from}" to "${to}". Allowed from here: ${edges[from].join(", ") || "nothing, it has ended"}.`,
    { fields: { [name]: id, from, to } },
  );
}
