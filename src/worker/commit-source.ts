import type { Batch } from "../core/draft.ts";
import type { Verdict } from "../core/store.ts";

/** Something that has batches to write: a pass, or a single write of its own. */
export interface CommitSource {
  readonly id: string;
  /** Nobody but a run waits for its answer, which may be told a little later (C5). */
  readonly isPatient: boolean;
  /** Nothing more begins in it. */
  readonly isOver: boolean;
  take(): Batch | null;
  /** Its batch is durable. Told at once, for those who wait for no more than that. */
  acknowledge(): void;
  verdict(verdict: Verdict): void;
  /** Nothing of the batch was applied: it is to be offered again. */
  offerAgain(): void;
  /** The store cannot be written to. True: somebody was told so, and the batch is not offered again. */
  givesUp(error: unknown): boolean;
}
