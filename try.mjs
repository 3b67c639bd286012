import { workflow } from "pawl";
import { crashEverywhere, recorder, testEngine } from "pawl/testing";
const n = Number(process.argv[2] ?? 3);
const outside = recorder();
const wf = workflow("steps", async (ctx, input) => {
  let sum = 0;
  for (let i = 0; i < n; i++) sum += await ctx.step("s" + i, ({ key }) => { outside.record("do", { i }, key); return i; });
  return sum;
});
const t = performance.now();
const report = await crashEverywhere(wf, {}, { recorder: outside });
console.log(String(report));
console.log((performance.now() - t).toFixed(0), "ms", process.cpuUsage());
if (n < 5) for (const p of report.points) console.log(p.n, p.label);
