// Where a process can be killed inside the planning tools. They change the session alone, so the middle of one is where it tells its copy of the session
// what has become of the plan; the same happens once more when the recorded call is applied.
import { AddStep, Session, SetupPlan, UpdateStep } from "pawl/agent";

const ABOUT_THE_PLAN = [AddStep, SetupPlan, UpdateStep];

/** Calls `reached` behind everything that is dispatched about a plan. */
export function watchPlanning(reached) {
  const { dispatch } = Session.prototype;
  Session.prototype.dispatch = function (event) {
    const dispatched = dispatch.call(this, event);
    if (ABOUT_THE_PLAN.some((type) => type.is(event))) reached();
    return dispatched;
  };
}
