// Policies of models: what is going out, what was shown, and what each is worth.

import { byId, element, fill, listed } from "./elements.js";
import { age, duration, fixed, interval, moment, now, percent, signed, whole } from "./figures.js";
import { rate, whisker } from "./marks.js";

const LIGHTS = { "going out": "", promoted: "ok", "canary withdrawn": "alarm" };
const STATES = { done: "ok", training: "ok", "left alone": "warning", refused: "alarm" };
const ALIVE_MS = 60000; // a trainer that has said nothing for so long is not at work

// A row for each quantity of each canary; it is worse where its bad end is excluded.
export function drawCanaries(reports) {
  byId("out").hidden = reports.length === 0;
  const rows = reports.flatMap((report) => {
    const ends = report.differences.flatMap(({ mean, interval: held }) => [mean ?? 0, ...held.map((end) => end ?? 0)]);
    const largest = Math.max(1e-12, ...ends.map(Math.abs));
    return report.differences.map((each, number) => ({ ...each, report, number, largest }));
  });
  const first = (told) => (row) => row.number ? "" : told(row.report);
  fill(byId("canaries"), [
    { label: "canary", of: ({ number, report }) => number ? element("span", report.canary, "told") : report.canary },
    { label: "beside", of: first((report) => report.before) },
    { label: "share", kind: "number", of: first((report) => report.state === "going out"
      ? percent(report.share) + " (" + report.stage + " of " + report.stages + ")" : "none") },
    { label: "lists", kind: "number", of: first((report) => whole.format(report.canary_lists)) },
    { label: "of planned", kind: "number", of: first((report) => percent(report.canary_lists / report.planned, 0)) },
    { label: "per list", of: ({ name }) => name },
    { label: "difference", kind: "number", of: ({ mean }) => signed(mean) },
    { label: "interval", kind: "ends", of: ({ interval: held }) => interval(held, signed) },
    { label: "", kind: "picture", of: pictureOf },
    { label: "largest loss", kind: "number", of: first((report) => fixed(report.largest_loss, 3)) },
  ], rows);
  listed(byId("judged"), reports.map(({ model, state, words }) =>
    [model + ": " + state + ", " + words, "light " + (LIGHTS[state] ?? "warning")]));
}

function pictureOf({ name, mean, interval: [low, high], largest }) {
  if (mean === null || low === null) return "";
  const picture = whisker(mean, [low, high], largest);
  if (name === "without click" ? low > 0 : high < 0) picture.classList.add("worse");
  return picture;
}

export function drawDecisions(rules) {
  byId("decided").hidden = rules.length === 0;
  fill(byId("decisions"), [
    { label: "rule", of: ({ rule }) => rule },
    { label: "intervention", of: ({ intervention }) => intervention || "withdrawn" },
    { label: "all others", of: (each) => each.default },
    { label: "decided", kind: "number", of: ({ decided }) => whole.format(decided) },
    { label: "left out", kind: "number", of: (each) => whole.format(each.left_out) },
    { label: "written", of: (each) => moment(each.at_ms) },
  ], rules);
}

export function drawInterventions({ rows, states, next, question, alpha, n_older: nOlder }) {
  byId("trained").hidden = rows.length + states.length + next.length === 0;
  listed(byId("states"), [
    ...states.map(stateOf),
    ...next.map(({ model, said }) => [model + ": " + said]),
  ]);
  byId("rates").textContent = (alpha === null ? "" : "Sessions to come: interval at " + percent(1 - alpha) + ". " + question)
    + (nOlder ? " " + whole.format(nOlder) + " older ones are not shown." : "");
  const largest = Math.max(1e-12, ...rows.flatMap(({ run, rate: found }) =>
    [run?.reward ?? 0, found?.mean ?? 0, found?.to_come[1] ?? 0]));
  byId("interventions").hidden = rows.length === 0;
  fill(byId("interventions"), [
    { label: "intervention", of: ({ name }) => name },
    { label: "event time", of: ({ run, is_first: isFirst }) => run ? moment(run.created_ms) : isFirst ? "first policy" : null },
    { label: "why", of: ({ run }) => run && run.reason },
    { label: "clicks used", kind: "number", of: ({ run }) => run && whole.format(run.clicks) },
    { label: "below support", kind: "number", of: ({ run }) => run && whole.format(run.below) + " of " + whole.format(run.items) },
    { label: "lists", kind: "number", of: ({ rate: found }) => whole.format(found?.lists ?? 0) },
    { label: "clicks per list", kind: "number", of: ({ rate: found }) => fixed(found?.mean ?? null, 3) },
    { label: "sessions to come", kind: "ends", of: ({ rate: found }) => interval(found?.to_come ?? null, (end) => end.toFixed(3)) },
    { label: "", kind: "picture", of: ({ run, rate: found }) => rate(run?.reward ?? null, found, largest) },
    { label: "expected before", kind: "number", of: ({ run }) => fixed(run?.reward ?? null, 3) },
  ], rows);
  listed(byId("lacks"), rows.flatMap(({ name, run, rate: found }) => [
    ...(found?.why ? [[name + ": no interval yet. " + found.why]] : []),
    ...(run?.reward_reason ? [[name + ": not estimated, " + run.reward_reason]] : []),
  ]));
}

function stateOf({ model, state, said, at_ms: atMs }) {
  const silentMs = now() - atMs;
  const isSilent = state === "training" && silentMs > ALIVE_MS;
  const words = model + ": " + state + (said ? ", " + said : "");
  return isSilent ? [words + "; not heard of for " + duration(silentMs), "light warning"] : [words, "light " + (STATES[state] ?? "")];
}

// A row for each policy, what was logged first.
export function drawValues(models) {
  byId("valued").hidden = models.length === 0;
  const rows = models.flatMap((each) => each.policies.map((policy, number) => ({ ...policy, number, of: each })));
  const ends = rows.flatMap((each) => [each.difference ?? 0, ...each.difference_interval.map((end) => end ?? 0)]);
  const largest = Math.max(1e-12, ...ends.map(Math.abs));
  const share = (value) => value === null ? null : percent(value);
  fill(byId("values"), [
    { label: "policy", of: ({ number, policy, of }) => number ? policy : of.model + ", " + policy },
    { label: "clicks per list", kind: "number", of: ({ value }) => fixed(value, 4) },
    { label: "95 %", kind: "ends", of: (each) => interval(each.interval, (end) => end.toFixed(4)) },
    { label: "less logged", kind: "number", of: ({ difference }) => signed(difference) },
    { label: "95 %", kind: "ends", of: (each) => interval(each.difference_interval, signed) },
    { label: "", kind: "picture", of: ({ difference, difference_interval: held }) =>
      difference === null || held[0] === null ? "" : whisker(difference, held, largest) },
    { label: "unseen", kind: "number", of: ({ unseen }) => share(unseen) },
    { label: "largest click", kind: "number", of: (each) => share(each.largest_share) },
    { label: "effective clicks", kind: "number", of: (each) =>
      each.effective_clicks === null ? null : whole.format(Math.round(each.effective_clicks)) },
    { label: "event time", of: ({ of }) => moment(of.at_ms) },
  ], rows);
  listed(byId("worth"), models.flatMap(restsOn));
}

function restsOn(each) {
  return [
    [each.model + ": " + each.estimator + (each.curve ? ", curve " + each.curve : "") + "; "
      + whole.format(each.lists) + " of " + whole.format(each.lists_all) + " lists and "
      + whole.format(each.clicks) + " clicks of " + whole.format(each.groups.length) + " groups; " + age(each.at_ms)],
    ...each.remarks.map((remark) => [each.model + ": " + remark]),
    ...each.policies.filter(({ why }) => why).map(({ policy, value, why }) =>
      [policy + (value === null ? ": not known, " : ": no interval, ") + why]),
  ];
}
