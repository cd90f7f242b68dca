// Small pictures inside tables and lists.

import { shape } from "./elements.js";

// An interval around zero with its mean; `largest` is the end of the scale.
export function whisker(mean, [low, high], largest) {
  const picture = shape("svg", { viewBox: "0 0 200 18", preserveAspectRatio: "xMinYMid", "aria-hidden": "true" });
  const at = (value) => 100 + 96 * Math.max(-1, Math.min(1, value / largest));
  picture.append(shape("line", { x1: 100, x2: 100, y1: 0, y2: 18, class: "axis" }));
  const decided = low > 0 || high < 0 ? " decided" : "";
  picture.append(shape("line", { x1: at(low), x2: at(high), y1: 9, y2: 9, class: "range" + decided }));
  picture.append(shape("rect", { x: at(mean) - 1.5, y: 4, width: 3, height: 10, class: "mean" }));
  return picture;
}

// From 0 on: the interval, its mean, and a ring where it was expected.
export function rate(expected, found, largest) {
  const picture = shape("svg", { viewBox: "0 0 160 16", preserveAspectRatio: "xMinYMid", "aria-hidden": "true" });
  const at = (value) => 6 + 148 * value / largest;
  picture.append(shape("line", { x1: 6, x2: 6, y1: 0, y2: 16, class: "axis" }));
  if (found && found.to_come[0] !== null) {
    picture.append(shape("line", { x1: at(found.to_come[0]), x2: at(found.to_come[1]), y1: 8, y2: 8, class: "range" }));
  }
  if (found && found.mean !== null) picture.append(shape("rect", { x: at(found.mean) - 1.5, y: 3, width: 3, height: 10, class: "mean" }));
  if (expected !== null) picture.append(shape("circle", { cx: at(expected), cy: 8, r: 4.5, class: "guess" }));
  return picture;
}

// Values as they came, the last one marked; `points` are [x, y].
export function sparkline(points, { least } = {}) {
  const picture = shape("svg", { viewBox: "0 0 120 24", preserveAspectRatio: "none", "aria-hidden": "true", class: "spark" });
  if (points.length < 2) return picture;
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const [start, end] = [xs[0], xs[xs.length - 1]];
  const low = least ?? Math.min(...ys);
  const high = Math.max(...ys, low + 1e-9);
  if (end <= start) return picture;
  const places = points.map(([x, y]) =>
    (1 + 118 * (x - start) / (end - start)).toFixed(1) + "," + (22 - 20 * (y - low) / (high - low)).toFixed(1));
  picture.append(shape("polyline", { points: [...places, "119,23", "1,23"].join(" "), class: "under" }));
  picture.append(shape("polyline", { points: places.join(" "), class: "course" }));
  return picture;
}
