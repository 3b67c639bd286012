import { runChild } from "../child.mjs";
import { count, figure, percent } from "../measure.mjs";

const SLEEPERS = new URL("../children/sleepers.mjs", import.meta.url);
const FLAGS = ["--expose-gc"];
const LIMIT_MB = 50;

/** Runs that sleep for a month cost rows, not memory. A process of its own for each side: memory once taken would serve the next. */
export async function sleeping({ newFile, quick }) {
  const runs = quick ? 2000 : 100_000;
  const bare = await runChild(SLEEPERS, { files: [newFile(), newFile()], runs, isBare: true }, FLAGS);
  const pawl = await runChild(SLEEPERS, { files: [newFile()], runs, isBare: false }, FLAGS);
  const perSecond = ({ ms }) => (runs * 1000) / ms;
  return [
    {
      what: `memory of ${count(runs)} sleeping runs`,
      pawl: `${figure(pawl.addedMb)} MB (heap ${figure(pawl.heapMb)})`,
      bare: `${figure(bare.addedMb)} MB (heap ${figure(bare.heapMb)})`,
      ratio: "",
      target: `<= ${LIMIT_MB} MB`,
      isMet: pawl.addedMb <= LIMIT_MB,
      note: `added to RSS in a warm engine, after garbage collection; the engine itself had taken ${figure(pawl.warmMb)} MB to become warm`,
    },
    {
      what: "putting them to sleep",
      pawl: `${figure(perSecond(pawl))} runs/s`,
      bare: `${figure(perSecond(bare))} runs/s`,
      ratio: percent(perSecond(pawl) / perSecond(bare)),
      target: "",
      isMet: null,
      note: "bare: the rows of the first thousand, again and again under other ids",
    },
  ];
}
