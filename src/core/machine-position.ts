/** Run state in which a machine keeps where it is. */
export const MACHINE_KEY = "pawl.machine";

/** Where a run of a machine is: always explicit, whatever the run is doing. */
export interface MachinePosition {
  /** The current step. */
  readonly step: string;
  /** Steps that have been completed, each once, in the order of their first completion. */
  readonly completed: readonly string[];
  /** What the current step has decided and what is still waited for. */
  readonly pending?: unknown;
  /** How often each step has done its work. */
  readonly uses: Readonly<Record<string, number>>;
  /** How many proposals of agents were refused so far. */
  readonly rejected?: number;
}
