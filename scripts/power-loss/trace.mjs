// Reads what strace has recorded of a process into the events that matter to a disk: writes, truncations, syncs, names that come and go,
// and the acknowledgements between them.
import { basename, dirname } from "node:path";

export const TRACED =
  "openat,creat,write,pwrite64,pwritev,writev,ftruncate,fallocate,rename,renameat,renameat2,fsync,fdatasync,unlink,unlinkat";

/** What a model of the disk has no word for. */
const UNKNOWN = /^(creat|pwritev|writev|fallocate|rename|renameat|renameat2)$/;
const CALL = /^(\d+) +(\w+)\((.*)\) += +(-?\d+)/s;
const BEGUN = /^(\d+) +(\w+)\((.*) <unfinished \.\.\.>$/s;
const RESUMED = /^(\d+) +<\.\.\. (\w+) resumed>(.*)\) += +(-?\d+)/s;

/**
 * The events of a trace, in the order of their ends. A sync also knows how many events were over when it began: it covers those alone.
 * Only files of `folder` count, except the shared memory of the WAL, which no power cut leaves.
 */
export function readTrace(text, folder) {
  const events = [];
  const begun = new Map();
  for (const line of text.split("\n")) {
    const unfinished = BEGUN.exec(line);
    if (unfinished !== null) {
      begun.set(unfinished[1], { args: unfinished[3], since: events.length });
      continue;
    }
    const resumed = RESUMED.exec(line);
    const call = resumed ?? CALL.exec(line);
    if (call === null) continue;
    const start = resumed === null ? { args: "", since: events.length } : begun.get(call[1]);
    if (start === undefined) continue;
    const event = eventOf(call[2], start.args + call[3], Number(call[4]), folder);
    if (event !== null) events.push({ ...event, since: start.since });
  }
  return events;
}

function eventOf(call, args, result, folder) {
  if (result < 0) return null;
  const path = pathOf(call, args);
  if (path === null) return null;
  if (path === folder) return call === "fsync" || call === "fdatasync" ? { kind: "sync-folder" } : null;
  const file = basename(path);
  if (dirname(path) !== folder || file.endsWith("-shm") || file === "trace") return null;
  if (UNKNOWN.test(call)) throw new Error(`The model of the disk does not know ${call} of ${file}.`);
  if (file === "acks") return call === "write" ? { kind: "ack", facts: factsOf(args) } : null;
  switch (call) {
    case "openat":
      return args.includes("O_CREAT") ? { kind: "open", file, isEmptied: args.includes("O_TRUNC") } : null;
    case "unlink":
    case "unlinkat":
      return { kind: "unlink", file };
    case "ftruncate":
      return { kind: "truncate", file, size: Number(/, (\d+)$/.exec(args)[1]) };
    case "pwrite64": {
      const [, hex, offset] = /"((?:\\x..)*)", \d+, (\d+)$/.exec(args);
      return { kind: "write", file, data: bytesOf(hex).subarray(0, result), offset: Number(offset) };
    }
    case "fsync":
    case "fdatasync":
      return { kind: "sync", file };
    default:
      throw new Error(`The model of the disk does not know ${call} of ${file}.`);
  }
}

/** The file that a call is about: by its descriptor, or for names by its last text. */
function pathOf(call, args) {
  if (/^(openat|unlink|unlinkat)$/.test(call)) {
    const named = /"((?:\\x..)*)"/.exec(args);
    return named === null ? null : bytesOf(named[1]).toString("utf8");
  }
  const opened = /^\d+<((?:[^>])*)>/.exec(args);
  return opened === null ? null : bytesOf(opened[1]).toString("utf8");
}

function factsOf(args) {
  const text = bytesOf(/"((?:\\x..)*)"/.exec(args)[1]).toString("utf8");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

function bytesOf(hex) {
  return Buffer.from(hex.replaceAll("\\x", ""), "hex");
}
