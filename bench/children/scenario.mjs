// One scenario in a process of its own: what another has left in the heap, and made of the compiled code, is not its business.
import { answer, childArgument } from "../child.mjs";
import { withFiles } from "../measure.mjs";
import { SCENARIOS } from "../scenarios.mjs";

const { name, quick } = childArgument();
answer(await withFiles((newFile) => SCENARIOS[name]({ newFile, quick })));
