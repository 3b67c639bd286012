// Commits, in real repositories.
import { existsSync, mkdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gitCommit } from "pawl/guards";
import { describe, expect, it, onTestFinished } from "vitest";
import { doTwice, infoOf, loseRecord, tempFolder, undoInfoOf } from "./lost-record.ts";
import { Repository } from "./repository.ts";

describe("gitCommit", () => {
  it("S0-28 S0-34 two executions give one commit and the same id; the unguarded twin gives two", async () => {
    const repository = new Repository();
    repository.write("page.html", "v1");
    const [first, second] = await loseRecord(() => repository.publish(), "run-1/publish");
    expect(first).toEqual({ commit: repository.head });
    expect(second).toEqual(first);
    expect(await doTwice(() => repository.publish(), "run-1/publish")).toEqual([first, first]);
    expect(repository.count).toBe(1);
    expect(repository.git("log", "-1", "--format=%B")).toBe("Publish\n\nPawl-Step: run-1/publish");

    const twin = new Repository();
    let n = 0;
    await loseRecord(() => ({
      do() {
        twin.write("page.html", `v${++n}`);
        twin.git("add", "page.html");
        twin.commit("Publish");
      },
    }));
    expect(twin.count).toBe(2);
  });

  it("S0-28 what is staged outside of its folder is committed, whatever the user wants to see of it", async () => {
    const repository = new Repository();
    repository.git("config", "diff.relative", "true");
    repository.write("page.html", "v1");
    repository.git("add", "page.html");
    const cwd = join(repository.cwd, "sub");
    mkdirSync(cwd);
    const [made] = await loseRecord(() => gitCommit({ cwd, message: "Publish" }), "run-1/publish");
    expect(made).toEqual({ commit: repository.head });
  });

  it("S0-28 a second run has a commit of its own, and steps whose keys begin alike do, too", async () => {
    const repository = new Repository();
    for (const [i, key] of ["run-1/publish#2", "run-1/publish", "run-2/publish", "run-2/pub"].entries()) {
      repository.write("page.html", `v${i}`);
      await loseRecord(() => repository.publish(), key);
    }
    expect(repository.count).toBe(4);
  });

  it("S0-28 S0-29 a result file that says passed is the result; false, or no word of it, means that the commit happens", async () => {
    const repository = new Repository();
    repository.write("page.html", "v1");
    const make = () => repository.publish({ resultFile: "result.json" });
    const file = '{"passed":true,"commit":"0123abc"}';
    repository.write("result.json", file);
    expect(await make().do(infoOf("run-1/publish"))).toEqual({ commit: "0123abc" });
    expect(() => repository.head).toThrow();
    repository.write("result.json", '{"passed":false,"commit":"0123abc"}');
    const { commit } = await make().do(infoOf("run-1/publish"));
    expect(commit).toBe(repository.head);
    expect(JSON.parse(repository.read("result.json"))).toEqual({ passed: true, commit, key: "run-1/publish" });
    repository.write("result.json", "{}");
    expect(await make().do(infoOf("run-1/publish", 2))).toEqual({ commit });
    expect(repository.count).toBe(1);
  });

  it("S0-30 without its result file, the commit is found in the history, and the file is repaired", async () => {
    const repository = new Repository();
    repository.write("page.html", "v1");
    const make = () => repository.publish({ resultFile: "result.json" });
    const first = await make().do(infoOf("run-1/publish"));
    rmSync(join(repository.cwd, "result.json"));
    repository.write("page.html", "v2");
    expect(make()).toMatchObject({ idempotent: true });
    expect(make().detect).toBeUndefined();
    expect(await make().do(infoOf("run-1/publish", 2))).toEqual(first);
    expect(repository.count).toBe(1);
    expect(JSON.parse(repository.read("result.json"))).toMatchObject({ passed: true, commit: first.commit });
  });

  it("S0-28 a result file of another run is not taken for this run's", async () => {
    const repository = new Repository();
    for (const run of ["run-1", "run-2"]) {
      repository.write("page.html", run);
      await loseRecord(() => repository.publish({ resultFile: "result.json" }), `${run}/publish`);
    }
    expect(repository.count).toBe(2);
  });

  it("S0-30 the trailer's text in another message, in its body or with another key, is not taken for it", async () => {
    const repository = new Repository();
    repository.commit("Explain\n\nCommits end like this:\n\nPawl-Step: run-1/publish\n\nand are found by it.");
    repository.commit("Longer\n\nPawl-Step: run-1/publish#2");
    repository.write("page.html", "v1");
    const { commit } = await repository.publish().do(infoOf("run-1/publish"));
    expect([commit, repository.count]).toEqual([repository.head, 3]);
  });

  it("S0-30 it is found on another branch, on a detached head, under later commits and by its copy in a rebase", async () => {
    const repository = new Repository();
    repository.commit("Begin");
    repository.git("checkout", "--quiet", "--detach");
    repository.write("page.html", "v1");
    const first = await repository.publish().do(infoOf("run-1/publish"));
    repository.commit("On top");
    const again = () => repository.publish().do(infoOf("run-1/publish", 2));
    expect(await again()).toEqual(first);
    repository.git("branch", "kept");
    repository.git("checkout", "--quiet", "main");
    expect(await again()).toEqual(first);
    repository.git("cherry-pick", "--quiet", String(first.commit), "--allow-empty", "--strategy-option=theirs");
    repository.git("branch", "--quiet", "-D", "kept");
    expect(await again()).toEqual({ commit: repository.head });
  });

  it("commits the paths that it is given, new, changed and deleted, as names, and leaves what else is staged", async () => {
    const repository = new Repository();
    repository.write("old.txt", "old");
    repository.git("add", ".");
    repository.commit("Begin");
    rmSync(join(repository.cwd, "old.txt"));
    repository.write("*.md", "a name, not a pattern");
    repository.write("readme.md", "not mine");
    repository.write("staged.txt", "not mine");
    repository.git("add", "staged.txt");
    await repository.publish({ paths: ["*.md", "old.txt"] }).do(infoOf("run-1/publish"));
    expect(repository.git("show", "--name-status", "--format=", "HEAD").split("\n").sort()).toEqual([
      "A\t*.md",
      "D\told.txt",
    ]);
    expect(repository.git("status", "--porcelain").split("\n").sort()).toEqual(["?? readme.md", "A  staged.txt"]);
  });

  it("commits what is staged if no paths are given", async () => {
    const repository = new Repository();
    repository.write("a.txt", "a");
    repository.write("b.txt", "b");
    repository.git("add", "a.txt");
    await gitCommit({ cwd: repository.cwd, message: "Half" }).do(infoOf("run-1/publish"));
    expect(repository.git("ls-tree", "--name-only", "HEAD")).toBe("a.txt");
  });

  it("makes no commit if nothing has changed, and says so; with allowEmpty it makes one, once", async () => {
    const repository = new Repository();
    repository.write("page.html", "v1");
    await repository.publish().do(infoOf("run-1/publish"));
    expect(await repository.publish().do(infoOf("run-2/publish"))).toEqual({ commit: null });
    expect(repository.count).toBe(1);
    await loseRecord(() => repository.publish({ allowEmpty: true }), "run-3/publish");
    expect(repository.count).toBe(2);
  });

  it("keeps the trailers of a message together, and a title that looks like one apart", async () => {
    const repository = new Repository();
    const message = "fix: page\n\nSigned-off-by: Ada <ada@example.com>\n";
    repository.write("page.html", "v1");
    await repository.publish({ message }).do(infoOf("run-1/publish"));
    expect(repository.git("log", "-1", "--format=%(trailers:only)")).toBe(
      "Signed-off-by: Ada <ada@example.com>\nPawl-Step: run-1/publish",
    );
    repository.write("page.html", "v2");
    await loseRecord(() => repository.publish({ message: "fix: page" }), "run-2/publish");
    expect(repository.git("log", "-1", "--format=%s|%b")).toBe("fix: page|Pawl-Step: run-2/publish");
  });

  it("nothing in a message, a path or a key is an option or a command", async () => {
    const repository = new Repository();
    repository.write("--all", "a file");
    const message = '--amend\n\n$(touch pwned); `touch pwned` "\n# not a comment';
    await loseRecord(
      () => repository.publish({ message, paths: ["--all"] }),
      'run-1/$(touch pwned) "x"\nPawl-Step: run-9/y',
    );
    expect(repository.count).toBe(1);
    expect(repository.git("log", "-1", "--format=%B")).toContain("# not a comment");
    expect(await repository.publish({ allowEmpty: true }).detect?.(infoOf("run-9/y"))).toEqual({ found: false });
    expect(existsSync(join(repository.cwd, "pwned"))).toBe(false);
  });

  it("a hook that refuses is an error with its words, and one that takes the trailer out is told of", async () => {
    const repository = new Repository();
    repository.write("page.html", "v1");
    repository.hook("pre-commit", "echo no tests, no commit >&2; exit 1");
    await expect(repository.publish().do(infoOf("run-1/publish"))).rejects.toThrow(
      /git commit failed .*no tests, no commit/,
    );
    repository.hook("pre-commit", "exit 0");
    repository.hook("commit-msg", 'echo "Cleaned" > "$1"');
    const warnings: string[] = [];
    const warned = (warning: Error) => void warnings.push(warning.message);
    process.on("warning", warned);
    onTestFinished(() => void process.off("warning", warned));
    expect(await repository.publish().do(infoOf("run-1/publish", 2))).toEqual({ commit: repository.head });
    await expect.poll(() => warnings.join()).toContain("has taken the trailer Pawl-Step out of commit");
  });

  it("a lock that another git holds may be tried again", async () => {
    const repository = new Repository();
    repository.write("page.html", "v1");
    const lock = join(repository.cwd, ".git", "index.lock");
    writeFileSync(lock, "");
    await expect(repository.publish().do(infoOf("run-1/publish"))).rejects.toMatchObject({ name: "RetryableError" });
    rmSync(lock);
    expect(await repository.publish().do(infoOf("run-1/publish", 2))).toEqual({ commit: repository.head });
  });

  it("finds a commit that a git made after its process was gone, when there is nothing left to commit", async () => {
    const repository = new Repository();
    repository.commit("Begin");
    repository.write("page.html", "v1");
    repository.git("add", "page.html");
    const tree = repository.git("write-tree");
    const message = "Publish\n\nPawl-Step: run-1/publish";
    const late = repository.git("commit-tree", tree, "-p", "HEAD", "-m", message);
    // When the file is added, after the look, the git of the killed process comes to its end.
    repository.git("config", "filter.late.clean", `git update-ref HEAD ${late}; cat`);
    writeFileSync(join(repository.cwd, ".git", "info", "attributes"), "page.html filter=late\n");
    utimesSync(join(repository.cwd, "page.html"), 0, 0);
    expect(await repository.publish().do(infoOf("run-1/publish", 2))).toEqual({ commit: late });
    expect(repository.count).toBe(2);
  });

  it("is not led astray by the variables of a hook that the process runs in", async () => {
    const [repository, other] = [new Repository(), new Repository()];
    repository.write("page.html", "v1");
    process.env["GIT_DIR"] = join(other.cwd, ".git");
    onTestFinished(() => void delete process.env["GIT_DIR"]);
    await repository.publish().do(infoOf("run-1/publish"));
    delete process.env["GIT_DIR"];
    expect([repository.count, other.count]).toEqual([1, 0]);
  });

  it("undo reverts it by a commit, once, and takes the word of the result file back", async () => {
    const repository = new Repository();
    repository.commit("Begin");
    repository.write("page.html", "v1");
    const make = () => repository.publish({ undo: true, resultFile: "result.json" });
    const made = await make().do(infoOf("run-1/publish"));
    for (const attempt of [1, 2]) await make().undo?.(made, undoInfoOf("run-1/publish", attempt));
    expect(repository.git("log", "--format=%s").split("\n")).toEqual(['Revert "Publish"', "Publish", "Begin"]);
    expect(existsSync(join(repository.cwd, "page.html"))).toBe(false);
    expect(JSON.parse(repository.read("result.json"))).toMatchObject({ passed: false });
    expect(repository.publish().undo).toBeUndefined();
  });

  it("undo finds the commit by itself if nobody can tell whether it was made, and does nothing if it was not", async () => {
    const repository = new Repository();
    repository.commit("Begin");
    const spec = repository.publish({ undo: true, resultFile: "result.json" });
    await spec.undo?.(undefined, undoInfoOf("run-1/publish"));
    expect(repository.count).toBe(1);
    repository.write("page.html", "v1");
    await spec.do(infoOf("run-1/publish"));
    await spec.undo?.(undefined, undoInfoOf("run-1/publish"));
    expect(repository.git("log", "-1", "--format=%s")).toBe('Revert "Publish"');
  });

  it("an undo that meets a conflict fails, and leaves the working tree as it was", async () => {
    const repository = new Repository();
    repository.write("page.html", "v1");
    const spec = repository.publish({ undo: true });
    const made = await spec.do(infoOf("run-1/publish"));
    repository.write("page.html", "v2 of somebody else");
    repository.git("commit", "--quiet", "--all", "-m", "Edit");
    await expect(spec.undo?.(made, undoInfoOf("run-1/publish"))).rejects.toThrow(/git revert failed/);
    expect(repository.git("status", "--porcelain")).toBe("");
    expect(repository.read("page.html")).toBe("v2 of somebody else");
  });

  it.each([
    ["revert", 1],
    ["cherry-pick", 1],
    ["revert", 0],
  ])("an undo leaves a %s alone that somebody else is in the middle of (HEAD~%i)", async (command, back) => {
    const repository = new Repository();
    repository.write("page.html", "v1");
    const spec = repository.publish({ undo: true });
    const made = await spec.do(infoOf("run-1/publish"));
    for (const text of ["v2", "v3", "v4"]) {
      repository.write("page.html", text);
      repository.git("commit", "--quiet", "--all", "-m", text);
    }
    // A person has a conflict, and has worked on it.
    const commit = back === 0 ? String(made.commit) : `HEAD~${back}`;
    expect(() => repository.git(command, commit)).toThrow();
    repository.write("page.html", "hours of work");
    await expect(spec.undo?.(made, undoInfoOf("run-1/publish"))).rejects.toThrow(/git revert failed/);
    expect(repository.read("page.html")).toBe("hours of work");
    expect(repository.git("status", "--porcelain")).toMatch(/page.html/);
  });

  it("no paths are no files: nothing is added, and nothing that is staged goes along", async () => {
    const repository = new Repository();
    repository.commit("Begin");
    repository.write("secret.txt", "not meant for it");
    repository.write("staged.txt", "for later");
    repository.git("add", "staged.txt");
    expect(await repository.publish({ paths: [] }).do(infoOf("run-1/publish"))).toEqual({ commit: null });
    expect(repository.git("status", "--porcelain").split("\n").sort()).toEqual(["?? secret.txt", "A  staged.txt"]);
    const { commit } = await repository.publish({ paths: [], allowEmpty: true }).do(infoOf("run-2/publish"));
    expect(repository.head).toBe(commit);
    expect(repository.git("show", "--name-only", "--format=", "HEAD")).toBe("");
    expect(repository.git("status", "--porcelain").split("\n").sort()).toEqual(["?? secret.txt", "A  staged.txt"]);
  });

  it("refuses a message without words, which would leave the trailer as the title", () => {
    const repository = new Repository();
    expect(() => repository.publish({ message: " \n" })).toThrow(/`message` of gitCommit is empty/);
  });

  it("says what is wrong if there is no such folder, or no repository", async () => {
    const folder = tempFolder();
    const at = (cwd: string) => gitCommit({ cwd, message: "x" }).do(infoOf("run-1/publish"));
    await expect(at(join(folder, "nope"))).rejects.toThrow(/cannot be started in .*nope. Install it/);
    await expect(at(folder)).rejects.toThrow(/git rev-list failed in .*not a git repository/);
  });
});
