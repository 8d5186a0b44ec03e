// The same walks in Python: code that draws nothing and gives the page's numbers.
"use strict";

// A number as Python code: 2 is 2.0 where Python expects a float.
function asFloat(value) {
  return Number.isInteger(value) ? `${value}.0` : String(value);
}

function asInteger(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, "_");
}

function lawInPython({ law, mu, decay, cap }) {
  if (law === "zeta") return ["Zeta", `Zeta(mu=${asFloat(mu)}, cap=${asInteger(cap)})`];
  if (law === "uniform") return ["Uniform", `Uniform(${asInteger(cap)})`];
  return ["Geometric", `Geometric(decay=${asFloat(decay)}, cap=${asInteger(cap)})`];
}

function asPython(settings) {
  const world = data.worlds[settings.world];
  const isTable = world.kind === "table";
  const [lawName, law] = lawInPython(settings);
  const more = Object.entries(world.settings).map(([name, value]) => `, ${name}=${value}`).join("");
  const shared = `lanes=${settings.walkers}, seed=${asInteger(settings.seed)}`;
  const first = `${world.numActions}, ${asFloat(settings.epsilon)}`;
  return [
    "from functools import partial",
    "",
    "import gymnasium",
    "",
    "import ezgreedy.envs  # registers the worlds",
    `from ezgreedy import ${["EpsilonGreedy", "EZGreedy", ...(settings.stop ? ["StopOnUnchanged"] : []), lawName].join(", ")}`,
    "from ezgreedy.analysis import first_visits",
    ...(isTable ? ["from ezgreedy.envs.finite import finite_model"] : []),
    "",
    `world = partial(gymnasium.make, "${world.environment}"${more})`,
    ...(isTable
      ? ["cells = finite_model(world().unwrapped).acting  # neither walls nor ends"]
      : ["cells = None  # all of them"]),
    "policies = {",
    `    "ε-greedy": EpsilonGreedy(${first}, ${shared}),`,
    `    "εz-greedy": EZGreedy(${first}, ${law}, ${shared}),`,
    "}",
    "maps = {}",
    "for name, explore in policies.items():",
    "    visits = first_visits(",
    "        world,",
    "        explore,",
    `        num_steps=${asInteger(settings.steps)},`,
    `        greedy=lambda observation: ${world.greedy},  # ${world.greedyWords}`,
    ...(settings.stop
      ? [`        stops=StopOnUnchanged(lanes=${settings.walkers}),  # a wall, for one`]
      : []),
    "    )",
    "    maps[name] = visits.mean_map()",
    "    mean = visits.trial_means(cells).mean()",
    '    print(f"{name}: {mean:,.1f} steps to the first visit of a cell")',
    "",
  ].join("\n");
}
