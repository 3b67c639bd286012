// The contract of the store port, as data: every store runs the same list, in any test runner.
//
//   for (const one of storeCases) it(one.name, () => one.run(open));

import type { StoreCase } from "./store-cases/case.ts";
import { claimCases } from "./store-cases/claims.ts";
import { commitCases } from "./store-cases/commit.ts";
import { keyAndCounterCases } from "./store-cases/keys-and-counters.ts";
import { limitCases } from "./store-cases/limits.ts";
import { mailCases } from "./store-cases/mail.ts";
import { operatorCases } from "./store-cases/operators.ts";
import { streamCases } from "./store-cases/streams.ts";
import { transactionCases } from "./store-cases/transactions.ts";
import { upkeepCases } from "./store-cases/upkeep.ts";
import { workerCases } from "./store-cases/workers.ts";

export type { OpenedStore, StoreCase } from "./store-cases/case.ts";

export const storeCases: readonly StoreCase[] = [
  ...commitCases,
  ...mailCases,
  ...claimCases,
  ...limitCases,
  ...workerCases,
  ...keyAndCounterCases,
  ...transactionCases,
  ...streamCases,
  ...upkeepCases,
  ...operatorCases,
];
