// Where users look: the monitor's own estimate, or curves that models are.

import { chart } from "./charts.js";
import { byId, element, fill } from "./elements.js";
import { age, fixed, interval, percent, whole } from "./figures.js";

const thousandths = (value) => fixed(value, 3);

export function drawExamination(ranks) {
  byId("bias").hidden = ranks.length === 0;
  const rows = ranks.map((each, i) => ({ ...each, rank: i + 1 }));
  fill(byId("examination"), [
    { label: "rank", of: ({ rank }) => String(rank) },
    { label: "examined", kind: "number", of: ({ ratio }) => thousandths(ratio) },
    { label: "95 %", kind: "ends", of: ({ rank, interval: held, reason }) =>
      rank > 1 && held !== null ? interval(held, thousandths) : element("span", reason, "told") },
  ], rows);
  const ranged = rows.some(({ rank, interval: held }) => rank > 1 && held !== null);
  byId("examined-title").textContent = "Examination by rank, relative to the first" + (ranged ? ", with 95 % intervals" : "");
  const known = rows.filter(({ ratio }) => ratio !== null);
  chart("examined", known.map(({ rank, ratio, interval: held }) => [rank, ratio, held?.[0] ?? null, held?.[1] ?? null]),
    "Examination by rank", tellRank);
}

const tellRank = ([rank, ratio, low, high]) =>
  "rank " + rank + ": " + thousandths(ratio) + (low === null ? "" : ", " + interval([low, high], thousandths));

export function drawCurves(curves) {
  byId("fitted").hidden = curves.length === 0;
  byId("curves").replaceChildren(...curves.map(placeOf));
  curves.forEach(drawCurve);
}

function placeOf(curve, number) {
  const place = element("div", undefined, "beside even");
  const figure = element("figure", undefined, "chart");
  const picture = element("div");
  picture.id = "curve-" + number;
  figure.append(element("figcaption", curve.model + " " + curve.version + ", " + curve.estimator), picture);
  const unit = curve.is_ratio_only ? "relative to rank 1" : "as its anchor has it";
  const rows = element("div", undefined, "rows");
  const table = element("table");
  table.append(element("caption", curve.model + " " + curve.version, "unseen"));
  rows.append(table, element("p", unit + "; " + whole.format(curve.shown) + " views and " + whole.format(curve.clicked)
    + " clicks, " + curve.source + "; " + age(curve.at_ms), "told"));
  place.append(figure, rows);
  return place;
}

function drawCurve(curve, number) {
  const level = percent(curve.confidence);
  const held = (rank, ends) => rank === 1 || ends === null ? "" : interval(ends, thousandths);
  const hasBeta = curve.ranks.some(({ beta }) => beta);
  const columns = [
    { label: "rank", of: ({ rank }) => String(rank) },
    { label: "alpha", kind: "number", of: ({ alpha }) => thousandths(alpha) },
    { label: level, of: (each) => held(each.rank, each.alpha_interval) },
    { label: "beta", kind: "number", of: ({ beta }) => thousandths(beta) },
    { label: level, of: (each) => held(each.rank, each.beta_interval) },
    { label: "", of: ({ why }) => element("span", why, "told") },
  ].filter((_, i) => hasBeta || i < 3 || i > 4);
  const place = byId("curve-" + number);
  fill(place.closest(".beside").querySelector("table"), columns, curve.ranks);
  const known = curve.ranks.filter(({ alpha }) => alpha !== null);
  chart(place.id, known.map(({ rank, alpha, alpha_interval: ends }) => [rank, alpha, ends?.[0] ?? null, ends?.[1] ?? null]),
    "Alpha of " + curve.model + " by rank", tellRank);
}
