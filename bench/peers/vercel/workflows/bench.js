import { sleep } from "workflow";

async function add(input, index) {
  "use step";
  return globalThis.benchBody(input, index);
}

export async function steps(input) {
  "use workflow";
  let sum = 0;
  for (let i = 0; i < input.steps; i++) sum += await add(input, i);
  return sum;
}

export async function sleeper(input) {
  "use workflow";
  await add(input, 0);
  await sleep("30d");
}
