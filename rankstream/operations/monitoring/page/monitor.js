// The page: hears of news by a stream of events, and draws the parts that changed.

import { drawCurves, drawExamination } from "./bias.js";
import { byId, element } from "./elements.js";
import { drawExperiments } from "./experiments.js";
import { duration, now, setClock } from "./figures.js";
import { drawCounts, drawFlow, drawModels } from "./flow.js";
import { drawCanaries, drawDecisions, drawInterventions, drawValues } from "./policies.js";

const AGAIN_MS = 2000;
const SILENT_MS = 15000; // the monitor has a word every five seconds
const SETTLED_MS = 1000; // a stream never ends: who waits for the network to rest is first
const AGES_MS = 10000;
const overview = {};
let heardMs = 0;
let isLive = false;

const DRAWN = {
  experiments: drawExperiments,
  canaries: drawCanaries,
  decisions: drawDecisions,
  interventions: drawInterventions,
  values: drawValues,
  examination: drawExamination,
  curves: drawCurves,
  flow: drawFlow,
  counts: drawCounts,
  snapshots: drawModels,
  away: drawAway,
  trouble: drawTrouble,
  steps: drawSteps,
};

function take(changed) {
  heardMs = Date.now();
  if (changed.now_ms !== undefined) setClock(changed.now_ms);
  Object.assign(overview, changed);
  for (const [name, draw] of Object.entries(DRAWN)) if (name in changed) draw(overview[name]);
  byId("empty").hidden = hasBegun();
  byId("flowing").hidden = false;
  // Where the settings have pages of roles, these are among the parts; a demonstration counts itself.
  const flows = overview.flow.length > 0, hasPages = overview.parts.some(({ name }) => name.startsWith("role "));
  byId("uncounted").hidden = flows || hasPages;
  byId("silent").hidden = flows || !hasPages;
  byId("loading").hidden = true;
  drawPlaces();
  tellState(true);
  document.body.setAttribute("aria-busy", "false");
}

function hasBegun() {
  const { interventions: { rows, states, next } } = overview;
  const lists = [overview.experiments, overview.canaries, overview.decisions, overview.values, rows, states, next];
  return lists.some((each) => each.length > 0);
}

function drawPlaces() {
  const shown = [...document.querySelectorAll("main > section[data-place]:not([hidden])")];
  const names = shown.map((each) => each.dataset.place).join(" ");
  if (byId("places").dataset.names === names) return;
  byId("places").dataset.names = names;
  byId("places").replaceChildren(...shown.map((each) => {
    const link = element("a", each.dataset.place);
    link.href = "#" + each.id;
    return link;
  }));
}

// What is away, and how old what is shown of it is.
function drawAway(parts) {
  const place = byId("away");
  place.hidden = parts.length === 0;
  const lines = parts.map(({ words, since_ms: sinceMs, heard_ms: heardOfMs }) => {
    const line = element("p", words);
    const old = heardOfMs === null ? "it has not answered since the monitor began" : "what is shown of it is " + duration(now() - heardOfMs) + " old";
    line.append(element("span", " (" + duration(now() - sinceMs) + "; " + old + ")"));
    return line;
  });
  // Ages grow without being read out: only other words are news.
  const said = parts.map(({ words }) => words).join();
  place.setAttribute("aria-live", said === place.dataset.words ? "off" : "assertive");
  place.dataset.words = said;
  place.replaceChildren(...lines);
}

function drawTrouble(trouble) {
  byId("trouble").hidden = !trouble;
  byId("trouble").textContent = trouble;
}

function drawSteps(steps) {
  byId("steps").replaceChildren(...steps.map(({ name, is_done: isDone, remedy }) => {
    const item = element("li", undefined, isDone ? "done" : "open");
    item.append(element("b", name), element("span", isDone ? "done" : remedy, isDone ? "unseen" : ""));
    return item;
  }));
}

function tellState(isHeard) {
  const clock = new Date(heardMs).toTimeString().slice(0, 8);
  const words = isHeard ? "live" : heardMs ? "the monitor is away since " + clock + "; what is shown is of then, trying again" : "the monitor does not answer; trying again";
  isLive = isHeard;
  document.body.classList.toggle("stale", !isHeard);
  if (byId("state").textContent !== words) byId("state").textContent = words;
}

function follow() {
  const stream = new EventSource("/events");
  stream.onmessage = ({ data }) => take(JSON.parse(data));
  stream.onerror = () => {
    tellState(false);
    if (stream.readyState !== EventSource.CLOSED) return; // it tries again by itself
    setTimeout(follow, AGAIN_MS);
  };
}

async function begin() {
  try {
    const answer = await fetch("/overview", { signal: AbortSignal.timeout(5 * AGAIN_MS) });
    take(await answer.json());
    setTimeout(follow, SETTLED_MS);
  } catch {
    tellState(false);
    setTimeout(begin, AGAIN_MS);
  }
}

setInterval(() => {
  if (overview.away === undefined) return;
  if (isLive && Date.now() - heardMs > SILENT_MS) tellState(false);
  drawAway(overview.away);
  drawModels(overview.snapshots);
}, AGES_MS);

begin();
