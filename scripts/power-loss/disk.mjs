// A disk as a power cut leaves it
// What was synced is there. What was written since then is there or not, whole or in part: the models say how. Syncing a file makes its name
// durable as well, as the usual file systems do; a name that was taken away may come back until its folder is synced.

/**
 * What becomes of writes that no sync has covered. Dropped: none is there. Subset: each is there or not. Torn: all are there, but of the last
 * few each sector of 512 bytes is there or not.
 */
export const MODELS = ["dropped", "subset", "torn"];

const SECTOR = 512;
const TORN_WRITES = 8;

export class Disk {
  /** What was synced: file names, and the content of each. */
  #names = new Map();
  /** What happened to names and contents since, in order. */
  #pending = [];
  #current = new Map();
  #done = 0;
  #isLying;

  /** A lying disk says that it has synced, and has not. */
  constructor({ isLying = false } = {}) {
    this.#isLying = isLying;
  }

  apply(event) {
    const at = this.#done++;
    const { kind, file } = event;
    if (kind === "ack") return;
    if (kind === "sync" || kind === "sync-folder") return this.#isLying ? undefined : this.#sync(event);
    if (kind === "open") return this.#open(event, at);
    const inode = this.#current.get(file);
    if (inode === undefined) throw new Error(`${kind} of ${file}, which is not there.`);
    if (kind === "unlink") this.#current.delete(file);
    this.#pending.push({ ...event, inode, at });
  }

  #open({ file, isEmptied }, at) {
    const inode = this.#current.get(file);
    if (inode === undefined) {
      const created = { content: Buffer.alloc(0), size: 0 };
      this.#current.set(file, created);
      this.#pending.push({ kind: "create", file, inode: created, at });
    } else if (isEmptied) this.#pending.push({ kind: "truncate", file, size: 0, inode, at });
  }

  #sync({ kind, file, since }) {
    const inode = this.#current.get(file);
    const isCovered = (one) => {
      if (one.at >= since) return false;
      const isName = one.kind === "create" || one.kind === "unlink";
      return kind === "sync-folder" ? isName : one.inode === inode && one.kind !== "unlink";
    };
    const left = [];
    for (const one of this.#pending) {
      if (isCovered(one)) settle(this.#names, one);
      else left.push(one);
    }
    this.#pending = left;
  }

  /** The files that a power cut at this moment could leave, by name. */
  cut(model, random) {
    const inodes = new Map();
    const copyOf = (inode) => {
      if (!inodes.has(inode)) inodes.set(inode, { content: Buffer.from(inode.content), size: inode.size });
      return inodes.get(inode);
    };
    const names = new Map([...this.#names].map(([file, inode]) => [file, copyOf(inode)]));
    for (const one of survivors(this.#pending, model, random)) settle(names, { ...one, inode: copyOf(one.inode) });
    return new Map([...names].map(([file, { content, size }]) => [file, content.subarray(0, size)]));
  }
}

function settle(names, { kind, file, inode, data, offset, size }) {
  if (kind === "create") names.set(file, inode);
  else if (kind === "unlink") names.delete(file);
  else if (kind === "truncate") resize(inode, size);
  else {
    resize(inode, Math.max(inode.size, offset + data.length));
    data.copy(inode.content, offset);
  }
}

/** Makes it shorter, or longer with zeros. There is room to spare, all zeros: a file that grows by pages would else be copied for each. */
function resize(inode, size) {
  if (size < inode.size) inode.content.fill(0, size, inode.size);
  if (size > inode.content.length) {
    const content = Buffer.alloc(2 * size);
    inode.content.copy(content);
    inode.content = content;
  }
  inode.size = size;
}

function survivors(pending, model, random) {
  if (model === "dropped") return [];
  if (model === "subset") {
    const share = random();
    return pending.filter(() => random() < share);
  }
  const whole = Math.max(0, pending.length - 1 - Math.floor(random() * TORN_WRITES));
  return [...pending.slice(0, whole), ...pending.slice(whole).flatMap((one) => torn(one, random))];
}

function torn(one, random) {
  if (one.kind !== "write") return random() < 0.5 ? [one] : [];
  const parts = [];
  const { data, offset } = one;
  // Sectors are those of the disk: a write may begin in the middle of one.
  for (let from = 0; from < data.length; ) {
    const to = Math.min(data.length, from + SECTOR - ((offset + from) % SECTOR));
    if (random() < 0.5) parts.push({ ...one, data: data.subarray(from, to), offset: offset + from });
    from = to;
  }
  return parts;
}
