// The log's flow through each role, counts of events, and the models that are served.

import { byId, element, fill } from "./elements.js";
import { age, whole } from "./figures.js";
import { sparkline } from "./marks.js";

export function drawFlow(roles) {
  byId("flow").replaceChildren(...roles.map((each) => {
    const item = element("li");
    const points = each.per_s.map((value, i) => [i, value]);
    item.append(element("b", each.role), points.length > 1 ? sparkline(points, { least: 0 }) : "", element("span", pace(each)),
      element("span", lag(each), each.behind_s === null ? "warning" : ""));
    return item;
  }));
}

function pace({ per_s: rates }) {
  return rates.length ? whole.format(Number(rates[rates.length - 1].toFixed(1))) + " events/s" : "answers";
}

function lag({ behind, behind_s: seconds }) {
  if (behind === 0) return "nothing waits";
  const waits = whole.format(behind) + (behind === 1 ? " record" : " records") + " behind";
  if (seconds === null) return waits + ", and it stands still";
  return waits + ", " + (seconds < 1 ? "under a second" : whole.format(Math.round(seconds)) + " s") + " of work";
}

export function drawCounts(counts) {
  byId("counts").replaceChildren(...Object.entries(counts).map(([name, count]) => {
    const pair = element("div");
    pair.append(element("dt", name.replaceAll("_", " ")), element("dd", whole.format(count)));
    return pair;
  }));
}

export function drawModels(models) {
  byId("served").hidden = models.length === 0;
  fill(byId("snapshots"), [
    { label: "model", of: ({ model }) => model },
    { label: "version", of: (each) => "version " + each.version + ", " + age(each.created_ms) },
    { label: "from", of: learnedBy },
    { label: "course", kind: "picture", of: ({ course }) => course.length < 2 ? "" : sparkline(course) },
  ], models);
}

function learnedBy({ learned, updates, per_minute: perMinute, is_trained: isTrained }) {
  if (isTrained) return learned ? whole.format(learned) + " lists counted" : "not trained yet";
  return whole.format(learned) + " lists learned, " + whole.format(updates) + " updates"
    + (perMinute === null ? "" : ", " + whole.format(Math.round(perMinute)) + " lists a minute");
}
