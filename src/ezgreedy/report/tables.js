// Sorts tables by their headings, and shows the atlas of exploration for the chosen condition.

// The sort key of a cell: its number if it has one, otherwise its words.
function sortKey(cell) {
  const text = cell.querySelector("data")?.value ?? cell.textContent.trim();
  const number = Number(text.replace("−", "-"));
  return text === "" || Number.isNaN(number) ? text : number;
}

// Numbers by size, words alphabetically; missing values come last in either order.
function inOrder(one, other, sign) {
  const isMissing = [one, other].map((key) => key === "–" || key === "");
  if (isMissing[0] || isMissing[1]) return isMissing[0] - isMissing[1];
  if (typeof one === "number" && typeof other === "number") return sign * (one - other);
  return sign * String(one).localeCompare(String(other), "en");
}

function sortRows(table) {
  const heading = table.querySelector("thead th[aria-sort$=scending]");
  if (!heading) return;
  const sign = heading.getAttribute("aria-sort") === "ascending" ? 1 : -1;
  const rows = [...table.tBodies[0].rows].map((row) => [sortKey(row.cells[heading.cellIndex]), row]);
  rows.sort(([one], [other]) => inOrder(one, other, sign));
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.querySelectorAll("thead th")];
  for (const heading of headings) {
    heading.querySelector("button").addEventListener("click", () => {
      const before = heading.getAttribute("aria-sort");
      // The first click sorts numbers largest first and names alphabetically.
      const isNamed = typeof sortKey(table.tBodies[0].rows[0].cells[heading.cellIndex]) === "string";
      const fresh = isNamed ? "ascending" : "descending";
      const turned = before === "ascending" ? "descending" : "ascending";
      for (const other of headings) other.setAttribute("aria-sort", "none");
      heading.setAttribute("aria-sort", before === "none" ? fresh : turned);
      sortRows(table);
    });
  }
}

function element(name, text, classes) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (classes) made.className = classes;
  return made;
}

function atlasRow([game, cells]) {
  const row = element("tr");
  const heading = element("th", game);
  heading.scope = "row";
  row.append(heading);
  for (const [number, value, interval, sign, ...more] of cells) {
    const cell = element("td", undefined, sign > 0 ? "up" : sign < 0 ? "down" : "");
    const data = element("data", value);
    data.value = String(number);
    cell.append(data);
    for (const text of [interval, ...more].filter(Boolean)) {
      cell.append(" ", element("span", text, "interval"));
    }
    row.append(cell);
  }
  return row;
}

for (const atlas of document.querySelectorAll(".atlas")) {
  const conditions = drawn.atlases[atlas.dataset.experiment];
  atlas.querySelector("select").addEventListener("change", (event) => {
    const table = atlas.querySelector("table");
    table.tBodies[0].replaceChildren(...conditions[Number(event.target.value)].map(atlasRow));
    sortRows(table);
  });
}
