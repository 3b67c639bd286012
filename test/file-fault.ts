// A disk that fails for good from the n-th access on: for the process on top of it, that is its end.
export class FileFault {
  #left = Number.POSITIVE_INFINITY;
  #tell: () => void = () => {};
  /** Resolves when it has failed: whoever tries again and again would never say so. */
  readonly struck: Promise<void> = new Promise((resolve) => {
    this.#tell = resolve;
  });

  readonly hit = (): void => {
    if (--this.#left >= 0) return;
    this.#tell();
    throw Object.assign(new Error("the process is gone"), { code: "EIO" });
  };

  /** The n-th access from now on fails, and all after it. */
  arm(n: number): void {
    this.#left = n - 1;
  }

  disarm(): void {
    this.#left = Number.POSITIVE_INFINITY;
  }
}
