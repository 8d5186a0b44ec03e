// Curves of all games: one large, all small, and the filters that apply to them and their scores.

const form = document.querySelector(".filters");

function checkedValues(name) {
  return new Set([...form.querySelectorAll(`input[name=${name}]:checked`)].map((box) => box.value));
}

// The current filters.
function wanted() {
  const search = document.getElementById("search")?.value.trim().toLowerCase() ?? "";
  const games = [...checkedValues("game")].filter((game) => game.toLowerCase().includes(search));
  return {
    agents: checkedValues("agent"),
    games: new Set(games),
    quantity: Number(document.getElementById("quantity").value),
  };
}

// The filtered curves of a game, as a block for `drawPlot`.
function blockOf(game, { agents, quantity }) {
  const { curves } = drawn;
  const chart = curves.games[game][quantity];
  const series = (chart?.series ?? [])
    .map((entry) => ({ low: null, high: null, x: chart.x, ...entry, ...curves.agents[entry.agent] }))
    .filter((entry) => agents.has(entry.label))
    .map((entry) => ({ ...entry, label: `${entry.label}, ${entry.seeds}` }));
  if (series.length && chart.reference !== undefined) {
    const last = Math.max(...series.map((entry) => entry.x.at(-1)), 1e-6);
    series.push({
      label: curves.reference, colour: "#777777", is_reference: true,
      x: [0, last], mean: [chart.reference, chart.reference], low: null, high: null,
    });
  }
  return { x_label: curves.x_label, y_label: curves.quantities[quantity], series };
}

const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const sheet = { width: 220, height: 130, left: 34, right: 4, top: 6, bottom: 16 };

function finite(values) {
  return values.filter((value) => value !== null);
}

// One small chart as the text of an SVG: only our own numbers and colours, no text by authors.
function smallChart({ series }) {
  const { width, height, left } = sheet;
  const [end, floor] = [width - sheet.right, height - sheet.bottom];
  const ys = finite(series.flatMap(({ mean, low, high }) => [...mean, ...(low ?? []), ...(high ?? [])]));
  if (!ys.length) return "<p>no curve</p>";
  const last = Math.max(...series.map(({ x }) => x.at(-1)), 1e-6);
  const [least, most] = [Math.min(...ys), Math.max(...ys)];
  const span = most - least || 1;
  const px = (x) => (left + (x / last) * (end - left)).toFixed(1);
  const py = (y) => (floor - ((y - least) / span) * (floor - sheet.top)).toFixed(1);
  // A gap begins a new stroke.
  const stroke = (xs, values) => xs.map((x, at) => {
    if (values[at] === null) return "";
    return `${at && values[at - 1] !== null ? "L" : "M"}${px(x)} ${py(values[at])}`;
  }).join("");
  const parts = series.map((entry) => {
    if (entry.is_reference) return `<path class="reference" d="${stroke(entry.x, entry.mean)}"/>`;
    const tone = entry.colour === "#000000" ? "var(--ink)" : entry.colour;
    const back = entry.high && stroke([...entry.x].reverse(), [...entry.high].reverse());
    const band = entry.low === null ? ""
      : `<path fill="${tone}" opacity="0.16" d="${stroke(entry.x, entry.low)}${back.replace("M", "L")}Z"/>`;
    const point = entry.x.length > 1 ? ""
      : `<circle cx="${px(entry.x[0])}" cy="${py(entry.mean[0])}" r="2.5" fill="${tone}"/>`;
    return `${band}<path stroke="${tone}" d="${stroke(entry.x, entry.mean)}"/>${point}`;
  });
  return `<svg viewBox="0 0 ${width} ${height}" aria-hidden="true">
    <path class="axis" d="M${left} ${sheet.top}V${floor}H${end}"/>
    <text x="${left - 3}" y="${sheet.top + 6}" text-anchor="end">${short.format(most)}</text>
    <text x="${left - 3}" y="${floor}" text-anchor="end">${short.format(least)}</text>
    <text x="${left}" y="${height - 3}">0</text>
    <text x="${end}" y="${height - 3}" text-anchor="end">${short.format(last * 1e6)} frames</text>
    ${parts.join("")}</svg>`;
}

function drawPanel(panel) {
  const block = blockOf(panel.dataset.game, wanted());
  const cell = panel.querySelector(".cell");
  const names = block.series.map((entry) => entry.label).join(", ");
  cell.innerHTML = smallChart(block);
  cell.setAttribute("aria-label", `${panel.dataset.game}, ${block.y_label}: ${names || "no curve"}`);
}

function drawChosen() {
  const figure = document.getElementById("chosen");
  const game = document.getElementById("chosen-game").value;
  const block = blockOf(game, wanted());
  const names = block.series.map((entry) => entry.label).join(", ");
  const words = `${game}: ${block.y_label} over ${block.x_label}: ${names || "no curve"}`;
  figure.querySelector(".plot").setAttribute("aria-label", words);
  drawPlot(figure, block);
}

// Small charts wait for a reader as plots do; those still waiting ignore changes of the filters.
const panels = [...document.querySelectorAll(".panel")];
const seen = new Set();
let isChosenSeen = false;
const coming = new IntersectionObserver((entries) => {
  for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
    coming.unobserve(target);
    if (target.id === "chosen") {
      isChosenSeen = true;
      drawChosen();
    } else {
      seen.add(target);
      drawPanel(target);
    }
  }
}, { rootMargin: "600px" });

function follow() {
  const { agents, games } = wanted();
  for (const panel of panels) panel.hidden = !games.has(panel.dataset.game);
  for (const entry of document.querySelectorAll("#answers [data-game]")) entry.hidden = !games.has(entry.dataset.game);
  for (const row of document.querySelectorAll("#scores tbody tr")) {
    row.hidden = !(games.has(row.dataset.game) && agents.has(row.dataset.agent));
  }
  // The large plot shows a game that passes the filters, if there is one.
  const chosen = document.getElementById("chosen-game");
  for (const option of chosen.options) option.disabled = !games.has(option.value);
  if (games.size && !games.has(chosen.value)) [chosen.value] = games;
  for (const panel of seen) drawPanel(panel);
  if (isChosenSeen) drawChosen();
  const counts = [["agent", agents.size], ["game", games.size]].map(
    ([name, count]) => `${count} of ${form.querySelectorAll(`input[name=${name}]`).length} ${name}s`);
  document.getElementById("shown").textContent = `Shown: ${counts.join(", ")}.`;
}

if (form) {
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", follow);
  document.getElementById("search")?.addEventListener("input", follow);
  for (const button of form.querySelectorAll("button[data-sets]")) {
    button.addEventListener("click", () => {
      for (const box of form.querySelectorAll(`input[name=${button.dataset.sets}]`)) {
        box.checked = button.dataset.to === "all";
      }
      follow();
    });
  }
  document.getElementById("chosen-game").addEventListener("change", () => drawChosen());
  for (const panel of panels) {
    panel.querySelector("button").addEventListener("click", () => {
      document.getElementById("chosen-game").value = panel.dataset.game;
      isChosenSeen = true;
      drawChosen();
      document.getElementById("chosen").scrollIntoView({ block: "center" });
      document.getElementById("chosen-game").focus({ preventScroll: true });
    });
  }
  for (const figure of [document.getElementById("chosen"), ...panels]) coming.observe(figure);
  redraws.push(() => { if (isChosenSeen) drawChosen(); });
  // For printing every game is drawn, seen or not.
  addEventListener("beforeprint", () => panels.forEach(drawPanel));
  follow();
}
