/** The tag of a value that was taken out; it says what kind of value that was. */
export const REDACTED_TAG = "$redacted";
/** Stands for text where the format needs one, inside longer texts, and for digests. */
export const REDACTED_TEXT = "[redacted]";

export const REDACTED_CLASS = "[object Pawl.Redacted]";

/** Stands where a value was taken out before it was recorded. It can be passed on and recorded again; there is nothing in it but the kind of what it was. */
export class Redacted {
  readonly kind: string;

  constructor(kind: string) {
    this.kind = kind;
    Object.freeze(this);
  }

  get [Symbol.toStringTag](): string {
    return "Pawl.Redacted";
  }

  toString(): string {
    return REDACTED_TEXT;
  }

  toJSON(): string {
    return REDACTED_TEXT;
  }
}
