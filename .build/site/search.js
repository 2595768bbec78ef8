// Searches the pages. The index is a separate file that is loaded when a search begins.
const field = document.querySelector("#search");
const found = document.querySelector("#found");
const base = document.documentElement.dataset.base;
let index;

/** Loads the index as a script, which also works for pages that are opened from a folder. */
function read() {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `${base}index.js`;
    script.addEventListener("load", () =>
      resolve(
        globalThis.tollgatePages.map((entry) => ({
          ...entry,
          low: `${entry.title} ${entry.text}`.toLowerCase(),
        })),
      ),
    );
    script.addEventListener("error", reject);
    document.head.append(script);
  });
}

/**
 * Ranks entries that contain every word. A match in the title counts more than one in the text, and
 * a short title more than a long one.
 */
function rank(entries, words) {
  return entries
    .map((entry) => {
      const title = entry.title.toLowerCase();
      const hits = words.map((word) =>
        title.includes(word) ? 10 : entry.low.includes(word) ? 1 : 0,
      );
      return { entry, score: hits.includes(0) ? 0 : hits.reduce((sum, hit) => sum + hit, 0) };
    })
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.entry.title.length - b.entry.title.length)
    .slice(0, 12);
}

function show(results) {
  found.replaceChildren(
    ...results.map(({ entry }) => {
      const link = document.createElement("a");
      link.href = base + entry.url;
      link.append(entry.title);
      const where = document.createElement("small");
      where.append(`${entry.page}: ${entry.text.slice(0, 110)}`);
      link.append(where);
      const item = document.createElement("li");
      item.append(link);
      return item;
    }),
  );
  document.querySelector("#count").textContent = field.value ? `${results.length} found` : "";
}

field.addEventListener("input", async () => {
  const asked = field.value;
  index ??= read();
  const entries = await index;
  if (asked !== field.value) return;
  const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
  show(words.length > 0 ? rank(entries, words) : []);
});
field.form.addEventListener("submit", (event) => {
  event.preventDefault();
  found.querySelector("a")?.click();
});
addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    field.value = "";
    show([]);
  }
  if (event.key === "/" && document.activeElement !== field) {
    event.preventDefault();
    field.focus();
  }
});

// Shows the current page in a menu that scrolls by itself.
const menu = document.querySelector("#menu");
const current = menu.querySelector("[aria-current]");
if (current) menu.scrollTop = current.offsetTop - menu.offsetTop - menu.clientHeight / 3;
