"use strict";

// Copy buttons are shown where there is a script to serve them.
for (const button of document.querySelectorAll("button.copy")) {
  const code = button.parentElement.querySelector("code");
  const label = button.firstChild.data;
  button.hidden = false;
  button.addEventListener("click", async () => {
    let done = "Copied";
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      getSelection().selectAllChildren(code);
      done = document.execCommand("copy") ? done : "Selected";
    }
    button.firstChild.data = done;
    setTimeout(() => { button.firstChild.data = label; }, 2000);
  });
}

// The search shows the facts that hold all words, and opens the sections that have some.
const search = document.getElementById("search");
if (search) {
  const found = document.getElementById("found");
  const sections = [...document.querySelectorAll("details.facts")].map((section) => ({
    section,
    lines: [...section.querySelectorAll("li")].map((line) => ({ line, text: line.textContent.toLowerCase() })),
  }));
  const total = sections.reduce((sum, s) => sum + s.lines.length, 0);
  search.parentElement.hidden = false;
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { section, lines } of sections) {
      let here = 0;
      for (const { line, text } of lines) {
        line.hidden = !words.every((word) => text.includes(word));
        here += line.hidden ? 0 : 1;
      }
      section.hidden = here === 0;
      section.open = words.length > 0 && here > 0;
      shown += here;
    }
    found.textContent = words.length > 0 ? `${shown} of ${total} lines shown` : "";
  });
}
