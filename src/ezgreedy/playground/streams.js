// Where randomness comes from: ezgreedy.exploration.streams in 32-bit halves. A draw is a hash of
// (seed, lane, step, purpose), so walks here and in Python take the same actions.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);

const MASK_64 = (1n << 64n) - 1n;
const highHalf = (word) => Number(BigInt.asIntN(32, word >> 32n));
const lowHalf = (word) => Number(BigInt.asIntN(32, word));

const WEYL = BigInt(data.generator.weyl);
const [WEYL_HIGH, WEYL_LOW] = [highHalf(WEYL), lowHalf(WEYL)];
const A_HIGH = highHalf(BigInt(data.generator.multiplierA));
const A_LOW = lowHalf(BigInt(data.generator.multiplierA));
const B_HIGH = highHalf(BigInt(data.generator.multiplierB));
const B_LOW = lowHalf(BigInt(data.generator.multiplierB));
const [SHIFT_A, SHIFT_B, SHIFT_C] = data.generator.shifts;
const { ACTION, DURATION } = data.generator.purposes;
const WORD_UNITS = 2 ** 53;

// What sets the purposes of a word apart, by the purpose's number.
const OFFSETS = Object.values(data.generator.purposes).map((each) => (BigInt(each) * WEYL) & MASK_64);
const OFFSETS_HIGH = Int32Array.from(OFFSETS, highHalf);
const OFFSETS_LOW = Int32Array.from(OFFSETS, lowHalf);

// The register that all functions below work on: one 64-bit word as two signed halves. It is an
// array because engines keep its ints as they are, which they do not with ints in variables.
const register = new Int32Array(2);
const HIGH = 0, LOW = 1;

function load(word) {
  register[HIGH] = highHalf(word);
  register[LOW] = lowHalf(word);
}

function loaded() {
  return (BigInt(register[HIGH] >>> 0) << 32n) | BigInt(register[LOW] >>> 0);
}

function add(otherHigh, otherLow) {
  const sum = (register[LOW] >>> 0) + (otherLow >>> 0);
  register[LOW] = sum;
  register[HIGH] += otherHigh + (sum > 0xffffffff ? 1 : 0);
}

// The low 64 bits of a product; the low halves are multiplied in quarters, whose products are exact.
function multiply(otherHigh, otherLow) {
  const high = register[HIGH], low = register[LOW];
  const a0 = low & 0xffff, a1 = low >>> 16;
  const b0 = otherLow & 0xffff, b1 = otherLow >>> 16;
  const bottom = a0 * b0;
  const first = a1 * b0 + (bottom >>> 16);
  const second = a0 * b1 + (first & 0xffff);
  const carried = a1 * b1 + Math.floor(first / 65536) + Math.floor(second / 65536);
  register[HIGH] = Math.imul(high, otherLow) + Math.imul(low, otherHigh) + carried;
  register[LOW] = (second << 16) | (bottom & 0xffff);
}

// The register exclusive-or itself shifted right, for shifts below 32.
function fold(shift) {
  const high = register[HIGH], low = register[LOW];
  register[LOW] = low ^ ((low >>> shift) | (high << (32 - shift)));
  register[HIGH] = high ^ (high >>> shift);
}

function scramble(multiplierHigh, multiplierLow) {
  fold(SHIFT_A);
  multiply(A_HIGH, A_LOW);
  fold(SHIFT_B);
  multiply(multiplierHigh, multiplierLow);
}

function finalise() {
  scramble(B_HIGH, B_LOW);
  fold(SHIFT_C);
}

// The top 53 bits, a whole number.
function units() {
  return (register[HIGH] >>> 0) * 2097152 + (register[LOW] >>> 11);
}

function finalised(word) {
  load(word & MASK_64);
  finalise();
  return loaded();
}

// The streams of lanes 0, 1, … of a fleet that shares a seed, any non-negative BigInt.
class Streams {
  constructor(seed, numLanes) {
    let state = WEYL;
    let remaining = seed;
    do { // absorbs the seed 64 bits at a time
      state = finalised((state ^ (remaining & MASK_64)) + WEYL);
      remaining >>= 64n;
    } while (remaining);
    this.keys = new Int32Array(4 * numLanes);
    for (let lane = 0; lane < numLanes; lane += 1) {
      const offset = finalised(finalised(BigInt(lane) + WEYL) ^ state);
      const multiplier = finalised(offset + WEYL) | 1n;
      this.keys.set(
        [highHalf(offset), lowHalf(offset), highHalf(multiplier), lowHalf(multiplier)], 4 * lane);
    }
  }

  // Puts the word of a lane's step into the register; its top bits are the coin.
  draw(lane, step) {
    const { keys } = this;
    register[HIGH] = 0;
    register[LOW] = step;
    multiply(WEYL_HIGH, WEYL_LOW);
    add(keys[4 * lane], keys[4 * lane + 1]);
    scramble(keys[4 * lane + 2], keys[4 * lane + 3]);
  }

  // The uniform of [0, 1) that the register's word holds for a purpose other than the coin; the
  // word stays where it is.
  uniform(purpose) {
    const high = register[HIGH], low = register[LOW];
    add(OFFSETS_HIGH[purpose], OFFSETS_LOW[purpose]);
    finalise();
    const drawn = units() / WORD_UNITS;
    register[HIGH] = high;
    register[LOW] = low;
    return drawn;
  }
}
