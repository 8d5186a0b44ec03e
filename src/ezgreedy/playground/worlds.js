// Where walkers are and where actions lead them. A world moves all lanes of a walk, each on its own:
// `cells` says in which cell of the map a lane is, `advance` plays an action and says whether the
// episode ended and whether anything changed.
"use strict";

const NOTHING = "#", FLOOR = ".";

// A world with finitely many states, as a table.
class TableWorld {
  constructor(world, numLanes) {
    this.world = world;
    this.numCells = world.cells.length;
    this.numColumns = world.numColumns;
    this.numRows = this.numCells / world.numColumns;
    this.successors = Int32Array.from(world.successors);
    this.ends = Uint8Array.from(world.cells, (kind) => kind !== NOTHING && kind !== FLOOR);
    this.counts = Uint8Array.from(world.cells, (kind) => kind === FLOOR);
    this.cells = new Int32Array(numLanes).fill(world.firstState);
    this.hasEnded = false;
    this.hasMoved = false;
  }

  begin(lane) {
    this.cells[lane] = this.world.firstState;
  }

  advance(lane, action) {
    const state = this.cells[lane];
    const next = this.successors[state * this.world.numActions + action];
    this.cells[lane] = next;
    this.hasMoved = next !== state;
    this.hasEnded = this.ends[next] === 1;
  }

  // The column and the row of a cell on the map, from the top left.
  columnAndRow(cell) {
    return [cell % this.numColumns, Math.floor(cell / this.numColumns)];
  }

  // Where a lane is on the map, in cells from the top left.
  place(lane) {
    return this.columnAndRow(this.cells[lane]).map((index) => index + 0.5);
  }
}

// MountainCar; its cells are bins of position (to the right) and velocity (upwards).
class CarWorld {
  constructor(world, numLanes) {
    this.world = world;
    [this.numColumns, this.numRows] = world.counts;
    this.numCells = this.numColumns * this.numRows;
    this.counts = new Uint8Array(this.numCells).fill(1);
    this.cells = new Int32Array(numLanes);
    this.positions = new Float64Array(numLanes);
    this.velocities = new Float64Array(numLanes);
    this.hasEnded = false;
    this.hasMoved = false;
    for (let lane = 0; lane < numLanes; lane += 1) this.begin(lane);
  }

  begin(lane) {
    this.positions[lane] = this.world.firstPosition;
    this.velocities[lane] = 0;
    this.cells[lane] = this.cellOf(this.world.firstPosition, 0);
  }

  advance(lane, action) {
    const { force, gravity, mostSpeed, leastPosition, mostPosition, goalPosition } = this.world;
    const before = this.positions[lane], speed = this.velocities[lane];
    let velocity = speed + ((action - 1) * force + Math.cos(3 * before) * -gravity);
    velocity = Math.min(Math.max(velocity, -mostSpeed), mostSpeed);
    const position = Math.min(Math.max(before + velocity, leastPosition), mostPosition);
    if (position === leastPosition && velocity < 0) velocity = 0; // the wall takes all momentum
    this.positions[lane] = position;
    this.velocities[lane] = velocity;
    this.cells[lane] = this.cellOf(position, velocity);
    this.hasMoved = position !== before || velocity !== speed;
    this.hasEnded = position >= goalPosition && velocity >= 0;
  }

  // Numbered as in Python: along the velocity first.
  cellOf(position, velocity) {
    return this.binOf(0, position) * this.numRows + this.binOf(1, velocity);
  }

  binOf(dimension, value) {
    const { low, high, counts } = this.world;
    const width = counts[dimension] / (high[dimension] - low[dimension]);
    const bin = Math.floor((value - low[dimension]) * width);
    return Math.min(Math.max(bin, 0), counts[dimension] - 1);
  }

  columnAndRow(cell) {
    return [Math.floor(cell / this.numRows), this.numRows - 1 - (cell % this.numRows)];
  }

  place(lane) {
    const { low, high } = this.world;
    return [
      ((this.positions[lane] - low[0]) / (high[0] - low[0])) * this.numColumns,
      (1 - (this.velocities[lane] - low[1]) / (high[1] - low[1])) * this.numRows,
    ];
  }
}

function makeWorld(name, numLanes) {
  const world = data.worlds[name];
  return world.kind === "car" ? new CarWorld(world, numLanes) : new TableWorld(world, numLanes);
}
