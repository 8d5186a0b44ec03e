// Draws the interactive blocks with plotly and keeps them in step with slider, theme and width.
"use strict";

const drawn = JSON.parse(document.getElementById("drawn")?.textContent ?? '{"blocks":{}}');
const options = { displayModeBar: false, displaylogo: false, responsive: true };
const dark = matchMedia("(prefers-color-scheme: dark)");
const redraws = [];
const MOST_DECADES = 7; // labelled on one axis

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// Reading plotly takes longer than reading everything else, so it waits for the first plot.
function needPlotly() {
  if (window.Plotly) return;
  const script = document.createElement("script");
  script.textContent = document.getElementById("plotly").textContent;
  document.head.append(script);
}

// The style that every plot takes from the page.
function base() {
  const axis = {
    gridcolor: colour("line"), linecolor: colour("line"), zeroline: false, automargin: true,
    tickfont: { color: colour("soft") },
  };
  return {
    axis,
    layout: {
      autosize: true,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: colour("ink") },
      hoverlabel: {
        bgcolor: colour("card"), bordercolor: colour("line"), font: { color: colour("ink") },
      },
    },
  };
}

function seriesColour(series, index) {
  const chosen = series.colour ?? drawn.colours.series[index % drawn.colours.series.length];
  return chosen === "#000000" ? colour("ink") : chosen;
}

function faint(hex) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return `rgba(${red},${green},${blue},0.18)`;
}

// Mean lines carry the hover text; a band is drawn first, below its line.
function curveTraces(block) {
  return block.series.flatMap((series, index) => {
    const tone = seriesColour(series, index);
    const shared = { x: series.x, type: "scatter", mode: "lines", legendgroup: series.label };
    const edge = { ...shared, line: { width: 0 }, hoverinfo: "skip", showlegend: false };
    const hasBand = series.low !== null;
    const band = hasBand
      ? [{ ...edge, y: series.low },
         { ...edge, y: series.high, fill: "tonexty", fillcolor: faint(tone) }]
      : [];
    const interval = hasBand ? " [%{customdata[0]}, %{customdata[1]}]" : "";
    return [...band, {
      ...shared,
      y: series.mean,
      name: series.label,
      line: series.is_reference ? { color: tone, width: 1.2, dash: "dash" } : { color: tone, width: 2.2 },
      mode: series.x.length > 1 ? "lines" : "markers",
      customdata: hasBand ? series.low.map((low, at) => [low, series.high[at]]) : undefined,
      hovertemplate: `%{y}${interval}`,
    }];
  });
}

// A legend of many rows makes the plot higher rather than the curves smaller.
function makeRoom(plot, numEntries) {
  const rows = Math.ceil(numEntries / Math.max(Math.floor(plot.clientWidth / 190), 1));
  plot.style.height = "";
  plot.style.height = rows > 2 ? `${plot.clientHeight + 22 * (rows - 2)}px` : "";
}

// Small and large powers of ten as such, other numbers in full.
function tickText(value) {
  const power = Math.log10(value);
  if (power >= -4 && power <= 6) return value.toLocaleString("en", { maximumSignificantDigits: 3 });
  return `10<sup>${Math.round(power)}</sup>`;
}

// Every tick of a logarithmic axis is labelled with the number itself: 20, not 2.
function logAxis(numbers) {
  const positive = numbers.filter((number) => number > 0);
  const low = Math.min(...positive);
  const high = Math.max(...positive);
  const digits = high / low < 4 ? [1, 2, 3, 4, 5, 7] : high / low < 300 ? [1, 2, 5] : [1];
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const step = Math.max(Math.ceil((last - first) / MOST_DECADES), 1);
  const values = [];
  for (let power = first; power <= last; power += step) {
    values.push(...digits.map((digit) => Number(`${digit}e${power}`)));
  }
  return { type: "log", tickvals: values, ticktext: values.map(tickText) };
}

function axisType(isLog, series, ...names) {
  if (!isLog) return { type: "linear" };
  return logAxis(series.flatMap((one) => names.flatMap((name) => one[name] ?? [])));
}

function drawPlot(figure, block) {
  needPlotly();
  const { axis, layout } = base();
  const plot = figure.querySelector(".plot");
  makeRoom(plot, block.series.length);
  Plotly.react(plot, curveTraces(block), {
    ...layout,
    margin: { l: 56, r: 12, t: 8, b: 48 },
    hovermode: "x unified",
    hoverdistance: -1,
    showlegend: true,
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
    xaxis: { ...axis, title: { text: block.x_label }, ...axisType(block.log_x, block.series, "x") },
    yaxis: {
      ...axis,
      title: { text: block.y_label },
      ...axisType(block.log_y, block.series, "mean", "low", "high"),
    },
  }, options);
}

function drawCurves(figure, block) {
  const draw = () => drawPlot(figure, block);
  redraws.push(draw);
  draw();
}

function shown(cells, scale) {
  if (!scale.log) return cells;
  return cells.map((row) => row.map((steps) => (steps === null ? null : Math.log10(Math.max(steps, 1)))));
}

function meanOf(cells) {
  const values = cells.flat().filter((steps) => steps !== null);
  return values.reduce((sum, steps) => sum + steps, 0) / values.length;
}

function mapTrace(cells, block) {
  const names = block.axis_labels ?? ["column", "row"];
  const most = block.scale.log ? Math.log10(block.scale.most) : block.scale.most;
  const shades = drawn.colours.maps;
  return {
    type: "heatmap",
    z: shown(cells, block.scale),
    customdata: cells,
    zmin: 0,
    zmax: most,
    showscale: false,
    hoverongaps: false,
    colorscale: shades.map((shade, index) => [index / (shades.length - 1), shade]),
    hovertemplate: `${names[1]} %{y}, ${names[0]} %{x}<br><b>%{customdata}</b><extra></extra>`,
  };
}

function mapLayout(block) {
  const { axis, layout } = base();
  const bare = { ...axis, showgrid: false, showticklabels: false, ticks: "", fixedrange: true };
  const title = (index) => (block.axis_labels ? { text: block.axis_labels[index] } : undefined);
  const edge = block.axis_labels ? 24 : 2;
  // Places keep their shape; other quantities fill the square.
  const places = block.axis_labels ? {} : { scaleanchor: "x", constrain: "domain" };
  return {
    ...layout,
    margin: { l: edge, r: 2, t: 2, b: edge },
    xaxis: { ...bare, title: title(0), constrain: "domain" },
    yaxis: { ...bare, title: title(1), autorange: "reversed", ...places },
  };
}

function drawMaps(figure, block) {
  needPlotly();
  const input = figure.querySelector("input");
  const cards = [...figure.querySelectorAll(".map")];
  const [{ values: [first] }] = block.maps;
  const ratio = block.axis_labels ? 1 : first[0].length / first.length;
  figure.style.setProperty("--shades", drawn.colours.maps.join(", "));
  for (const card of cards) card.querySelector(".plot").style.aspectRatio = String(ratio);
  const draw = () => {
    const position = Number(input.value);
    const said = String(block.slider.values[position]);
    figure.querySelector("output").textContent = said;
    input.setAttribute("aria-valuetext", `${block.slider.name} = ${said}`);
    cards.forEach((card, index) => {
      const cells = block.maps[index].values[position];
      Plotly.react(card.querySelector(".plot"), [mapTrace(cells, block)], mapLayout(block), options);
      card.querySelector(".mean").textContent = `mean ${Number(meanOf(cells).toPrecision(4))}`;
    });
  };
  input.addEventListener("input", draw);
  redraws.push(draw);
  draw();
}

function drawBlock(figure) {
  const block = drawn.blocks[figure.dataset.experiment][Number(figure.dataset.block)];
  (block.kind === "maps" ? drawMaps : drawCurves)(figure, block);
}

// A page of many plots opens quickly because each waits until a reader scrolls near.
const nearby = new IntersectionObserver((entries) => {
  for (const entry of entries.filter((entry) => entry.isIntersecting)) {
    nearby.unobserve(entry.target);
    drawBlock(entry.target);
  }
}, { rootMargin: "800px" });
for (const figure of document.querySelectorAll(".interactive[data-block]")) nearby.observe(figure);

dark.addEventListener("change", () => redraws.forEach((draw) => draw()));
addEventListener("beforeprint", () => {
  for (const figure of document.querySelectorAll(".interactive[data-block]")) {
    if (!figure.querySelector(".main-svg")) drawBlock(figure);
  }
  for (const details of document.querySelectorAll("details")) details.open = true;
});

async function copy(source) {
  try {
    await navigator.clipboard.writeText(source.textContent);
    return true;
  } catch {
    // If the clipboard is not available, the command is selected for the reader to copy.
    getSelection().selectAllChildren(source);
    return false;
  }
}

for (const button of document.querySelectorAll("button[data-copies]")) {
  button.addEventListener("click", async () => {
    const copied = await copy(document.getElementById(button.dataset.copies));
    document.getElementById("told").textContent = copied ? "Command copied" : "Command selected";
    button.textContent = copied ? "Copied" : "Selected";
    setTimeout(() => { button.textContent = "Copy"; }, 1600);
  });
}
