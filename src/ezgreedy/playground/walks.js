// Many walkers of one policy in one world, and when each first visited each cell.
"use strict";

const TRAIL_LENGTH = 64; // steps of the first walker that are remembered

class Walk {
  // With isEz false every option lasts one step, which is ε-greedy.
  constructor(settings, isEz) {
    const numLanes = settings.walkers;
    this.settings = settings;
    this.isEz = isEz;
    this.streams = new Streams(BigInt(settings.seed), numLanes);
    this.threshold = Math.ceil(settings.epsilon * WORD_UNITS);
    this.law = isEz ? new DurationLaw(settings) : null;
    this.world = makeWorld(settings.world, numLanes);
    this.numActions = data.worlds[settings.world].numActions;
    this.greedy = data.worlds[settings.world].greedy;
    this.stepLimit = data.worlds[settings.world].stepLimit ?? Infinity;
    this.optionActions = new Int32Array(numLanes);
    this.remaining = new Int32Array(numLanes);
    this.exploring = new Uint8Array(numLanes);
    this.episodeSteps = new Int32Array(numLanes);
    this.step = 0;
    this.numExplored = 0;
    this.numEpisodes = 0;
    this.trail = [];
    this.countCells();
    for (let lane = 0; lane < numLanes; lane += 1) this.see(lane, 0);
    this.rememberCoverage();
  }

  countCells() {
    const { world, settings } = this;
    this.numCounted = world.counts.reduce((sum, each) => sum + each, 0);
    this.hasSeen = new Uint8Array(settings.walkers * world.numCells);
    this.firstSums = new Float64Array(world.numCells); // over the walkers that have been there
    this.numVisitors = new Int32Array(world.numCells);
    this.numSeen = 0; // pairs of a walker and a counted cell
    this.seenFirstSum = 0;
    this.coverage = new Float64Array(settings.steps + 1);
  }

  get isOver() {
    return this.step >= this.settings.steps;
  }

  advance() {
    const { world, settings } = this;
    const stopsAtWalls = settings.stop;
    this.step += 1;
    for (let lane = 0; lane < settings.walkers; lane += 1) {
      const action = this.decide(lane, this.step - 1);
      world.advance(lane, action);
      this.see(lane, this.step);
      this.episodeSteps[lane] += 1;
      if (lane === 0) this.rememberPlace();
      if (world.hasEnded || this.episodeSteps[lane] >= this.stepLimit) {
        this.remaining[lane] = 0;
        this.episodeSteps[lane] = 0;
        this.numEpisodes += 1;
        world.begin(lane);
        this.see(lane, this.step);
        if (lane === 0) this.trail = [];
      } else if (stopsAtWalls && !world.hasMoved) {
        this.remaining[lane] = 0;
      }
    }
    this.rememberCoverage();
  }

  // One decision: play on, or toss the coin; on heads draw an action and a duration.
  decide(lane, step) {
    if (this.remaining[lane] > 0) {
      this.remaining[lane] -= 1;
    } else {
      this.streams.draw(lane, step);
      if (units() >= this.threshold) {
        this.exploring[lane] = 0;
        return this.greedy;
      }
      this.optionActions[lane] = Math.floor(this.streams.uniform(ACTION) * this.numActions);
      this.remaining[lane] = this.isEz ? this.law.quantile(this.streams.uniform(DURATION)) - 1 : 0;
    }
    this.exploring[lane] = 1;
    this.numExplored += 1;
    return this.optionActions[lane];
  }

  see(lane, step) {
    const cell = this.world.cells[lane];
    const place = lane * this.world.numCells + cell;
    if (this.hasSeen[place]) return;
    this.hasSeen[place] = 1;
    this.firstSums[cell] += step;
    this.numVisitors[cell] += 1;
    if (this.world.counts[cell]) {
      this.numSeen += 1;
      this.seenFirstSum += step;
    }
  }

  rememberPlace() {
    this.trail.push(this.world.place(0));
    if (this.trail.length > TRAIL_LENGTH) this.trail.shift();
  }

  rememberCoverage() {
    this.coverage[this.step] = this.numSeen / (this.settings.walkers * this.numCounted);
  }

  // Mean steps to the first visit of a cell. Paper: a cell never seen counts the whole walk.
  meanFirst(cell) {
    const { walkers, steps } = this.settings;
    return (this.firstSums[cell] + (walkers - this.numVisitors[cell]) * steps) / walkers;
  }

  get map() {
    return Array.from({ length: this.world.numCells }, (_, cell) => this.meanFirst(cell));
  }

  // The mean over all cells that count.
  get meanFirstVisit() {
    const { walkers, steps } = this.settings;
    const numPairs = walkers * this.numCounted;
    return (this.seenFirstSum + (numPairs - this.numSeen) * steps) / numPairs;
  }

  get exploredShare() {
    return this.step ? this.numExplored / (this.step * this.settings.walkers) : 0;
  }
}
