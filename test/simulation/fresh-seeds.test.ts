// Simulations of seeds that nobody has seen, for as long as there is time: PAWL_SIMULATE_SECONDS, a minute by default
import { expect, it } from "vitest";
import { drawScenario, simulate } from "../../src/testing/index.ts";
import { expectNoViolation } from "./no-violation.ts";

const FRESH_MS = Number(process.env["PAWL_SIMULATE_SECONDS"] ?? 60) * 1000;

it(
  "I3 I4 I5 I6 I8 I9 I10 I14 I15 I16 I17 I18 I22 I26 Q6 CO1 CO2 CO3 hold in fresh seeds, for as long as there is time",
  async () => {
    const first = Math.floor(Math.random() * 2 ** 40);
    const until = performance.now() + FRESH_MS;
    let seed = first;
    for (; performance.now() < until; seed++) expectNoViolation(await simulate(drawScenario(seed)));
    console.log(`simulated ${seed - first} fresh seeds from ${first} on`);
    expect(seed).toBeGreaterThan(first);
  },
  60_000 + FRESH_MS,
);
