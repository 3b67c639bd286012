// What happens around a commit, at the boundary of SQLite's driver: a disk that is full for a while, again and again; one that has an I/O error
// now and then; a process that freezes or dies there, which from outside would hardly ever be hit.

const sqliteError = (message, errcode) => Object.assign(new Error(message), { code: "ERR_SQLITE_ERROR", errcode });

/** What `sqliteStore` takes as `fault`. `told(kind)` hears of every spell, error, freeze and death, before it happens. */
export function commitFault(kind, chance, told) {
  switch (kind) {
    case "full":
      return fullDisk(chance, told);
    case "eio":
      return failingDisk(chance, told);
    case "freeze":
      return signalled("SIGSTOP", ["begin", "after-commit"], chance, told);
    default:
      return signalled("SIGKILL", ["before-commit", "after-commit"], chance, told);
  }
}

/** Full for 0.1 to 1.2 s, then there is room for 0.5 to 2.5 s. */
function fullDisk(chance, told) {
  let isFull = false;
  let until = performance.now() + 500;
  return (point) => {
    if (point !== "before-commit") return;
    while (performance.now() >= until) {
      isFull = !isFull;
      until += isFull ? chance.between(100, 1200) : chance.between(500, 2500);
      if (isFull) told("disk full");
    }
    if (isFull) throw sqliteError("database or disk is full", 13);
  };
}

/** True once every so often, whatever the number of commits in between. */
function everySoOften(chance, fromMs, toMs) {
  let due = performance.now() + chance.between(0, toMs);
  return () => {
    if (performance.now() < due) return false;
    due = performance.now() + chance.between(fromMs, toMs);
    return true;
  };
}

/** A COMMIT fails; about every second time it has taken effect all the same. */
function failingDisk(chance, told) {
  const isDue = everySoOften(chance, 100, 1000);
  let point = "commit";
  return (reached) => {
    if (reached !== point || !isDue()) return;
    told(point === "commit" ? "I/O error, not applied" : "I/O error, applied");
    point = chance.pick(["commit", "after-commit"]);
    throw sqliteError("disk I/O error", 10);
  };
}

/** Not within a transaction for a freeze: it would only keep everybody else from writing. Right behind one, the world has not heard of it yet. */
function signalled(signal, points, chance, told) {
  const isDue = everySoOften(chance, 500, 3000);
  let point = chance.pick(points);
  return (reached) => {
    if (reached !== point || !isDue()) return;
    point = chance.pick(points);
    told(`${signal} at a commit`);
    process.kill(process.pid, signal);
  };
}
