// A disk that is full for a while, again and again, or that has an I/O error now and then, as SQLite's driver would report it.

const sqliteError = (message, errcode) => Object.assign(new Error(message), { code: "ERR_SQLITE_ERROR", errcode });

/** What `sqliteStore` takes as `fault`. `kind` is "full" or "eio"; `told` hears of every spell and every error. */
export function brokenDisk(kind, chance, told) {
  return kind === "full" ? fullDisk(chance, told) : failingDisk(chance, told);
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
