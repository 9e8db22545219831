// Refreshes the tiles of the first page. Without it, the page has the numbers of its loading.
"use strict";

const POLL_MS = 5000; // where streams do not pass, such as through some proxies
const TELL_MS = 5000; // a screen reader hears of new numbers at most this often
const button = document.getElementById("pause");
const text = document.getElementById("live");
let stream = null;
let timer = null;
let toldAt = 0;

function tell(words) {
  if (text.textContent !== words) text.textContent = words;
}

function show(tiles) {
  for (const [key, value] of Object.entries(tiles)) {
    const tile = document.querySelector(`[data-tile="${CSS.escape(key)}"]`);
    if (tile !== null) tile.textContent = value;
  }
}

async function poll() {
  try {
    const response = await fetch("/console/live", { redirect: "error" });
    if (!response.ok) throw new Error(String(response.status));
    show((await response.json()).tiles);
    tell("The numbers are renewed every five seconds.");
  } catch {
    tell("The broker does not answer, or the login has ended: reload the page.");
  }
}

function stop() {
  if (stream !== null) stream.close();
  clearInterval(timer);
  stream = timer = null;
}

function start() {
  stream = new EventSource("/console/live-events");
  stream.addEventListener("message", (event) => {
    show(JSON.parse(event.data).tiles);
    if (Date.now() - toldAt >= TELL_MS) {
      toldAt = Date.now();
      tell("The numbers are renewed every second.");
    }
  });
  stream.addEventListener("error", () => {
    // the browser connects again by itself, unless the response was no stream
    if (stream !== null && stream.readyState === EventSource.CLOSED) {
      stop();
      timer = setInterval(poll, POLL_MS);
      poll();
    }
  });
}

function run(isRunning) {
  stop();
  button.setAttribute("aria-pressed", String(!isRunning));
  tell(isRunning ? "The numbers are renewed every second." : "The numbers stand still.");
  if (isRunning) start();
}

button.hidden = false;
button.addEventListener("click", () => run(stream === null && timer === null));
run(true);
