// Opens the contents on a narrow screen, marks the section being read, and filters by verdict.

const contents = document.querySelector(".contents");
const opener = contents?.querySelector("button");

function openContents(isOpen) {
  contents.classList.toggle("is-open", isOpen);
  opener.setAttribute("aria-expanded", String(isOpen));
}

opener?.addEventListener("click", () => openContents(!contents.classList.contains("is-open")));
contents?.addEventListener("click", (event) => {
  if (event.target.closest("a")) openContents(false);
});
contents?.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  openContents(false);
  opener.focus();
});

const links = new Map(
  [...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]),
);

// A section is being read if it crosses a line in the upper part of the window.
const reading = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const link = links.get(target.id);
    if (isIntersecting) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}, { rootMargin: "-20% 0px -79% 0px" });
for (const id of links.keys()) reading.observe(document.getElementById(id));

function showVerdict(chosen) {
  for (const status of document.querySelectorAll("[data-counts]")) {
    const rows = [...document.querySelectorAll(`#${status.dataset.counts} .verdicts tbody tr`)];
    for (const row of rows) row.hidden = chosen !== "all" && row.dataset.verdict !== chosen;
    const number = rows.filter((row) => !row.hidden).length;
    status.textContent = chosen === "all" ? "" : `${number} of ${rows.length} claims`;
  }
}

for (const choice of document.querySelectorAll("input[name=verdict]")) {
  choice.addEventListener("change", () => showVerdict(choice.value));
  // A browser may come back to the page with an earlier choice.
  if (choice.checked) showVerdict(choice.value);
}
