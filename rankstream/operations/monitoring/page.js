"use strict";

// Everything that comes from an event is written as text, never as markup.
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat("en");
const MOST_PAIRS = 60;
const EVERY_MS = 2000;
const PATIENCE_MS = 10000;
let selected = null;
let shownPair = 0;
let detail = null;
let overview = null;
let fetched = "";
let isFetching = false;
let isStale = false;

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function row(...cells) {
  const made = document.createElement("tr");
  made.append(...cells);
  return made;
}

function percent(share) {
  return Number((100 * share).toPrecision(6));
}

function signed(value) {
  return (value > 0 ? "+" : "") + value.toFixed(4);
}

function drawOverview() {
  byId("trouble").hidden = !overview.trouble;
  byId("trouble").textContent = overview.trouble;
  const rows = overview.experiments;
  const trained = overview.interventions;
  const isTrained = trained.rows.length + trained.states.length + trained.next.length > 0;
  byId("empty").hidden = rows.length > 0 || isTrained || overview.values.length > 0
    || overview.canaries.length > 0 || overview.decisions.length > 0;
  drawInterventions(trained, isTrained);
  drawCanaries(overview.canaries);
  drawDecisions(overview.decisions);
  drawValues(overview.values);
  byId("main").hidden = rows.length === 0;
  if (!rows.some((each) => each.name === selected)) {
    selected = rows.length ? rows[0].name : null;
  }
  const focused = document.activeElement?.dataset?.name;
  const body = byId("experiments").tBodies[0];
  body.replaceChildren(...rows.map((each) => {
    const name = element("td");
    const button = element("button", each.name);
    button.dataset.name = each.name;
    button.title = each.name + ", epoch " + each.epoch + ", " + each.method;
    button.addEventListener("click", () => select(each.name));
    name.append(button);
    const made = row(
      name,
      element("td", whole.format(each.impressions), "number"),
      element("td", each.winner || "–"),
      element("td", each.health, "light " + each.health),
    );
    made.setAttribute("aria-current", String(each.name === selected));
    return made;
  }));
  if (focused !== undefined) {
    [...body.querySelectorAll("button")].find((b) => b.dataset.name === focused)?.focus();
  }
  byId("uncounted").hidden = Object.keys(overview.counts).length > 0;
  byId("counts").replaceChildren(...Object.entries(overview.counts).map(([name, count]) =>
    row(element("th", name.replaceAll("_", " ")), element("td", whole.format(count), "number"))));
  byId("snapshots").replaceChildren(...overview.snapshots.map((each) => row(
    element("th", each.model),
    element("td", "version " + each.version + ", " + age(each.created_ms)),
    element("td", learnedBy(each), "told"),
    progressOf(each.course),
  )));
  drawExamination();
  drawCurves(overview.curves);
}

const ALIVE_MS = 60000; // a trainer that has said nothing for so long is not at work
const LIGHT_OF = { done: "ok", training: "ok", "left alone": "warning", refused: "alarm" };

function drawInterventions({ rows, states, next, question, alpha, n_older: nOlder }, isTrained) {
  byId("trained").hidden = !isTrained;
  byId("states").replaceChildren(...states.map(({ model, state, said, at_ms: atMs }) => {
    const isSilent = state === "training" && Date.now() - atMs > ALIVE_MS;
    return element("li", model + ": " + state + (said ? ", " + said : "")
      + (isSilent ? "; last heard of " + duration(Date.now() - atMs) + " ago" : ""), "light " + (isSilent ? "warning" : LIGHT_OF[state] || ""));
  }));
  byId("states").append(...next.map(({ model, said }) => element("li", model + ": " + said)));
  byId("rates").textContent = (alpha === null ? "" : "Sessions to come: interval at " + percent(1 - alpha) + " %. " + question)
    + (nOlder ? " " + whole.format(nOlder) + " older ones are not shown." : "");
  const largest = Math.max(1e-12, ...rows.flatMap(({ run, rate }) =>
    [run?.reward ?? 0, rate?.mean ?? 0, rate?.to_come[1] ?? 0]));
  byId("interventions").hidden = rows.length === 0;
  byId("interventions").tBodies[0].replaceChildren(...rows.map(({ name, is_first: isFirst, run, rate }) => {
    const drawing = element("td");
    drawing.append(rateOf(run, rate, largest));
    const [low, high] = rate?.to_come ?? [null, null];
    const reward = run?.reward ?? null;
    return row(
      element("th", name),
      element("td", run ? new Date(run.created_ms).toISOString().slice(0, 19).replace("T", " ") : isFirst ? "first policy" : "–"),
      element("td", run ? run.reason : "–"),
      element("td", run ? whole.format(run.clicks) : "–", "number"),
      element("td", run ? whole.format(run.below) + " of " + whole.format(run.items) : "–", "number"),
      element("td", whole.format(rate?.lists ?? 0), "number"),
      element("td", rate && rate.mean !== null ? rate.mean.toFixed(3) : "–", "number"),
      element("td", low === null ? "–" : low.toFixed(3) + " – " + high.toFixed(3)),
      drawing,
      element("td", reward === null ? "–" : reward.toFixed(3), "number"),
    );
  }));
  byId("lacks").replaceChildren(...rows.flatMap(({ name, run, rate }) => [
    ...(rate?.why ? [element("li", name + ": no interval yet. " + rate.why)] : []),
    ...(run?.reward_reason ? [element("li", name + ": not estimated, " + run.reward_reason)] : []),
  ]));
}

// Clicks per list from 0 on: the interval, its mean, and a ring where it was expected.
function rateOf(run, rate, largest) {
  const drawing = shape("svg", { viewBox: "0 0 160 16", width: 160, height: 16 });
  const at = (value) => 6 + 148 * value / largest;
  drawing.append(shape("line", { x1: 6, x2: 6, y1: 0, y2: 16, class: "axis" }));
  if (rate && rate.to_come[0] !== null) {
    drawing.append(shape("line", { x1: at(rate.to_come[0]), x2: at(rate.to_come[1]), y1: 8, y2: 8, class: "range" }));
  }
  if (rate && rate.mean !== null) drawing.append(shape("rect", { x: at(rate.mean) - 1.5, y: 3, width: 3, height: 10, class: "mean" }));
  if (run && run.reward !== null) drawing.append(shape("circle", { cx: at(run.reward), cy: 8, r: 4.5, class: "guess" }));
  return drawing;
}

// A row for each quantity of each canary: its bar is good where it is surely not worse.
function drawCanaries(reports) {
  const lightOf = { "going out": "", promoted: "ok", "canary withdrawn": "alarm" };
  byId("out").hidden = reports.length === 0;
  byId("canaries").tBodies[0].replaceChildren(...reports.flatMap((report) => {
    const ends = report.differences.flatMap(({ mean, interval }) => [mean ?? 0, ...interval.map((end) => end ?? 0)]);
    const largest = Math.max(1e-12, ...ends.map(Math.abs));
    return report.differences.map(({ name, mean, interval: [low, high] }, number) => {
      const drawing = element("td");
      if (mean !== null && low !== null) drawing.append(barOf(mean, [low, high], largest));
      if (name === "without click" ? low > 0 : high < 0) drawing.className = "worse";
      const first = (text, kind) => element("td", number ? "" : text, kind);
      return row(
        element("th", number ? "" : report.canary),
        first(report.before),
        first(report.state === "going out" ? percent(report.share) + " %, " + report.stage + " of " + report.stages : "none", "number"),
        first(whole.format(report.canary_lists), "number"),
        first(Math.round(100 * report.canary_lists / report.planned) + " %", "number"),
        element("td", name),
        element("td", mean === null ? "–" : signed(mean), "number"),
        element("td", low === null ? "–" : signed(low) + " – " + signed(high)),
        drawing,
        first(report.largest_loss === null ? "–" : report.largest_loss.toFixed(3), "number"),
      );
    });
  }));
  byId("judged").replaceChildren(...reports.map(({ model, state, words }) =>
    element("li", model + ": " + state + ", " + words, "light " + (lightOf[state] ?? "warning"))));
}

// A row for each rule, with its newest rewrite.
function drawDecisions(rules) {
  byId("decided").hidden = rules.length === 0;
  byId("decisions").tBodies[0].replaceChildren(...rules.map((each) => row(
    element("th", each.rule),
    element("td", each.intervention || "withdrawn"),
    element("td", each.default),
    element("td", whole.format(each.decided), "number"),
    element("td", whole.format(each.left_out), "number"),
    element("td", new Date(each.at_ms).toISOString().slice(0, 19).replace("T", " ")),
  )));
}

// A row for each policy, what was logged first; a bar of what it is worth more.
function drawValues(models) {
  byId("valued").hidden = models.length === 0;
  const ends = models.flatMap(({ policies }) => policies.flatMap((each) =>
    [each.difference ?? 0, ...each.difference_interval.map((end) => end ?? 0)]));
  const largest = Math.max(1e-12, ...ends.map(Math.abs));
  const figure = (value, digits) => element("td", value === null ? "–" : value.toFixed(digits), "number");
  const share = (value) => element("td", value === null ? "–" : percent(Math.round(1000 * value) / 1000) + " %", "number");
  const interval = ([low, high], told) => element("td", low === null ? "–" : told(low) + " – " + told(high));
  byId("values").tBodies[0].replaceChildren(...models.flatMap(({ model, at_ms: atMs, policies }) =>
    policies.map((each, number) => {
      const drawing = element("td");
      if (each.difference !== null && each.difference_interval[0] !== null) {
        drawing.append(barOf(each.difference, each.difference_interval, largest));
      }
      return row(
        element("th", number ? each.policy : model + ", " + each.policy),
        figure(each.value, 4),
        interval(each.interval, (end) => end.toFixed(4)),
        element("td", each.difference === null ? "–" : signed(each.difference), "number"),
        interval(each.difference_interval, signed),
        drawing,
        share(each.unseen),
        share(each.largest_share),
        element("td", each.effective_clicks === null ? "–" : whole.format(Math.round(each.effective_clicks)), "number"),
        element("td", new Date(atMs).toISOString().slice(0, 19).replace("T", " ")),
      );
    })));
  byId("worth").replaceChildren(...models.flatMap((each) => [
    element("li", each.model + ": " + each.estimator + (each.curve ? ", curve " + each.curve : "") + "; "
      + whole.format(each.lists) + " of " + whole.format(each.lists_all) + " lists and "
      + whole.format(each.clicks) + " clicks of " + whole.format(each.groups.length) + " groups; " + age(each.at_ms)),
    ...each.remarks.map((remark) => element("li", each.model + ": " + remark)),
    ...each.policies.filter(({ why }) => why).map(({ policy, value, why }) =>
      element("li", policy + (value === null ? ": not known, " : ": no interval, ") + why)),
  ]));
}

// A bar of what is there, with its interval; the first rank has the unit, and none.
function looked(value, interval, isFirst) {
  const at = (number) => 120 * Math.max(0, Math.min(1, number));
  const drawing = shape("svg", { viewBox: "0 0 120 12", width: 120, height: 12 });
  drawing.append(shape("rect", { width: at(value ?? 0), height: 12, class: "looked" }));
  if (interval !== null && !isFirst) {
    drawing.append(shape("line", { x1: at(interval[0]), x2: at(interval[1]), y1: 6, y2: 6, class: "range" }));
  }
  const bar = element("td");
  bar.append(drawing);
  return bar;
}

function drawExamination() {
  const ranks = overview.examination;
  byId("bias").hidden = ranks.length === 0;
  byId("examination").replaceChildren(...ranks.map(({ ratio, interval, reason }, i) => {
    const isShown = interval !== null && i > 0;
    return row(
      element("th", String(i + 1)),
      element("td", ratio === null ? "–" : ratio.toFixed(3), "number"),
      looked(ratio, interval, i === 0),
      element("td", isShown ? interval.map((end) => end.toFixed(3)).join(" – ") : reason, "told"),
    );
  }));
}

// What models that are curves fitted last: alpha and beta by rank, and whose clicks.
function drawCurves(curves) {
  byId("fitted").hidden = curves.length === 0;
  const ends = (rank, interval) => rank === 1 || interval === null ? "" : interval.map((end) => end.toFixed(3)).join(" – ");
  const figure = (value) => element("td", value === null ? "–" : value.toFixed(3), "number");
  byId("curves").replaceChildren(...curves.flatMap((curve) => {
    const table = element("table");
    table.append(element("caption", curve.model + " " + curve.version + ", " + curve.estimator));
    table.append(row(...["rank", "alpha", "", percent(curve.confidence) + " %", "beta", percent(curve.confidence) + " %", ""].map((name) => element("th", name))));
    table.append(...curve.ranks.map(({ rank, alpha, alpha_interval: ofAlpha, beta, beta_interval: ofBeta, why }) => row(
      element("th", String(rank)),
      figure(alpha),
      looked(alpha, ofAlpha, rank === 1),
      element("td", ends(rank, ofAlpha)),
      figure(beta),
      element("td", ends(rank, ofBeta)),
      element("td", why, "told"),
    )));
    const unit = curve.is_ratio_only ? "relative to rank 1" : "as its anchor has it";
    return [table, element("p", unit + "; " + whole.format(curve.shown) + " views and " + whole.format(curve.clicked)
      + " clicks, " + curve.source + "; " + age(curve.at_ms), "told")];
  }));
}

// Lists learned by event time, since the monitor has watched.
function progressOf(course) {
  const cell = element("td");
  if (course.length === 0) return cell;
  const [start, end] = [course[0], course[course.length - 1]];
  if (end[0] <= start[0]) return cell;
  const drawing = shape("svg", { viewBox: "0 0 120 16", width: 120, height: 16 });
  const points = course.map(([at, learned]) =>
    118 * (at - start[0]) / (end[0] - start[0]) + 1 + ","
    + (15 - 14 * (learned - start[1]) / Math.max(1, end[1] - start[1])));
  drawing.append(shape("polyline", { points: points.join(" "), class: "course" }));
  cell.append(drawing);
  return cell;
}

function learnedBy({ learned, updates, per_minute: perMinute, is_trained: isTrained }) {
  if (isTrained) return learned ? whole.format(learned) + " lists counted" : "not trained yet";
  return whole.format(learned) + " lists learned, " + whole.format(updates) + " updates"
    + (perMinute === null ? "" : ", " + whole.format(Math.round(perMinute)) + " lists a minute");
}

// Event time may be ahead of this clock.
function age(createdMs) {
  if (createdMs === 0) return "from the start";
  const passedMs = Date.now() - createdMs;
  if (passedMs <= -1000) return "its event time " + duration(-passedMs) + " ahead";
  return duration(Math.max(0, passedMs)) + " old in event time";
}

function duration(ms) {
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return seconds + " s";
  if (seconds < 7200) return Math.floor(seconds / 60) + " min";
  return whole.format(Math.floor(seconds / 3600)) + " h";
}

function select(name) {
  selected = name;
  shownPair = 0;
  detail = null;
  drawOverview();
  fetchDetail();
}

async function fetchDetail() {
  if (selected === null) return;
  if (isFetching) { isStale = true; return; }
  isFetching = true;
  const name = selected;
  let isNew = false;
  try {
    const answer = await fetch("/experiment?name=" + encodeURIComponent(name) + "&pair=" + shownPair);
    if (answer.ok && name === selected) {
      detail = await answer.json();
      isNew = true;
    }
  } catch { /* the next look says that the monitor is away */ }
  isFetching = false;
  if (isNew) drawDetail();
  if (isStale) { isStale = false; fetchDetail(); }
}

function drawDetail() {
  const verdict = detail.verdict;
  const methods = Object.keys(verdict.methods);
  const choice = byId("method");
  const wanted = methods.includes(choice.value) ? choice.value : verdict.method;
  choice.replaceChildren(...methods.map((name) => {
    const option = element("option", name);
    option.value = name;
    option.selected = name === wanted;
    return option;
  }));
  const found = verdict.methods[wanted];
  byId("title").textContent = verdict.experiment + ", epoch " + verdict.epoch;
  byId("subtitle").textContent = whole.format(found.impressions) + " lists; "
    + (found.winner ? "winner: " + found.winner : "no winner yet")
    + (found.decided_cycles.length ? "; in cycles: " + found.decided_cycles[0].join(", ") : "");
  byId("correction").textContent = "All intervals hold together at "
    + Math.round(100 * (1 - verdict.alpha)) + " %, at any time (" + verdict.correction + "). "
    + [verdict.questions.to_come, verdict.questions.came, verdict.questions.winner,
      found.sessions.why].join(" ");
  drawMatrix(verdict.rankers, found);
  drawPairs(found.pairs);
  drawHealth(verdict.health);
  drawCourse(wanted === verdict.method ? found.pairs : []);
}

function heading(name) {
  const made = element("th", name);
  made.title = name;
  return made;
}

function drawMatrix(rankers, found) {
  const largest = Math.max(1e-12, ...found.matrix.flat().map(Math.abs));
  const head = row(element("th"), ...rankers.map(heading));
  byId("matrix").replaceChildren(head, ...found.matrix.map((values, i) => row(
    heading(rankers[i]),
    ...values.map((value, j) => {
      const cell = element("td", i === j ? "" : value.toFixed(3));
      if (i !== j) {
        const colour = value > 0 ? "var(--good)" : "var(--bad)";
        const strength = 0.75 * Math.abs(value) / largest;
        cell.style.setProperty("background", "rgb(" + colour + " / " + strength.toFixed(2) + ")");
        cell.title = rankers[i] + " over " + rankers[j] + ": " + signed(value);
      }
      return cell;
    }),
  )));
}

function drawPairs(pairs) {
  const order = pairs.map((_, i) => i).sort((a, b) => Math.abs(pairs[b].mean) - Math.abs(pairs[a].mean));
  const ends = pairs.flatMap((pair) => [...pair.to_come, ...pair.came]).filter((end) => end !== null).map(Math.abs);
  const largest = Math.max(1e-12, ...ends);
  const focused = document.activeElement?.dataset?.pair;
  byId("listed").hidden = order.length <= MOST_PAIRS;
  byId("listed").textContent = "The " + MOST_PAIRS + " largest of " + whole.format(order.length) + " pairs are listed.";
  const head = row(...["a over b", "sessions to come", "sessions that came", "mean"].map(heading));
  byId("pairs").replaceChildren(head, ...order.slice(0, MOST_PAIRS).map((i) => {
    const pair = pairs[i];
    const made = row(element("td", pair.a + " over " + pair.b));
    for (const [ends, missing] of [[pair.to_come, "nothing can be said yet"], [pair.came, "no data yet"]]) {
      const cell = element("td", ends[0] === null ? missing : "");
      if (ends[0] !== null) cell.append(barOf(pair.mean, ends, largest));
      made.append(cell);
    }
    made.append(element("td", signed(pair.mean), "number"));
    made.tabIndex = 0;
    made.dataset.pair = i;
    const show = () => { shownPair = i; fetchDetail(); };
    made.addEventListener("click", show);
    made.addEventListener("keydown", (event) => { if (event.key === "Enter") show(); });
    return made;
  }));
  if (focused !== undefined) byId("pairs").querySelector(`[data-pair="${focused}"]`)?.focus();
}

function barOf(mean, [low, high], largest) {
  const bar = shape("svg", { viewBox: "0 0 200 18", preserveAspectRatio: "none" });
  const at = (value) => 100 + 96 * Math.max(-1, Math.min(1, value / largest));
  bar.append(shape("line", { x1: 100, x2: 100, y1: 0, y2: 18, class: "axis" }));
  const decided = low > 0 || high < 0 ? " decided" : "";
  bar.append(shape("line", { x1: at(low), x2: at(high), y1: 9, y2: 9, class: "range" + decided }));
  bar.append(shape("rect", { x: at(mean) - 1.5, y: 4, width: 3, height: 10, class: "mean" }));
  return bar;
}

const text = (detail) => typeof detail === "string" ? detail : JSON.stringify(detail);

function drawHealth(checks) {
  byId("health").replaceChildren(...checks.map((check) => row(
    element("td", check.name, "light " + check.state),
    element("td", check.value === null ? "–" : Number(check.value).toPrecision(4), "number"),
    element("td", check.state, check.state),
    element("td", check.state === "ok" || !check.detail ? "" : text(check.detail)),
  )));
}

function drawCourse(pairs) {
  const drawing = byId("course");
  drawing.replaceChildren();
  const pair = pairs[detail.pair];
  byId("coursetitle").textContent = pair ? "Course of " + pair.a + " over " + pair.b + ", sessions to come" : "Course";
  if (!pair) return;
  const points = detail.course;
  if (points.length < 2) return;
  const last = points[points.length - 1];
  const limit = Math.max(1e-12, ...points.slice(-Math.ceil(points.length * 0.8))
    .flatMap(([, , low, high]) => [Math.abs(low), Math.abs(high)]));
  const x = (n) => 50 + 580 * (n - points[0][0]) / Math.max(1, last[0] - points[0][0]);
  const y = (value) => 105 - 95 * Math.max(-1, Math.min(1, value / limit));
  drawing.append(shape("line", { x1: 50, x2: 630, y1: y(0), y2: y(0), class: "axis" }));
  for (const value of [-limit, 0, limit]) {
    const label = shape("text", { x: 44, y: y(value) + 4, "text-anchor": "end" });
    label.textContent = value.toPrecision(2);
    drawing.append(label);
  }
  const upper = points.map(([n, , , high]) => x(n) + "," + y(high));
  const lower = points.map(([n, , low]) => x(n) + "," + y(low)).reverse();
  drawing.append(shape("polygon", { points: [...upper, ...lower].join(" "), class: "band" }));
  const line = points.map(([n, mean]) => x(n) + "," + y(mean)).join(" ");
  drawing.append(shape("polyline", { points: line, class: "course" }));
  const lists = shape("text", { x: 630, y: 215, "text-anchor": "end" });
  lists.textContent = whole.format(last[0]) + " lists";
  drawing.append(lists);
}

byId("method").addEventListener("change", () => { if (detail) drawDetail(); });

// An event stream never ends, and who waits for the network to rest would wait for ever.
async function look() {
  let found = null;
  try {
    const answer = await fetch("/overview", { signal: AbortSignal.timeout(PATIENCE_MS) });
    if (answer.ok) found = await answer.json();
  } catch { /* told below */ }
  setTimeout(look, EVERY_MS);
  if (found !== null) { await take(found); return; }
  overview = null;
  byId("state").textContent = "the monitor is away; trying again";
}

async function take(found) {
  if (overview === null || found.number !== overview.number) {
    overview = found;
    drawOverview();
    const chosen = overview.experiments.find((each) => each.name === selected);
    const seen = chosen && [chosen.name, chosen.epoch, chosen.impressions, chosen.health].join("/");
    if (chosen && seen !== fetched) { fetched = seen; await fetchDetail(); }
  }
  byId("state").textContent = "live";
  document.body.setAttribute("aria-busy", "false");
}

look();
