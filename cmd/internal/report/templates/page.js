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
