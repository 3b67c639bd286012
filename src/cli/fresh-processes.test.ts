import { expect, it, onTestFinished, vi } from "vitest";
import { drawPoints, killEverywhere, MOST_POINTS } from "./fresh-processes.ts";

const pointsUpTo = (n: number) => Array.from({ length: n }, (_, i) => i + 1);

it("S4-1 up to 200 points are all tried in fresh processes, in their order", () => {
  expect(MOST_POINTS).toBe(200);
  expect(drawPoints(pointsUpTo(200), 7, MOST_POINTS)).toEqual(pointsUpTo(200));
});

it("S4-1 of more points, 200 different ones are drawn by lot: the same for the same seed, others for another one", () => {
  const points = pointsUpTo(1000);
  const drawn = drawPoints(points, 7, MOST_POINTS);
  expect(drawn.length).toBe(200);
  expect(new Set(drawn).size).toBe(200);
  expect(points).toEqual(expect.arrayContaining(drawn));
  expect(drawPoints(points, 7, MOST_POINTS)).toEqual(drawn);
  expect(drawPoints(points, 8, MOST_POINTS).toSorted()).not.toEqual(drawn.toSorted());
});

it("S4-1 every point is drawn under some seed, none much more often than others", () => {
  const times = new Map<number, number>();
  for (let seed = 0; seed < 300; seed++)
    for (const n of drawPoints(pointsUpTo(400), seed, MOST_POINTS)) times.set(n, (times.get(n) ?? 0) + 1);
  expect(times.size).toBe(400);
  // Half of 300, and six standard deviations around it.
  expect(Math.min(...times.values())).toBeGreaterThan(98);
  expect(Math.max(...times.values())).toBeLessThan(202);
});

it("a folder for temporary files that cannot be written to is named, with what to do", async () => {
  vi.stubEnv("TMPDIR", "/nowhere/at/all");
  onTestFinished(() => void vi.unstubAllEnvs());
  await expect(killEverywhere({} as never)).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringMatching(/in \/nowhere\/at\/all \(ENOENT\).*Set TMPDIR.*--no-processes/),
  });
});
