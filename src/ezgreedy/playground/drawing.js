// How maps and curves look: one canvas each, redrawn for every frame.
"use strict";

const WIDEST = 9; // the shape of a long, narrow world's map, as width over height

function tone(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// The colours of the current theme, asked for once and not for every frame.
const tones = {};

function readTones() {
  for (const name of ["ink", "soft", "line", "card", "never", "nothing", "goal", "end", "eps", "ez"]) {
    tones[name] = tone(name);
  }
}

function channels(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

const SHADES = data.colours.shades.map(channels);

// A canvas in the pixels of the screen; its context is in CSS pixels.
function prepared(canvas) {
  const { width, height } = canvas.getBoundingClientRect();
  const scale = window.devicePixelRatio || 1;
  const [columns, rows] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== columns || canvas.height !== rows) {
    canvas.width = columns;
    canvas.height = rows;
  }
  const context = canvas.getContext("2d");
  context.setTransform(columns / width, 0, 0, rows / height, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

// The first-visit map of a walk, with its walkers on top.
class MapPicture {
  constructor(canvas) {
    this.canvas = canvas;
    this.cells = document.createElement("canvas"); // one pixel a cell
  }

  // Fits the canvas to the shape of a world.
  fit(world) {
    const shape = Math.min(world.numColumns / world.numRows, WIDEST);
    this.canvas.style.aspectRatio = String(shape);
    this.cells.width = world.numColumns;
    this.cells.height = world.numRows;
    this.image = this.cells.getContext("2d").createImageData(world.numColumns, world.numRows);
  }

  draw(walk, chosenCell) {
    const { context, width, height } = prepared(this.canvas);
    const { world } = walk;
    const [across, down] = [width / world.numColumns, height / world.numRows];
    this.paintCells(walk);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.cells, 0, 0, width, height);
    this.drawEnds(context, walk, across, down);
    this.drawTrail(context, walk, across, down);
    this.drawWalkers(context, walk, across, down);
    if (chosenCell !== null) this.drawCursor(context, world.columnAndRow(chosenCell), across, down);
  }

  paintCells(walk) {
    const { world, settings } = walk;
    const pixels = this.image.data;
    const [never, nothing] = [channels(tones.never), channels(tones.nothing)];
    const kinds = data.worlds[settings.world].cells;
    for (let cell = 0; cell < world.numCells; cell += 1) {
      const [column, row] = world.columnAndRow(cell);
      const at = 4 * (row * world.numColumns + column);
      let colour = never;
      if (kinds !== undefined && kinds[cell] === NOTHING) colour = nothing;
      else if (walk.numVisitors[cell] > 0) {
        const level = Math.floor((walk.meanFirst(cell) / settings.steps) * SHADES.length);
        colour = SHADES[Math.min(level, SHADES.length - 1)];
      }
      pixels[at] = colour[0];
      pixels[at + 1] = colour[1];
      pixels[at + 2] = colour[2];
      pixels[at + 3] = 255;
    }
    this.cells.getContext("2d").putImageData(this.image, 0, 0);
  }

  // Goals are golden squares, other ends crosses.
  drawEnds(context, walk, across, down) {
    const kinds = data.worlds[walk.settings.world].cells ?? "";
    const side = Math.min(across, down);
    for (let cell = 0; cell < kinds.length; cell += 1) {
      if (kinds[cell] === NOTHING || kinds[cell] === FLOOR) continue;
      const [column, row] = walk.world.columnAndRow(cell);
      const [x, y] = [(column + 0.5) * across, (row + 0.5) * down];
      if (kinds[cell] === "G") {
        context.fillStyle = tones.goal;
        context.strokeStyle = tones.ink;
        context.lineWidth = 1;
        context.beginPath();
        context.rect(x - 0.32 * side, y - 0.32 * side, 0.64 * side, 0.64 * side);
        context.fill();
        context.stroke();
      } else {
        context.strokeStyle = tones.end;
        context.lineWidth = Math.max(side / 8, 1);
        context.beginPath();
        context.moveTo(x - 0.22 * side, y - 0.22 * side);
        context.lineTo(x + 0.22 * side, y + 0.22 * side);
        context.moveTo(x + 0.22 * side, y - 0.22 * side);
        context.lineTo(x - 0.22 * side, y + 0.22 * side);
        context.stroke();
      }
    }
  }

  drawTrail(context, walk, across, down) {
    if (walk.trail.length < 2) return;
    context.strokeStyle = "#1d2126";
    context.lineWidth = 1.5;
    context.lineJoin = "round";
    context.beginPath();
    walk.trail.forEach(([x, y]) => context.lineTo(x * across, y * down));
    context.stroke();
  }

  // Walkers in one cell are drawn a little apart; those that explore are filled.
  drawWalkers(context, walk, across, down) {
    const isSpread = walk.world instanceof TableWorld;
    const radius = Math.min(Math.max(0.2 * Math.min(across, down), 1.6), 5);
    context.lineWidth = 1;
    context.strokeStyle = "#1d2126";
    for (const isExploring of [0, 1]) {
      context.fillStyle = isExploring ? "#1d2126" : "#ffffff";
      context.beginPath();
      for (let lane = 0; lane < walk.settings.walkers; lane += 1) {
        if (walk.exploring[lane] !== isExploring) continue;
        const [x, y] = walk.world.place(lane);
        const [aside, above] = isSpread && lane > 0
          ? [((lane * 0.618) % 1) - 0.5, ((lane * 0.755) % 1) - 0.5]
          : [0, 0];
        const [left, top] = [(x + 0.6 * aside) * across, (y + 0.6 * above) * down];
        context.moveTo(left + radius, top);
        context.arc(left, top, radius, 0, 2 * Math.PI);
      }
      context.fill();
      context.stroke();
    }
  }

  drawCursor(context, [column, row], across, down) {
    context.strokeStyle = "#000000";
    context.lineWidth = 3;
    context.strokeRect(column * across, row * down, across, down);
    context.strokeStyle = "#ffffff";
    context.lineWidth = 1;
    context.strokeRect(column * across, row * down, across, down);
  }

  // The cell under a pointer.
  cellAt(world, event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * world.numColumns);
    const row = Math.floor(((event.clientY - box.top) / box.height) * world.numRows);
    return cellIn(world, column, row);
  }
}

// The cell in a column and a row, each moved to the nearest that there is.
function cellIn(world, column, row) {
  const [across, down] = [
    Math.min(Math.max(column, 0), world.numColumns - 1),
    Math.min(Math.max(row, 0), world.numRows - 1),
  ];
  for (let cell = 0; cell < world.numCells; cell += 1) {
    const [itsColumn, itsRow] = world.columnAndRow(cell);
    if (itsColumn === across && itsRow === down) return cell;
  }
  return null;
}

// Which share of the cells walkers have seen, over steps.
function drawCurves(canvas, walks) {
  const { context, width, height } = prepared(canvas);
  const { steps } = walks[0].settings;
  const [left, right, top, bottom] = [48, width - 8, 8, height - 22];
  const x = (step) => left + (step / steps) * (right - left);
  const y = (share) => bottom - share * (bottom - top);
  context.font = "12px system-ui, sans-serif";
  context.lineWidth = 1;
  context.strokeStyle = tones.line;
  context.fillStyle = tones.soft;
  for (const share of [0, 0.5, 1]) {
    context.beginPath();
    context.moveTo(left, y(share));
    context.lineTo(right, y(share));
    context.stroke();
    context.textAlign = "right";
    context.fillText(`${100 * share} %`, left - 5, y(share) + 4);
  }
  context.textAlign = "left";
  context.fillText("0", left, height - 6);
  context.textAlign = "right";
  context.fillText(`${counted(steps)} steps`, right, height - 6);
  for (const walk of walks) {
    context.strokeStyle = walk.isEz ? tones.ez : tones.eps;
    context.lineWidth = 2.2;
    context.setLineDash(walk.isEz ? [] : [6, 3]);
    context.beginPath();
    const stride = Math.max(1, Math.floor(steps / 600));
    for (let step = 0; step <= walk.step; step += stride) {
      context.lineTo(x(step), y(walk.coverage[step]));
    }
    context.lineTo(x(walk.step), y(walk.coverage[walk.step]));
    context.stroke();
  }
  context.setLineDash([]);
}
