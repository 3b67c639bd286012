/** Calls `start` `total` times, or until `isOver`, at most `inFlight` of them unfinished at any moment. */
export async function closedLoop(total, inFlight, start, isOver = () => false) {
  let started = 0;
  const lane = async () => {
    while (started < total && !isOver()) {
      started += 1;
      await start();
    }
  };
  await Promise.all(Array.from({ length: Math.min(total, inFlight) }, lane));
}
