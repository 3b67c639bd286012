// Guards over files: an atomic overwrite, and once by a result file.
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { contentOf, onceByFile, writeFile } from "pawl/guards";
import { describe, expect, it } from "vitest";
import { doTwice, infoOf, loseRecord, tempFolder, undoInfoOf } from "./lost-record.ts";

const read = (path: string): string => readFileSync(path, "utf8");

describe("writeFile", () => {
  it("S0-26 S0-34 leaves identical bytes when it is done again; appending, its unguarded twin, leaves them twice", async () => {
    const folder = tempFolder();
    const [guarded, unguarded] = [join(folder, "report.txt"), join(folder, "twin.txt")];
    const [first, second] = await loseRecord(() => writeFile(guarded, "42 rows\n"));
    expect(second).toEqual(first);
    expect(read(guarded)).toBe("42 rows\n");
    await loseRecord(() => ({ do: () => writeFileSync(unguarded, "42 rows\n", { flag: "a" }) }));
    expect(read(unguarded)).toBe("42 rows\n42 rows\n");
  });

  it("S0-26 is never seen half: the file is another one, made beside it, and no draft is left", async () => {
    const folder = tempFolder();
    const path = join(folder, "report.txt");
    writeFileSync(path, "old");
    const before = statSync(path).ino;
    await writeFile(path, new Uint8Array([110, 101, 119])).do(infoOf("run-1/effect"));
    expect(statSync(path).ino).not.toBe(before);
    expect(read(path)).toBe("new");
    expect(readdirSync(folder)).toEqual(["report.txt"]);
  });

  it("S0-26 writes where a link leads, also if nothing is there yet, and its undo leaves the link", async () => {
    const folder = tempFolder();
    const [target, first, second] = ["today.txt", "first", "second"].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    symlinkSync("first", second);
    symlinkSync("today.txt", first);
    const spec = writeFile(second, "new", { before: await contentOf(second) });
    await spec.do(infoOf("run-1/effect"));
    expect(read(target)).toBe("new");
    await spec.undo?.(undefined, undoInfoOf("run-1/effect"));
    expect(readdirSync(folder).sort()).toEqual(["first", "second"]);
  });

  it("keeps the permissions of the file, and a link a link", async () => {
    const folder = tempFolder();
    const [path, link] = [join(folder, "run.sh"), join(folder, "link.sh")];
    writeFileSync(path, "old");
    chmodSync(path, 0o750);
    symlinkSync(path, link);
    await writeFile(link, "new").do(infoOf("run-1/effect"));
    expect(read(path)).toBe("new");
    expect(statSync(path).mode & 0o777).toBe(0o750);
    expect(readdirSync(folder).sort()).toEqual(["link.sh", "run.sh"]);
  });

  it("removes what a killed attempt has left, and nothing that is another's", async () => {
    const folder = tempFolder();
    const path = join(folder, "report.txt");
    const drafts: string[] = [];
    // The draft is there when the attempt looks whether it may still go on.
    const dying = { aborted: false, throwIfAborted: () => void drafts.push(...readdirSync(folder)) } as AbortSignal;
    await writeFile(path, "first").do(infoOf("run-1/effect", 1, dying));
    const [draft = ""] = drafts.filter((name) => name !== "report.txt");
    writeFileSync(join(folder, draft), "half of");
    writeFileSync(join(folder, ".pawl-0000000000000000-other"), "another's");
    await writeFile(path, "second").do(infoOf("run-1/effect", 2));
    expect(readdirSync(folder).sort()).toEqual([".pawl-0000000000000000-other", "report.txt"]);
  });

  it("I16 writes nothing for a process that has lost the run", async () => {
    const folder = tempFolder();
    const lost = AbortSignal.abort(new Error("lease lost"));
    await expect(writeFile(join(folder, "a.txt"), "late").do(infoOf("run-1/effect", 1, lost))).rejects.toThrow(
      "lease lost",
    );
    expect(readdirSync(folder)).toEqual([]);
  });

  it("undo puts back what a step has recorded, also if the write was repeated, and may be repeated itself", async () => {
    const path = join(tempFolder(), "report.txt");
    writeFileSync(path, "old");
    const before = await contentOf(path);
    const make = () => writeFile(path, "new", { before });
    const [, written] = await loseRecord(make);
    for (const attempt of [1, 2]) await make().undo?.(written, undoInfoOf("run-1/effect", attempt));
    expect(read(path)).toBe("old");
  });

  it("undo removes a file that was not there", async () => {
    const path = join(tempFolder(), "report.txt");
    const spec = writeFile(path, "new", { before: await contentOf(path) });
    const written = await spec.do(infoOf("run-1/effect"));
    for (const attempt of [1, 2]) await spec.undo?.(written, undoInfoOf("run-1/effect", attempt));
    expect(existsSync(path)).toBe(false);
  });

  it("undo does not destroy what others have written since, and says so", async () => {
    const path = join(tempFolder(), "report.txt");
    const spec = writeFile(path, "new", { before: "old" });
    const written = await spec.do(infoOf("run-1/effect"));
    writeFileSync(path, "edited by hand");
    await expect(spec.undo?.(written, undoInfoOf("run-1/effect"))).rejects.toThrow(/was changed after it was written/);
    expect(read(path)).toBe("edited by hand");
    expect(writeFile(path, "x").undo).toBeUndefined();
  });
});

describe("onceByFile", () => {
  it("S0-28 S0-34 S0-37 runs once by its result file; the unguarded twin runs twice", async () => {
    const path = join(tempFolder(), "result.json");
    const trained: string[] = [];
    const train = (who: string) => () => ({ n: trained.push(who), at: new Date(0) });
    const [first, second] = await doTwice(() => onceByFile(path, train("guarded")));
    await loseRecord(() => onceByFile(path, train("guarded")));
    expect(second).toEqual(first);
    expect(JSON.parse(read(path))).toMatchObject({ passed: true, value: { n: 1 } });
    await doTwice(() => ({ do: train("twin") }));
    expect(trained).toEqual(["guarded", "twin", "twin"]);
  });

  it.each(['{"passed":false,"value":1}', '{"value":1}', "null", '{"pass', ""])(
    "S0-29 executes again if the file says %j",
    async (text) => {
      const path = join(tempFolder(), "result.json");
      writeFileSync(path, text);
      const spec = onceByFile(path, () => "done");
      expect(await spec.detect?.(infoOf("run-1/effect"))).toEqual({ found: false });
      expect(await spec.do(infoOf("run-1/effect"))).toBe("done");
      expect(JSON.parse(read(path))).toEqual({ passed: true, value: "done" });
    },
  );

  it("S0-28 takes the value of a file that another tool has written, and leaves none behind if it fails", async () => {
    const path = join(tempFolder(), "result.json");
    const failing = onceByFile(path, () => Promise.reject(new Error("no disk")));
    await expect(failing.do(infoOf("run-1/effect"))).rejects.toThrow("no disk");
    expect(existsSync(path)).toBe(false);
    writeFileSync(path, '{ "passed": true, "value": 7, "tool": "make" }');
    expect(await failing.do(infoOf("run-1/effect", 2))).toBe(7);
  });
});
