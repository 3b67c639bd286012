// A plot over time. uPlot draws on a canvas, so it is told the colours of the page, and told again when they change.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { axisTime } from "./format.ts";
import { theme } from "./theme.ts";

export interface Series {
  readonly name: string;
  /** A custom property of the page. */
  readonly color: string;
  readonly values: readonly (number | null)[];
}

interface PlotProps {
  readonly label: string;
  /** What is shown, in milliseconds. */
  readonly span: { readonly from: number; readonly to: number };
  /** Seconds. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly isPoints?: boolean;
  format(value: number): string;
  /** Somebody wants to see what is behind a point. */
  onPick(index: number, series: number): void;
}

const HEIGHT = 180;

export function Plot(props: PlotProps): JSX.Element {
  const frame = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const { times, series } = props;
  useEffect(() => {
    const element = frame.current;
    if (element === null) return undefined;
    let plot = draw(element, latest.current);
    const again = () => {
      plot.destroy();
      plot = draw(element, latest.current);
    };
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", again);
    return () => {
      observer.disconnect();
      scheme.removeEventListener("change", again);
      plot.destroy();
    };
  }, [times, series, theme.value]);
  return <div class="plot" ref={frame} role="img" aria-label={props.label} />;
}

function draw(element: HTMLDivElement, { span, times, series, isPoints = false, format, onPick }: PlotProps): uPlot {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: color("--text-dim"),
    font: `11px ${color("--sans")}`,
    grid: { stroke: color("--line"), width: 1 },
    ticks: { show: false },
  };
  const plot = new uPlot(
    {
      width: element.clientWidth,
      height: HEIGHT,
      cursor: { y: false, points: { size: 6 } },
      legend: { show: false },
      scales: {
        x: { range: [span.from / 1000, span.to / 1000] },
        y: { range: (_, __, max) => [0, Math.max(1, max) * 1.1] },
      },
      axes: [
        { ...axis, space: 70, values: (_, times) => times.map((time) => axisTime(time * 1000, span.to - span.from)) },
        { ...axis, size: 56, values: (_, values) => values.map(format) },
      ],
      series: [
        {},
        ...series.map(({ name, color: own }) => ({
          label: name,
          stroke: color(own),
          width: 1.5,
          ...(isPoints
            ? { paths: () => null, points: { show: true, size: 6, fill: color(own) } }
            : {
                fill: color(own),
                paths: uPlot.paths.bars?.({ size: [0.7, 40] }) ?? null,
                points: { show: false },
              }),
        })),
      ] as uPlot.Series[],
    },
    [times as number[], ...series.map(({ values }) => values as (number | null)[])],
    element,
  );
  plot.over.addEventListener("click", () => {
    const { idx } = plot.cursor;
    if (idx == null) return;
    const at = series.findIndex(({ values }) => (values[idx] ?? 0) > 0);
    onPick(idx, Math.max(0, at));
  });
  return plot;
}
