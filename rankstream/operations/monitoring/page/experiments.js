// Experiments: a sentence for each, and one of them in detail.

import { chart } from "./charts.js";
import { byId, element, fill, listed, redrawn } from "./elements.js";
import { interval, signed, whole } from "./figures.js";
import { whisker } from "./marks.js";

const MOST_PAIRS = 60;
const RETRY_MS = 2000;
const FEW = 8; // of so many experiments the eye finds one by itself
let rows = [];
let selected = null;
let shownPair = 0;
let detail = null;
let fetched = "";
let asked = 0;

export function drawExperiments(found) {
  rows = found;
  byId("compared").hidden = rows.length === 0;
  if (!rows.some(({ name }) => name === selected)) selected = rows[0]?.name ?? null;
  byId("seek").hidden = rows.length <= FEW;
  byId("summary").textContent = summary();
  drawList();
  const chosen = rows.find(({ name }) => name === selected);
  const seen = chosen && JSON.stringify(chosen);
  if (chosen && seen !== fetched) { fetched = seen; fetchDetail(); }
}

function summary() {
  const of = (wanted) => rows.filter(({ state }) => state === wanted).length;
  const alarms = rows.filter(({ health }) => health === "alarm").length;
  const parts = [["decided", of("decided")], ["without a difference", of("equal")], ["undecided", of("undecided") + of("waiting")],
    ["refused", of("refused")], ["with an alarm", alarms]];
  return parts.filter(([, n]) => n > 0).map(([name, n]) => whole.format(n) + " " + name).join(", ");
}

function drawList() {
  const list = byId("experiments").querySelector("ul");
  const sought = byId("sought").value.trim().toLowerCase();
  const shown = rows.filter(({ name }) => name.toLowerCase().includes(sought));
  redrawn(list, () => list.replaceChildren(...shown.map((each) => {
    const button = element("button");
    button.type = "button";
    button.dataset.key = button.dataset.name = each.name;
    button.title = each.name + ", epoch " + each.epoch + ", " + each.method;
    button.setAttribute("aria-current", String(each.name === selected));
    button.append(element("b", each.name), element("span", each.words, each.is_safe_to_stop ? "safe" : each.state));
    if (each.health !== "ok") button.append(element("em", each.health + " in its health", each.health));
    button.addEventListener("click", () => select(each.name));
    const item = element("li");
    item.append(button);
    return item;
  })));
}

function select(name) {
  selected = name;
  shownPair = 0;
  drawList();
  fetchDetail();
}

async function fetchDetail() {
  const number = ++asked;
  const place = "/experiment?name=" + encodeURIComponent(selected) + "&pair=" + shownPair;
  try {
    const answer = await fetch(place);
    if (!answer.ok) throw new Error(answer.statusText);
    const found = await answer.json();
    if (number !== asked) return; // somebody chose another one meanwhile
    detail = found;
    drawDetail();
  } catch { // the stream says if the monitor is away
    setTimeout(() => { if (number === asked) fetchDetail(); }, RETRY_MS);
  }
}

function drawDetail() {
  const { verdict, standing, attention } = detail;
  byId("title").textContent = verdict.experiment + ", epoch " + verdict.epoch;
  byId("words").textContent = standing.words;
  byId("words").className = standing.is_safe_to_stop ? "safe" : standing.state;
  listed(byId("attention"), attention.map(({ words, state }) => [words, "light " + state]));
  const names = Object.keys(verdict.methods);
  const choice = byId("method");
  const wanted = names.includes(choice.value) ? choice.value : verdict.method;
  byId("methods").hidden = names.length < 2;
  choice.replaceChildren(...names.map((name) => new Option(name, name, false, name === wanted)));
  const found = verdict.methods[wanted];
  byId("correction").textContent = "All intervals hold together at "
    + Math.round(100 * (1 - verdict.alpha)) + " %, at any time (" + verdict.correction + "). "
    + [verdict.questions.to_come, verdict.questions.came, verdict.questions.winner, found.sessions.why].join(" ");
  drawMatrix(verdict.rankers, found);
  drawPairs(found.pairs);
  drawHealth(verdict.health);
  drawCourse(wanted === verdict.method ? found.pairs : []);
}

// A pair as it reads best: who is ahead comes first.
function facing(pair) {
  if (pair.mean >= 0) return pair;
  const turned = ([low, high]) => low === null ? [low, high] : [-high, -low];
  return { a: pair.b, b: pair.a, mean: -pair.mean, to_come: turned(pair.to_come), came: turned(pair.came), isTurned: true };
}

function drawCourse(pairs) {
  const pair = pairs[detail.pair] && facing(pairs[detail.pair]);
  const points = !pair ? [] : !pair.isTurned ? detail.course
    : detail.course.map(([n, mean, low, high]) => [n, -mean, -high, -low]);
  const title = pair ? pair.a + " over " + pair.b + " in sessions to come, by lists" : "";
  byId("coursetitle").textContent = title;
  chart("course", points, title, ([n, mean, low, high]) =>
    whole.format(n) + " lists: " + signed(mean) + ", " + interval([low, high], signed), { isCourse: true });
}

function drawMatrix(rankers, found) {
  byId("matrices").hidden = rankers.length < 3 || found.matrix.length === 0;
  if (byId("matrices").hidden) return;
  const largest = Math.max(1e-12, ...found.matrix.flat().map(Math.abs));
  const columns = rankers.map((name, j) => ({ label: name, kind: "number", of: (i) => cellOf(found.matrix, rankers, i, j, largest) }));
  fill(byId("matrix"), [{ label: "", of: (i) => rankers[i] }, ...columns], rankers.map((_, i) => i));
}

function cellOf(matrix, rankers, i, j, largest) {
  if (i === j) return "";
  const value = matrix[i][j];
  const cell = element("span", signed(value, 3), value > 0 ? "for" : "against");
  cell.style.setProperty("--strength", (45 * Math.abs(value) / largest).toFixed(0) + "%");
  cell.title = rankers[i] + " over " + rankers[j] + ": " + signed(value);
  return cell;
}

function drawPairs(found) {
  const pairs = found.map(facing);
  const order = pairs.map((_, i) => i).sort((a, b) => pairs[b].mean - pairs[a].mean);
  const ends = pairs.flatMap((pair) => [...pair.to_come, ...pair.came]).filter((end) => end !== null).map(Math.abs);
  const largest = Math.max(1e-12, ...ends);
  byId("listed").hidden = order.length <= MOST_PAIRS;
  byId("listed").textContent = "The " + MOST_PAIRS + " largest of " + whole.format(order.length) + " pairs are listed.";
  const told = (pair, held, missing) => {
    if (held[0] === null) return missing;
    const cell = element("span", interval(held, signed));
    cell.append(whisker(pair.mean, held, largest));
    return cell;
  };
  const columns = [
    { label: "a over b", of: (i) => nameOf(pairs, i) },
    { label: "mean", kind: "number", of: (i) => signed(pairs[i].mean) },
    { label: "sessions to come", kind: "ends", of: (i) => told(pairs[i], pairs[i].to_come, "nothing can be said yet") },
    { label: "sessions that came", kind: "ends", of: (i) => told(pairs[i], pairs[i].came, "no data yet") },
  ];
  redrawn(byId("pairs"), () => fill(byId("pairs"), columns, order.slice(0, MOST_PAIRS)));
}

function nameOf(pairs, i) {
  const name = pairs[i].a + " over " + pairs[i].b;
  if (pairs.length < 2) return name;
  const button = element("button", name, "link");
  button.type = "button";
  button.dataset.key = button.dataset.pair = String(i);
  button.setAttribute("aria-pressed", String(i === detail.pair));
  button.addEventListener("click", () => { shownPair = i; fetchDetail(); });
  return button;
}

function drawHealth(checks) {
  const detailOf = ({ detail: told }) => told === null ? "" : typeof told === "string" ? told : JSON.stringify(told);
  fill(byId("health"), [
    { label: "check", of: ({ name }) => name },
    { label: "value", kind: "number", of: ({ value }) => value === null ? null : Number(value).toPrecision(4) },
    { label: "state", of: ({ state }) => element("span", state, "light " + state) },
    { label: "detail", of: (check) => check.state === "ok" ? "" : detailOf(check) },
  ], checks);
}

byId("method").addEventListener("change", () => { if (detail) drawDetail(); });
byId("sought").addEventListener("input", drawList);
