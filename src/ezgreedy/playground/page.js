// The page itself: controls, playing, what is read out, and the address.
"use strict";

const POLICIES = { eps: "ε-greedy", ez: "εz-greedy" };
const FRAME_MILLISECONDS = 8; // for walking; the rest of a frame is for drawing

const element = (id) => document.getElementById(id);
const form = element("controls");
const prefersStillness = matchMedia("(prefers-reduced-motion: reduce)");

let pictures = [];
let settings = { ...DEFAULTS };
let walks = [];
let isPlaying = false;
let chosenCell = null;
let lastFrame = null;
let stepsDue = 0;

// Controls.

function addPanel(name, title) {
  const panel = element("panel").content.cloneNode(true).firstElementChild;
  panel.id = `panel-${name}`;
  const [caption, canvas] = [panel.querySelector("figcaption"), panel.querySelector("canvas")];
  caption.textContent = title;
  caption.className = name;
  canvas.ariaLabel = `First-visit map of ${title}; arrow keys move over its cells`;
  element("maps").append(panel);
  return new MapPicture(canvas);
}

function link(title, chosen) {
  const anchor = document.createElement("a");
  anchor.href = toAddress(chosen);
  anchor.textContent = title;
  return anchor;
}

function fillControls() {
  pictures = Object.entries(POLICIES).map(([name, title]) => addPanel(name, title));
  element("scale").style.background = `linear-gradient(to right, ${data.colours.shades})`;
  for (const [name, world] of Object.entries(data.worlds)) {
    form.elements.world.add(new Option(world.title, name));
  }
  for (const [name, law] of Object.entries(LAWS)) form.elements.law.add(new Option(law.title, name));
  element("examples").append(...Object.entries(EXAMPLES).map(([title, changes]) =>
    link(title, { ...DEFAULTS, ...changes })));
}

function showSettings() {
  for (const [name, value] of Object.entries(settings)) {
    const control = form.elements[name];
    if (control.type === "checkbox") control.checked = value; else control.value = value;
  }
  for (const output of form.querySelectorAll("output[for]")) {
    output.textContent = settings[output.getAttribute("for")];
  }
  for (const row of form.querySelectorAll("[data-parameter]")) {
    row.hidden = row.dataset.parameter !== LAWS[settings.law].parameter;
  }
  const world = data.worlds[settings.world];
  element("about").textContent = world.about;
  const { mean } = walks[1].law;
  element("length").textContent = `A repeat lasts ${mean.toFixed(2)} steps on average, so in long ` +
    `episodes εz-greedy explores on ${percent(exploratoryShare(settings.epsilon, mean))} of steps.`;
  element("ends").textContent = world.endWords ? `× ${world.endWords}` : "";
  element("axes").hidden = world.kind !== "car";
  element("maps").classList.toggle("stacked", world.kind === "table" &&
    world.numColumns / (world.cells.length / world.numColumns) > 4);
  element("code").textContent = asPython(settings);
}

// A control was changed: what it says is used if it can be.
function changed(event) {
  const { name, type } = event.target;
  if (!(name in FIELDS)) return;
  const text = type === "checkbox" ? written(event.target.checked) : event.target.value;
  try {
    settings = { ...settings, [name]: FIELDS[name].read(text) };
    showProblems([]);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    showProblems([{ name, message: `${FIELDS[name].title} must ${error.message}; got “${text}”.` }]);
  }
  history.replaceState(null, "", toAddress(settings));
  restart();
}

// Messages with a way forward: for an unknown world, the worlds that there are.
function showProblems(problems) {
  const notice = element("notice");
  notice.hidden = problems.length === 0;
  notice.replaceChildren(...problems.map(({ name, message }) => {
    const line = document.createElement("p");
    line.textContent = message;
    if (name === "world") {
      for (const [key, world] of Object.entries(data.worlds)) {
        line.append(" ", link(world.title, { ...settings, world: key }));
      }
    }
    return line;
  }));
}

// An address may also name a place on the page, such as #stage, which changes no settings.
function namesAPlace(hash) {
  return hash.length > 1 && !hash.includes("=") && element(hash.slice(1)) !== null;
}

function readAddress() {
  const found = fromAddress(namesAPlace(location.hash) ? "" : location.hash);
  settings = found.settings;
  showProblems(found.problems);
  restart();
}

// Playing.

function restart() {
  walks = [new Walk(settings, false), new Walk(settings, true)];
  chosenCell = null;
  stepsDue = 0;
  pictures.forEach((picture, at) => picture.fit(walks[at].world));
  showSettings();
  setPlaying(!prefersStillness.matches);
  if (prefersStillness.matches) toTheEnd();
  draw();
}

function setPlaying(value) {
  isPlaying = value && !walks[0].isOver;
  lastFrame = null;
  element("play").textContent = isPlaying ? "Pause" : walks[0].isOver ? "Play again" : "Play";
  element("one-step").disabled = element("to-the-end").disabled = walks[0].isOver;
  if (isPlaying) element("result").textContent = ""; else tellResult();
}

function advance() {
  walks.forEach((walk) => walk.advance());
  if (walks[0].isOver) setPlaying(false);
}

function toTheEnd() {
  while (!walks[0].isOver) walks.forEach((walk) => walk.advance());
  setPlaying(false);
}

function frame(now) {
  if (isPlaying) {
    if (lastFrame !== null) {
      stepsDue += Math.min((now - lastFrame) / 1000, 0.1) * Number(element("speed").value);
    }
    lastFrame = now;
    const began = performance.now();
    while (stepsDue >= 1 && isPlaying && performance.now() - began < FRAME_MILLISECONDS) {
      advance();
      stepsDue -= 1;
    }
    stepsDue = Math.min(stepsDue, 1); // a slow machine walks more slowly rather than ever later
    draw();
  }
  requestAnimationFrame(frame);
}

// What is shown.

function draw() {
  pictures.forEach((picture, at) => picture.draw(walks[at], chosenCell));
  drawCurves(element("curves"), walks);
  element("step").textContent = `step ${counted(walks[0].step)} of ${counted(settings.steps)}`;
  for (const walk of walks) {
    const panel = element(walk.isEz ? "panel-ez" : "panel-eps");
    const show = (name, text) => { panel.querySelector(`[data-number=${name}]`).textContent = text; };
    show("mean", counted(Math.round(walk.meanFirstVisit)));
    show("seen", percent(walk.coverage[walk.step]));
    show("explored", percent(walk.exploredShare));
    show("episodes", counted(walk.numEpisodes));
  }
  tellCell();
}

function percent(share) {
  return `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
}

// One sentence, when the walkers stand still, so that a screen reader is not interrupted.
function tellResult() {
  const [eps, ez] = walks.map((walk) => walk.meanFirstVisit);
  element("result").textContent = walks[0].isOver
    ? `εz-greedy took ${(ez / eps).toFixed(2)} times as many steps as ε-greedy to reach a cell.`
    : `Paused after ${counted(walks[0].step)} steps.`;
}

function tellCell() {
  if (chosenCell === null) {
    element("cell").textContent = "Point at a cell, or move over a map with the arrow keys.";
    return;
  }
  const [column, row] = walks[0].world.columnAndRow(chosenCell);
  const told = walks.map((walk) => {
    const visitors = walk.numVisitors[chosenCell];
    const steps = counted(Math.round(walk.meanFirst(chosenCell)));
    return `${POLICIES[walk.isEz ? "ez" : "eps"]}: ${steps} steps, seen by ${visitors} of ${settings.walkers}`;
  });
  element("cell").textContent = `Row ${row}, column ${column}. ${told.join("; ")}.`;
}

function choose(cell) {
  chosenCell = cell;
  draw();
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function moveCursor(event) {
  const move = ARROWS[event.key];
  if (!move) return;
  event.preventDefault();
  const { world } = walks[0];
  const [column, row] = world.columnAndRow(chosenCell ?? world.cells[0]);
  choose(cellIn(world, column + move[0], row + move[1]));
}

const SHORTCUTS = { " ": "play", ".": "one-step", e: "to-the-end", r: "restart" };

// Keys that a focused control does not use itself press a button.
function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, select, button, summary, a")) return;
  const button = SHORTCUTS[event.key];
  if (!button) return;
  event.preventDefault();
  element(button).click();
}

async function copy(button, text, pre) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    if (pre) getSelection().selectAllChildren(pre);
    button.textContent = pre ? "Selected: press Ctrl+C" : "Copy the address above";
  }
  setTimeout(() => { button.textContent = button.dataset.label; }, 2500);
}

// Set-up.

function start() {
  fillControls();
  readTones();
  // A slider counts while it moves, everything else once it has changed.
  const isSlider = ({ target }) => target.type === "range";
  form.addEventListener("input", (event) => { if (isSlider(event)) changed(event); });
  form.addEventListener("change", (event) => { if (!isSlider(event)) changed(event); });
  form.addEventListener("submit", (event) => event.preventDefault());
  element("play").addEventListener("click", () => {
    if (walks[0].isOver) restart(); else setPlaying(!isPlaying);
  });
  element("one-step").addEventListener("click", () => { setPlaying(false); advance(); draw(); tellResult(); });
  element("to-the-end").addEventListener("click", () => { toTheEnd(); draw(); });
  element("restart").addEventListener("click", restart);
  element("usual").addEventListener("click", () => {
    history.replaceState(null, "", "#");
    readAddress();
  });
  element("copy-code").addEventListener("click", (event) =>
    copy(event.target, asPython(settings), element("code")));
  element("copy-link").addEventListener("click", (event) => copy(event.target, location.href, null));
  for (const picture of pictures) {
    picture.canvas.addEventListener("pointermove", (event) => choose(picture.cellAt(walks[0].world, event)));
    picture.canvas.addEventListener("pointerdown", (event) => choose(picture.cellAt(walks[0].world, event)));
    picture.canvas.addEventListener("pointerleave", () => choose(null));
    picture.canvas.addEventListener("keydown", moveCursor);
  }
  document.addEventListener("keydown", pressed);
  window.addEventListener("hashchange", () => { if (!namesAPlace(location.hash)) readAddress(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readTones(); draw(); });
  new ResizeObserver(() => draw()).observe(element("maps"));
  readAddress();
  requestAnimationFrame(frame);
}

// For tests, and for the curious in a console: walks without the page's own.
window.playground = {
  defaults: DEFAULTS,
  get settings() { return settings; },
  get walks() { return walks; },
  finished(changes, isEz) {
    const walk = new Walk({ ...DEFAULTS, ...changes }, isEz);
    while (!walk.isOver) walk.advance();
    return { map: walk.map, mean: walk.meanFirstVisit, explored: walk.numExplored };
  },
  // The actions of every lane, [steps][lanes], as a policy plays them when no episode ends.
  tape(changes, isEz) {
    const walk = new Walk({ ...DEFAULTS, ...changes }, isEz);
    return Array.from({ length: walk.settings.steps }, (_, step) =>
      Array.from({ length: walk.settings.walkers }, (__, lane) => walk.decide(lane, step)));
  },
  law(changes) {
    const law = new DurationLaw({ ...DEFAULTS, ...changes });
    return { cumulative: Array.from(law.cumulative), mean: law.mean };
  },
};

start();
