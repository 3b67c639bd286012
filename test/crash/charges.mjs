// A charge with every way of recovery, for processes that are killed around the call of the bank.
import { workflow } from "pawl";
import { reach } from "./kill-point.mjs";

/** The bank of the examples. A body that is replayed somewhere else does not need it. */
const bank = async () => (await import(/* @vite-ignore */ process.env.FAKES)).bank;

const detect = async ({ key }) => (await bank()).charged(key);
const undo = async (charged, { key, undoes }) => (await bank()).payBack(charged?.payment ?? undoes, key);

/** What a charge says of itself, and how it is run. */
const POLICIES = {
  rerun: [{ idempotent: true }],
  detect: [{ detect }],
  ask: [{ undo }],
  compensate: [{ detect, undo }, { recovery: "compensate" }],
  fail: [{}, { recovery: "fail" }],
};

/** Its runs are named after what is expected of them: a charge of `ask happened` is one that asks. */
export const charging = workflow("charging", async (ctx) => {
  const [policy] = ctx.run.id.split("-");
  const [spec, options] = POLICIES[policy];
  const pay = async ({ key }) => {
    reach("call");
    // The last of them to come here kills the process; the others must not get ahead.
    if (process.env.HOLD === "call") await new Promise(() => {});
    return (await bank()).charge({ id: ctx.run.id, cents: 4200 }, key);
  };
  const { payment } = await ctx.effect("charge", { ...spec, class: "execute", do: pay }, options);
  return payment;
});
