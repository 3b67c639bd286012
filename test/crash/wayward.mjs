// A workflow that goes another way in every process: nothing of it can be reproduced elsewhere.
import { workflow } from "pawl";

export const wayward = workflow("wayward", async (ctx) => ctx.step(`visit of ${process.pid}`, () => "seen"));
