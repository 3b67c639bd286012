/** What workers have said about the workflows that they have: it is known when none of them is there any more. */
export interface CatalogueKeeper {
  /** Notes what is said of each version of a workflow; what was said of it before is forgotten. */
  describe(workflows: readonly WorkflowFacts[]): Promise<void>;
  /** By name, then version, as text. */
  workflows(): Promise<WorkflowRow[]>;
}

export interface WorkflowFacts {
  readonly name: string;
  readonly version: string;
  /** As JSON; stores do not read it. */
  readonly facts: string;
}

export interface WorkflowRow extends WorkflowFacts {
  /** When it was said last. */
  readonly at: number;
}
