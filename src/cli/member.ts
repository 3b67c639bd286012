// A member of a fleet: one worker process, seen from the process that started it.
import { type ChildProcess, fork } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { ErrorCode } from "../base/errors.ts";
import { ownFile } from "../stores/own-file.ts";
import type { WorkingOn } from "./work.ts";
import type { Assignment, News, Order } from "./worker-process.ts";

/** What a process printed last may arrive after its end; something that it has started may keep its pipes open for ever. */
const LAST_WORDS_MS = 500;

export interface MemberEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Why it could not begin, as far as it could say. */
  readonly failure: { readonly message: string; readonly code: ErrorCode | null } | null;
  /** How long it was at work; 0 if it never was. */
  readonly workedMs: number;
}

export class Member {
  readonly place: number;
  readonly ended: Promise<MemberEnd>;
  /** What it works on, once it does; `null` if it ends before that. */
  readonly working: Promise<readonly WorkingOn[] | null>;
  readonly #process: ChildProcess;
  #workingSince: number | null = null;
  #failure: MemberEnd["failure"] = null;

  /** Starts it. `print` gets every line that it prints. */
  constructor(assignment: Assignment, print: (stream: "stdout" | "stderr", line: string) => void) {
    this.place = assignment.place;
    this.#process = fork(ownFile("#worker-process"), [], { stdio: ["ignore", "pipe", "pipe", "ipc"] });
    const { stdout, stderr } = this.#process;
    createInterface({ input: stdout as Readable }).on("line", (line) => print("stdout", line));
    createInterface({ input: stderr as Readable }).on("line", (line) => print("stderr", line));
    this.ended = this.#end();
    this.working = this.#work();
    this.#tell({ kind: "work", assignment });
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** Lets running steps finish; kills it if it is still there after `limitMs`. True if it had to be killed. */
  async stop(limitMs: number): Promise<boolean> {
    this.#tell({ kind: "stop" });
    let isKilled = false;
    const timer = setTimeout(() => {
      isKilled = true;
      this.kill();
    }, limitMs);
    await this.ended;
    clearTimeout(timer);
    return isKilled;
  }

  kill(): void {
    this.#process.kill("SIGKILL");
  }

  #tell(order: Order): void {
    // It may be gone, and then its end tells the rest.
    if (this.#process.connected) this.#process.send(order, () => {});
  }

  #work(): Promise<readonly WorkingOn[] | null> {
    return new Promise((resolve) => {
      this.#process.on("message", (news: News) => {
        if (news.kind === "failed") this.#failure = news;
        else {
          this.#workingSince = performance.now();
          resolve(news.workflows);
        }
      });
      void this.ended.then(() => resolve(null));
    });
  }

  #end(): Promise<MemberEnd> {
    return new Promise((resolve) => {
      const done = (code: number | null, signal: NodeJS.Signals | null) => {
        const workedMs = this.#workingSince === null ? 0 : performance.now() - this.#workingSince;
        resolve({ code, signal, failure: this.#failure, workedMs });
      };
      this.#process.once("exit", (code, signal) => setTimeout(() => done(code, signal), LAST_WORDS_MS));
      this.#process.once("close", done);
      this.#process.once("error", () => {
        if (this.#process.pid === undefined) done(null, null);
      });
    });
  }
}
