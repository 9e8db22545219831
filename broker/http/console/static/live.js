// Refreshes the tiles of the first page. Without it, the page has the numbers of its loading.
"use strict";

const EVERY_MS = 5000;
const button = document.getElementById("pause");
const text = document.getElementById("live");
let timer = null;

async function refresh() {
  try {
    const response = await fetch("/console/live", { redirect: "error" });
    if (!response.ok) throw new Error(String(response.status));
    const { tiles } = await response.json();
    for (const [key, value] of Object.entries(tiles)) {
      const tile = document.querySelector(`[data-tile="${CSS.escape(key)}"]`);
      if (tile !== null) tile.textContent = value;
    }
    text.textContent = "The numbers are renewed every five seconds.";
  } catch {
    text.textContent = "The broker does not answer, or the login has ended: reload the page.";
  }
}

function run(isRunning) {
  clearInterval(timer);
  timer = isRunning ? setInterval(refresh, EVERY_MS) : null;
  button.setAttribute("aria-pressed", String(!isRunning));
  text.textContent = isRunning ? "The numbers are renewed every five seconds." : "The numbers stand still.";
}

button.hidden = false;
button.addEventListener("click", () => run(timer === null));
run(true);
