// How long an option lasts: the laws of ezgreedy.exploration.durations as tables.
"use strict";

// What each law weighs a duration with; `parameter` is the one that it takes besides the cap.
const LAWS = {
  zeta: { title: "zeta", parameter: "mu", weight: (n, { mu }) => n ** -mu },
  exponential: { title: "exponential", parameter: "decay", weight: (n, { decay }) => decay ** (n - 1) },
  uniform: { title: "uniform", parameter: null, weight: () => 1 },
};

// A sum whose rounding errors are added up as well, since the terms differ by many magnitudes.
function exactSum(terms) {
  let sum = 0, lost = 0;
  for (const term of terms) {
    const next = sum + term;
    lost += Math.abs(sum) >= Math.abs(term) ? (sum - next) + term : (term - next) + sum;
    sum = next;
  }
  return sum + lost;
}

class DurationLaw {
  constructor(settings) {
    const { weight } = LAWS[settings.law];
    const weights = Float64Array.from({ length: settings.cap }, (_, at) => weight(at + 1, settings));
    const total = exactSum(weights);
    this.cumulative = new Float64Array(settings.cap);
    let sum = 0, lastPossible = 0;
    weights.forEach((each, at) => {
      sum += each / total;
      this.cumulative[at] = sum;
      if (each > 0) lastPossible = at;
    });
    this.cumulative.fill(1, lastPossible);
    this.mean = exactSum(weights.map((each, at) => (each / total) * (at + 1)));
  }

  // The smallest n whose cumulative probability exceeds u.
  quantile(u) {
    const { cumulative } = this;
    let least = 0, most = cumulative.length - 1;
    while (least < most) {
      const middle = (least + most) >> 1;
      if (cumulative[middle] <= u) least = middle + 1; else most = middle;
    }
    return least + 1;
  }
}

// The long-run share of exploratory steps if options run to their end.
function exploratoryShare(epsilon, mean) {
  return (epsilon * mean) / (1 - epsilon + epsilon * mean);
}
