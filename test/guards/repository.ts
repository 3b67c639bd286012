// A git repository of a test, gone with it.
import { execFileSync } from "node:child_process";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type GitCommitOptions, gitCommit } from "pawl/guards";
import { tempFolder } from "./lost-record.ts";

export class Repository {
  readonly cwd: string;

  constructor(folder: string = tempFolder()) {
    this.cwd = folder;
    this.git("init", "--quiet", "--initial-branch=main");
    this.git("config", "user.name", "Ada");
    this.git("config", "user.email", "ada@example.com");
  }

  git(...args: string[]): string {
    return execFileSync("git", args, { cwd: this.cwd, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.cwd, name), text);
  }

  read(name: string): string {
    return readFileSync(join(this.cwd, name), "utf8");
  }

  hook(name: string, script: string): void {
    const path = join(this.cwd, ".git", "hooks", name);
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
  }

  get count(): number {
    return Number(this.git("rev-list", "--all", "--count"));
  }

  get head(): string {
    return this.git("rev-parse", "HEAD");
  }

  /** A commit that is not the guard's. */
  commit(message: string): void {
    this.git("commit", "--quiet", "--allow-empty", "-m", message);
  }

  publish(options: Partial<GitCommitOptions> = {}) {
    return gitCommit({ cwd: this.cwd, message: "Publish", paths: ["page.html"], ...options });
  }
}
