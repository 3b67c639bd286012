import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { sourceFiles } from "./source-watch.ts";

it("finds the files and all that they import by a relative path, as the loader does, also of code that does not parse", () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-sources-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  write("a.ts", 'import { b } from "./b.js";\nimport "./c";\nimport x from "elsewhere";\nconst = ;\n');
  write("b.ts", 'export { d } from "./d.mjs";\nexport const b = () => import("./e.ts");\n');
  write("c.ts", 'import type { A } from "./a.ts";\nimport "./gone.ts";\n');
  write("d.mjs", "");
  write("e.ts", "");
  write("other.ts", "");
  const found = [...sourceFiles([join(folder, "a.ts")])].map((path) => basename(path)).sort();
  expect(found).toEqual(["a.ts", "b.ts", "c.ts", "d.mjs", "e.ts"]);
});
