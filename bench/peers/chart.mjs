// A bar chart as SVG, on a logarithmic scale, readable on light and on dark pages.
import { figure } from "../measure.mjs";

const WIDTH = 760;
const LEFT = 190;
const RIGHT = 110;
const TOP = 56;
const BAR = 22;
const GAP = 12;
const BOTTOM = 34;

const STYLE = `
    text { font: 13px system-ui, sans-serif; fill: #24292f }
    .title { font-size: 15px; font-weight: 600 }
    .quiet { fill: #57606a; font-size: 12px }
    .grid { stroke: #d0d7de }
    .bar { fill: #8c959f }
    .ours { fill: #0969da }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 }
      .quiet { fill: #9198a1 }
      .grid { stroke: #3d444d }
      .bar { fill: #656c76 }
      .ours { fill: #4493f8 }
    }
  `;

/** `bars` are `{ label, value, isOurs }` with values above zero. */
export function barChart({ title, subtitle, bars }) {
  const height = TOP + bars.length * (BAR + GAP) + BOTTOM;
  const scale = logScale(bars.map(({ value }) => value));
  const bottom = height - BOTTOM;
  const described = bars.map(({ label, value }) => `${label}: ${figure(value)}`).join("; ");
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escaped(`${title}. ${described}`)}">`,
    `  <style>${STYLE}</style>`,
    `  <text class="title" x="${LEFT}" y="20">${escaped(title)}</text>`,
    `  <text class="quiet" x="${LEFT}" y="38">${escaped(subtitle)}</text>`,
    ...scale.ticks.flatMap((tick) => [
      `  <line class="grid" x1="${scale.x(tick)}" x2="${scale.x(tick)}" y1="${TOP - 6}" y2="${bottom}"/>`,
      `  <text class="quiet" x="${scale.x(tick)}" y="${bottom + 18}" text-anchor="middle">${tick.toLocaleString("en-US")}</text>`,
    ]),
    ...bars.flatMap((bar, i) => drawBar(bar, TOP + i * (BAR + GAP), scale)),
    "</svg>",
    "",
  ].join("\n");
}

function drawBar({ label, value, isOurs }, y, scale) {
  const end = scale.x(value);
  const middle = y + BAR / 2 + 4;
  return [
    `  <text x="${LEFT - 10}" y="${middle}" text-anchor="end">${escaped(label)}</text>`,
    `  <rect class="${isOurs ? "ours" : "bar"}" x="${LEFT}" y="${y}" width="${(end - LEFT).toFixed(1)}" height="${BAR}" rx="3"/>`,
    `  <text x="${end + 6}" y="${middle}">${figure(value)}</text>`,
  ];
}

/** From the power of ten below the least value to the one above the greatest. */
function logScale(values) {
  const low = Math.floor(Math.log10(Math.min(...values)) - 1e-9);
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))));
  const width = WIDTH - LEFT - RIGHT;
  const x = (value) => Number((LEFT + (width * (Math.log10(value) - low)) / (high - low)).toFixed(1));
  return { x, ticks: Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i)) };
}

function escaped(text) {
  return text.replace(/[&<>"]/g, (character) => `&#${character.codePointAt(0)};`);
}
