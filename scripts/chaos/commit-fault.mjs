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

/** One COMMIT in five fails: half of those have taken effect all the same. */
function failingDisk(chance, told) {
  return (point) => {
    if ((point !== "commit" && point !== "after-commit") || !chance.hits(1 / 10)) return;
    told(point === "commit" ? "I/O error, not applied" : "I/O error, applied");
    throw sqliteError("disk I/O error", 10);
  };
}

/** Not within a transaction for a freeze: it would only keep everybody else from writing. Right behind one, the world has not heard of it yet. */
function signalled(signal, points, chance, told) {
  return (point) => {
    if (!points.includes(point) || !chance.hits(1 / 25)) return;
    told(`${signal} at a commit`);
    process.kill(process.pid, signal);
  };
}
