// Each mutant: the rule that it takes away (P: PROTOCOL.md, D: a section of DESIGN.md, S: SPEC.md), what the engine then does in its stead, the exact
// changes of the sources, and the narrowest tests that must notice: one of `killers`, and each of `alsoKilledBy` as well.
import { agentDirectoryMutants } from "./agent-directory.mjs";
import { agentMutants } from "./agents.mjs";
import { diskMutants } from "./ahead-of-the-disk.mjs";
import { aiMutants } from "./ai.mjs";
import { approvalMutants } from "./approvals.mjs";
import { budgetMutants } from "./budgets.mjs";
import { callbackMutants } from "./callbacks.mjs";
import { checkpointMutants } from "./checkpoints.mjs";
import { dashboardMutants } from "./dashboard.mjs";
import { effectMutants } from "./effects.mjs";
import { fileStoreMutants } from "./file-store.mjs";
import { flowMutants } from "./flow.mjs";
import { guardMutants } from "./guards.mjs";
import { lintMutants } from "./lint.mjs";
import { machineMutants } from "./machines.mjs";
import { ownershipMutants } from "./ownership.mjs";
import { phaseMutants } from "./phases.mjs";
import { playbookMutants } from "./playbooks.mjs";
import { postgresMutants } from "./postgres.mjs";
import { serverMutants } from "./server.mjs";
import { storeMutants } from "./stores.mjs";
import { streamMutants } from "./streams.mjs";
import { turnMutants } from "./turns.mjs";
import { versionMutants } from "./versions.mjs";

export const mutants = [
  ...turnMutants,
  ...diskMutants,
  ...ownershipMutants,
  ...storeMutants,
  ...postgresMutants,
  ...fileStoreMutants,
  ...flowMutants,
  ...checkpointMutants,
  ...effectMutants,
  ...approvalMutants,
  ...callbackMutants,
  ...streamMutants,
  ...guardMutants,
  ...lintMutants,
  ...budgetMutants,
  ...phaseMutants,
  ...machineMutants,
  ...versionMutants,
  ...playbookMutants,
  ...aiMutants,
  ...agentMutants,
  ...agentDirectoryMutants,
  ...dashboardMutants,
  ...serverMutants,
];
