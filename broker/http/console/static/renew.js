// Renews the part of a page that shows numbers. Without it, the page has those of its loading.
"use strict";

const EVERY_MS = 5000;
const button = document.getElementById("pause");
const text = document.getElementById("live");
const part = document.getElementById("renewed");
let timer = null;

function tell(words) {
  if (text.textContent !== words) text.textContent = words;
}

async function renew() {
  if (part.contains(document.activeElement)) return; // a keyboard must not lose its place
  try {
    const response = await fetch(location.href, { redirect: "error" });
    if (!response.ok) throw new Error(String(response.status));
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const opened = [...part.querySelectorAll("details")].map((each) => each.open);
    part.replaceChildren(...page.getElementById("renewed").childNodes);
    part.querySelectorAll("details").forEach((each, at) => { each.open = opened[at] || false; });
    tell("Renewed every five seconds, but while the focus is in it.");
  } catch {
    tell("The broker does not answer, or the login has ended: reload the page.");
  }
}

function run(isRunning) {
  clearInterval(timer);
  timer = isRunning ? setInterval(renew, EVERY_MS) : null;
  button.setAttribute("aria-pressed", String(!isRunning));
  tell(isRunning ? "Renewed every five seconds, but while the focus is in it." : "The numbers stand still.");
}

button.hidden = false;
button.addEventListener("click", () => run(timer === null));
run(true);
