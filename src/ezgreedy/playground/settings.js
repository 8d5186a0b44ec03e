// What a visitor has chosen, and how it is written in the page's address: #world=mines&epsilon=0.5.
"use strict";

// A reader gives the value that a text stands for, or throws the rule that the text breaks.
class Refused extends Error {}

function oneOf(choices) {
  return (text) => {
    if (!choices.includes(text)) throw new Refused(`be one of ${choices.join(", ")}`);
    return text;
  };
}

function numberWithin(least, most) {
  return (text) => {
    const value = text.trim() === "" ? NaN : Number(text);
    if (!(value >= least && value <= most)) throw new Refused(`lie in [${least}, ${most}]`);
    return value;
  };
}

function integerWithin(least, most) {
  return (text) => {
    const value = /^\s*\d+\s*$/.test(text) ? Number(text) : NaN;
    if (!(value >= least && value <= most)) {
      throw new Refused(`be a whole number from ${counted(least)} to ${counted(most)}`);
    }
    return value;
  };
}

// Seeds have any number of digits, so they stay text.
function seedText(text) {
  if (!/^\s*\d{1,100}\s*$/.test(text)) throw new Refused("be a whole number, 0 or more");
  return String(BigInt(text));
}

function flag(text) {
  if (text !== "yes" && text !== "no") throw new Refused("be yes or no");
  return text === "yes";
}

const FIELDS = {
  world: { initial: "open-room", title: "World", read: oneOf(Object.keys(data.worlds)) },
  epsilon: { initial: 0.1, title: "ε", read: numberWithin(0, 1) },
  law: { initial: "zeta", title: "Law", read: oneOf(Object.keys(LAWS)) },
  mu: { initial: 2, title: "μ", read: numberWithin(0, 10) },
  decay: { initial: 0.9, title: "λ", read: numberWithin(0, 1) },
  cap: { initial: 10000, title: "Longest duration", read: integerWithin(1, 10000) },
  stop: { initial: false, title: "Stop at walls", read: flag },
  walkers: { initial: 100, title: "Walkers", read: integerWithin(1, 500) },
  steps: { initial: 2000, title: "Steps", read: integerWithin(1, 20000) },
  seed: { initial: "0", title: "Seed", read: seedText },
};

const DEFAULTS = Object.fromEntries(
  Object.entries(FIELDS).map(([name, { initial }]) => [name, initial]));

// Choices that are worth a look, by the text of their link.
const EXAMPLES = {
  "the paper’s Figure 1": { world: "open-room" },
  "a long corridor": { world: "corridor", epsilon: 1 },
  "repeats that run into walls": { world: "four-rooms", epsilon: 1 },
  "the same, stopping at walls": { world: "four-rooms", epsilon: 1, stop: true },
  "mines": { world: "mines", epsilon: 1 },
};

function counted(number) {
  return number.toLocaleString("en-US");
}

// The settings of an address, and what in it could not be used.
function fromAddress(hash) {
  const settings = { ...DEFAULTS };
  const problems = [];
  for (const [name, text] of new URLSearchParams(hash.replace(/^#/, ""))) {
    const field = FIELDS[name];
    if (!field) {
      problems.push({ name, message: `There is no setting “${name}” here, so it was left out.` });
      continue;
    }
    try {
      settings[name] = field.read(text);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      problems.push({ name, message: refusal(name, error.message, text) });
    }
  }
  return { settings, problems };
}

function refusal(name, rule, text) {
  if (name === "world") {
    const shown = data.worlds[DEFAULTS.world].title;
    return `There is no world “${text}” here. This is ${shown} instead. You can choose:`;
  }
  const shown = typeof DEFAULTS[name] === "boolean" ? "no" : String(DEFAULTS[name]);
  return `${FIELDS[name].title} must ${rule}; got “${text}”. It is ${shown} instead.`;
}

function written(value) {
  return typeof value === "boolean" ? (value ? "yes" : "no") : String(value);
}

// The address of these settings; what is as usual is left out.
function toAddress(settings) {
  const chosen = Object.entries(settings).filter(
    ([name, value]) => name === "world" || value !== DEFAULTS[name]);
  return `#${new URLSearchParams(chosen.map(([name, value]) => [name, written(value)]))}`;
}
