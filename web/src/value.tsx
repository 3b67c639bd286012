// Values of runs: inputs, outputs, errors, whatever a journal holds. They come from anywhere, so they are only ever text: no HTML, no link, no
// image is made of them.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { plural } from "./format.ts";

/** Deeper levels and longer lists are opened by whoever looks. */
const OPEN_DEPTH = 2;
const OPEN_ITEMS = 50;
const LONG_TEXT = 2000;

export function Value({ value, name }: { readonly value: unknown; readonly name?: string }): JSX.Element {
  const [isRaw, setRaw] = useState(false);
  const isPlain = typeof value !== "object" || value === null;
  return (
    <div class="value">
      {isRaw ? <pre class="code">{JSON.stringify(value, null, 2)}</pre> : <Node value={value} depth={0} />}
      <div class="value-tools">
        {!isPlain && (
          <button type="button" class="link" onClick={() => setRaw(!isRaw)}>
            {isRaw ? "Tree" : "Raw"}
          </button>
        )}
        <Copy text={() => JSON.stringify(value, null, 2) ?? ""} what={name ?? "value"} />
      </div>
    </div>
  );
}

export function Copy({ text, what }: { text(): string; readonly what: string }): JSX.Element {
  const [says, setSays] = useState("Copy");
  const copy = async () => {
    setSays(
      await toClipboard(text()).then(
        () => "Copied",
        () => "Not allowed here",
      ),
    );
    setTimeout(() => setSays("Copy"), 1500);
  };
  return (
    <button type="button" class="link" onClick={() => void copy()} aria-label={`${says} ${what}`}>
      {says}
    </button>
  );
}

/** Browsers have a clipboard for pages that came by HTTPS or from the same machine; for others there is the old way. */
async function toClipboard(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  const isDone = document.execCommand("copy");
  field.remove();
  if (!isDone) throw new Error("The browser does not let this page copy.");
}

interface NodeProps {
  readonly value: unknown;
  readonly depth: number;
}

function Node({ value, depth }: NodeProps): JSX.Element {
  if (typeof value === "string") return <Text value={value} />;
  if (typeof value !== "object" || value === null)
    return (
      <span class={`v-${value === null ? "null" : typeof value}`}>
        {value === undefined ? "nothing" : String(value)}
      </span>
    );
  return <Branch value={value} depth={depth} />;
}

function Text({ value }: { readonly value: string }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  if (value.length <= LONG_TEXT || isOpen) return <span class="v-string">{value === "" ? '""' : value}</span>;
  return (
    <span class="v-string">
      {value.slice(0, LONG_TEXT)}…{" "}
      <button type="button" class="link" onClick={() => setOpen(true)}>
        {plural(value.length - LONG_TEXT, "more character")}
      </button>
    </span>
  );
}

function Branch({ value, depth }: { readonly value: object; readonly depth: number }): JSX.Element {
  const isList = Array.isArray(value);
  const items: readonly (readonly [string, unknown])[] = Object.entries(value);
  const [shown, setShown] = useState(OPEN_ITEMS);
  if (items.length === 0) return <span class="v-null">{isList ? "[ ]" : "{ }"}</span>;
  const rows = (
    <dl class="v-rows">
      {items.slice(0, shown).map(([key, item]) => (
        <div key={key} class={isBranch(item) ? "v-row v-deep" : "v-row"}>
          <dt>{key}</dt>
          <dd>
            <Node value={item} depth={depth + 1} />
          </dd>
        </div>
      ))}
      {items.length > shown && (
        <button type="button" class="link" onClick={() => setShown(shown + 500)}>
          {plural(items.length - shown, "more item")}
        </button>
      )}
    </dl>
  );
  if (depth === 0) return rows;
  return (
    <details open={depth < OPEN_DEPTH}>
      <summary>{plural(items.length, isList ? "item" : "field")}</summary>
      {rows}
    </details>
  );
}

function isBranch(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}
