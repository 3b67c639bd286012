import type { Draft } from "./draft.ts";
import type { InboxRow, Mail } from "./store.ts";

export type MailState = Pick<Mail, "wake" | "cancel" | "inbox">;

/** What a pass knows of its run's inbox, wake counter and cancel. */
export class Mailbox {
  #consumed: Set<string> | null = null;
  rows: readonly InboxRow[];
  /** The counter as it was read with the rows: a suspension holds only if it is still that (P18). */
  wake: number;
  cancel: string | null;
  /** Store time of the read: a timeout fires only after one at or after its due time (P5). */
  readAt: number;
  isBeingRead = false;

  constructor(mail: MailState, readAt: number) {
    this.rows = mail.inbox;
    this.wake = mail.wake;
    this.cancel = mail.cancel;
    this.readAt = readAt;
  }

  update(mail: MailState, readAt: number): void {
    this.isBeingRead = false;
    this.wake = mail.wake;
    this.cancel = mail.cancel;
    this.readAt = readAt;
    // A consumption may still be in flight: the store then shows a row that this pass has used already (P5).
    this.rows = mail.inbox.filter((row) => this.#consumed?.has(row.id) !== true);
  }

  /** Uses a row up, in the commit that records what it led to. */
  consume(row: InboxRow, draft: Draft): void {
    this.#consumed ??= new Set();
    this.#consumed.add(row.id);
    this.rows = this.rows.filter((one) => one.id !== row.id);
    draft.consume(row.id);
  }

  get state(): MailState {
    return { wake: this.wake, cancel: this.cancel, inbox: this.rows };
  }
}
