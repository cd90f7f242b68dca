// Charts of uPlot: a mean within its interval, along an axis of numbers.

import { byId, element } from "./elements.js";

const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]; // there is no rank between two ranks
const drawn = new Map();

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// The scale of y without the first intervals of a course, which are as wide as they come.
function limits(rows, isCourse) {
  const late = rows.slice(isCourse ? Math.floor(rows.length / 5) : 0).flatMap(([, mean, low, high]) =>
    [mean, low, high].filter((each) => each !== null));
  const [low, high] = [Math.min(0, ...late), Math.max(0, ...late)];
  const spare = 0.08 * (high - low || 1);
  return [low - spare, high + spare];
}

function axis(values) {
  return {
    stroke: colour("--soft"),
    font: "12px system-ui, sans-serif",
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line"), width: 1, size: 4 },
    ...values,
  };
}

function options(place, rows, told, isCourse) {
  const y = limits(rows, isCourse);
  return {
    width: place.clientWidth,
    height: 240,
    legend: { show: false },
    cursor: { drag: { x: true, y: false, setScale: true }, points: { size: 6 } },
    scales: { x: { time: false }, y: { range: () => y } },
    axes: [axis({ size: 36, space: 70, incrs: isCourse ? undefined : WHOLE }), axis({ size: 58, space: 36 })],
    series: [
      {},
      { stroke: "transparent", points: { show: false } },
      { stroke: "transparent", points: { show: false } },
      { stroke: colour("--accent"), width: 2, points: { show: rows.length < 20 } },
    ],
    bands: [{ series: [1, 2], fill: colour("--band") }],
    hooks: {
      draw: [zeroLine],
      setCursor: [({ cursor }) => read(place, rows[cursor.idx ?? rows.length - 1], told)],
      setScale: [(chart, name) => { if (name === "x") byZoom(place, chart, rows); }],
    },
  };
}

function zeroLine(chart) {
  const y = Math.round(chart.valToPos(0, "y", true));
  const { left, width } = chart.bbox;
  chart.ctx.save();
  chart.ctx.strokeStyle = colour("--soft");
  chart.ctx.lineWidth = 1;
  chart.ctx.beginPath();
  chart.ctx.moveTo(left, y);
  chart.ctx.lineTo(left + width, y);
  chart.ctx.stroke();
  chart.ctx.restore();
}

const readout = (place) => place.parentElement.querySelector(".readout");

function read(place, row, told) {
  const line = readout(place);
  if (line && row) line.firstChild.textContent = told(row);
}

// What is zoomed in to can be left again with a button.
function byZoom(place, { scales }, rows) {
  const isZoomed = scales.x.min > rows[0][0] || scales.x.max < rows[rows.length - 1][0];
  readout(place).lastChild.hidden = !isZoomed;
}

function move(chart, rows, key) {
  const at = chart.cursor.idx ?? rows.length - 1;
  const { min, max } = chart.scales.x;
  const middle = rows[at][0];
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const next = Math.max(0, Math.min(rows.length - 1, at + (key === "ArrowLeft" ? -1 : 1)));
    chart.setCursor({ left: chart.valToPos(rows[next][0], "x"), top: chart.valToPos(rows[next][1], "y") });
  } else if (key === "+") chart.setScale("x", { min: (min + middle) / 2, max: (max + middle) / 2 });
  else if (key === "0") whole(chart, rows);
  else return false;
  return true;
}

const whole = (chart, rows) => chart.setScale("x", { min: rows[0][0], max: rows[rows.length - 1][0] });

// Draws rows [x, mean, low, high]; `said` names the chart, `told` reads one row. A course
// narrows from the left.
export function chart(id, rows, said, told, { isCourse = false } = {}) {
  const place = byId(id);
  const before = drawn.get(id);
  const key = JSON.stringify(rows);
  if (before?.key === key && before.said === said && before.place === place) return;
  before?.chart.destroy();
  drawn.delete(id);
  readout(place)?.remove();
  place.parentElement.hidden = rows.length < 2;
  if (rows.length < 2) return;
  const line = element("p", undefined, "readout");
  line.append(element("span", told(rows[rows.length - 1])), element("button", "the whole course"));
  place.after(line);
  const column = (i) => rows.map((row) => row[i]);
  const made = new window.uPlot(options(place, rows, told, isCourse), [column(0), column(3), column(2), column(1)], place);
  line.lastChild.addEventListener("click", () => whole(made, rows));
  place.tabIndex = 0;
  place.setAttribute("role", "group");
  place.setAttribute("aria-label", said + ". Arrow keys read it, + zooms in, 0 shows all.");
  place.onfocus = () => line.setAttribute("aria-live", "polite");
  place.onblur = () => line.removeAttribute("aria-live");
  place.onkeydown = (event) => { if (move(made, rows, event.key)) event.preventDefault(); };
  made.root.setAttribute("aria-hidden", "true");
  drawn.set(id, { chart: made, place, key, said, again: () => { drawn.get(id).key = ""; chart(id, rows, said, told, { isCourse }); } });
}

const again = () => { for (const each of [...drawn.values()]) each.again(); };

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
matchMedia("print").addEventListener("change", again);
new ResizeObserver(() => {
  for (const [id, each] of drawn) {
    const width = byId(id).clientWidth;
    if (width && width !== each.chart.width) each.chart.setSize({ width, height: 240 });
  }
}).observe(document.body);
