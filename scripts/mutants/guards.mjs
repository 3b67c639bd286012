// Ready-made guards, and the check of detectors: S0-26 to S0-36.

const FILES = "test/guards/files.test.ts";
const SERVICES = "test/guards/services.test.ts";
const COMMITS = "test/guards/git-commit.test.ts";
const ROWS = "test/guards/insert-once.test.ts";
const DETECTORS = "test/guards/check-detector.test.ts";

export const guardMutants = [
  {
    rule: "S0-26",
    name: "a file is overwritten by whoever has lost the run",
    changes: [{ file: "src/files/atomic-file.ts", from: "    info.signal.throwIfAborted();\n", to: "" }],
    killers: [{ file: FILES, title: "I16" }],
  },
  {
    rule: "S0-26",
    name: "drafts of killed attempts stay",
    changes: [
      {
        file: "src/files/atomic-file.ts",
        from: "  if (info.attempt > 1) await removeDrafts(folder, prefix);\n",
        to: "  void removeDrafts;\n",
      },
    ],
    killers: [{ file: FILES, title: "removes what a killed attempt has left" }],
  },
  {
    rule: "S0-26",
    name: "undo overwrites what others have written since",
    changes: [
      {
        file: "src/guards/write-file.ts",
        from: "  if (now !== digestOf(written)) throw changedSince(path);\n",
        to: "  void [written, changedSince];\n",
      },
    ],
    killers: [{ file: FILES, title: "undo does not destroy" }],
  },
  {
    rule: "S0-29",
    name: "a result file counts whatever it says",
    changes: [
      {
        file: "src/guards/result-file.ts",
        from: "isResult(result) && result.passed ? result : null",
        to: "isResult(result) ? result : null",
      },
    ],
    killers: [{ file: FILES, title: "S0-29" }],
  },
  {
    rule: "S0-27",
    name: "a comment that quotes the marker is taken for it",
    changes: [
      {
        file: "src/guards/comment.ts",
        from: "if (!start.startsWith(mark)) return false;",
        to: "if (start.includes(mark)) return true;",
      },
    ],
    killers: [{ file: SERVICES, title: "S0-27 steps whose keys begin alike" }],
  },
  {
    rule: "S0-33",
    name: "a guard looks only if the engine asks",
    changes: [
      {
        file: "src/guards/look-first.ts",
        from: "if (known.found) return known.value;",
        to: "if (known.found && info.attempt < 2) return known.value;",
      },
    ],
    killers: [{ file: SERVICES, title: "S0-33" }],
  },
  {
    rule: "S0-33",
    name: "who has lost the run while it looked acts all the same",
    changes: [{ file: "src/guards/look-first.ts", from: "      info.signal.throwIfAborted();\n", to: "" }],
    killers: [{ file: SERVICES, title: "I16" }],
  },
  {
    rule: "S0-32",
    name: "who is refused does not look again",
    changes: [{ file: "src/guards/create-if-absent.ts", from: "if (made.found) return made.value;", to: "void made;" }],
    killers: [{ file: SERVICES, title: "S0-32 executions that begin together give one job where" }],
  },
  {
    rule: "S0-32",
    name: "a lock is taken by everybody",
    changes: [{ file: "src/guards/file-lock.ts", from: 'file.exec("begin exclusive");', to: 'file.exec("begin");' }],
    killers: [{ file: SERVICES, title: "S0-32 executions that begin together give one job with a lock" }],
  },
  {
    rule: "S0-30",
    name: "the trailer's text counts anywhere in a message",
    changes: [
      {
        file: "src/guards/git-commit.ts",
        from: 'return values.split("\\n").includes(keyText(key));',
        to: 'return values !== "never" || keyText(key) === "";',
      },
    ],
    killers: [{ file: COMMITS, title: "S0-30 the trailer's text" }],
  },
  {
    rule: "S0-30",
    name: "a commit is looked for on the current branch alone",
    changes: [
      { file: "src/guards/git-commit.ts", from: '"rev-list", "--all", "--fixed', to: '"rev-list", "HEAD", "--fixed' },
    ],
    killers: [{ file: COMMITS, title: "S0-30 it is found on another branch" }],
  },
  {
    rule: "S0-30",
    name: "the result file is not repaired",
    changes: [
      {
        file: "src/guards/git-commit.ts",
        from: "  if (file !== null) await writeResult(file, { passed: true, commit, key: info.key }, info);\n",
        to: "",
      },
    ],
    killers: [{ file: COMMITS, title: "S0-30 without its result file" }],
  },
  {
    rule: "S0-30",
    name: "a commit that a git made after its process was gone is missed",
    changes: [
      {
        file: "src/guards/git-commit.ts",
        from: 'if (changes === "" && !allowEmpty) return find(cwd, info.key, info);',
        to: 'if (changes === "" && !allowEmpty) return null;',
      },
    ],
    killers: [{ file: COMMITS, title: "finds a commit that a git made" }],
  },
  {
    rule: "S0-28",
    name: "a result file of another step is taken for this one's",
    changes: [
      {
        file: "src/guards/git-commit.ts",
        from: "return key === info.key ? { commit: commit as string | null } : null;",
        to: "return key === null ? null : { commit: commit as string | null };",
      },
    ],
    killers: [{ file: COMMITS, title: "S0-28 a result file of another run" }],
  },
  {
    rule: "S0-28",
    name: "a commit is reverted twice",
    changes: [
      {
        file: "src/guards/git-commit.ts",
        from: 'said, "HEAD"], info)) !== "") return;',
        to: 'said, "HEAD"], info)) === "-") return;',
      },
    ],
    killers: [{ file: COMMITS, title: "undo reverts it" }],
  },
  {
    rule: "S0-34",
    name: "names of columns are not quoted",
    changes: [{ file: "src/guards/insert-once.ts", from: `name.replaceAll('"', '""')`, to: "name" }],
    killers: [{ file: ROWS, title: "S0-34" }],
  },
  {
    rule: "S0-36",
    name: "a detector that writes is not told so",
    changes: [
      {
        file: "src/testing/check-detector.ts",
        from: "recorder?.requests.slice(asked)",
        to: "recorder?.requests.slice(asked, asked)",
      },
    ],
    killers: [{ file: DETECTORS, title: "S0-36 one that writes" }],
  },
];
