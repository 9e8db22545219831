"use strict";
// The values of all lines at the time under the pointer, and lines that a click hides.
for (const figure of document.querySelectorAll("figure")) {
  const data = figure.querySelector("script");
  if (data === null) continue;
  const { places, times, texts } = JSON.parse(data.textContent);
  const svg = figure.querySelector("svg");
  const cursor = figure.querySelector(".cursor");
  const lines = figure.querySelectorAll(".line");
  const outputs = figure.querySelectorAll("output");
  const when = figure.querySelector(".when");

  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    let at = places.length - 1;
    while (at > 0 && places[at] > x) at -= 1;
    cursor.setAttribute("x1", places[at]);
    cursor.setAttribute("x2", places[at]);
    cursor.setAttribute("visibility", "visible");
    outputs.forEach((output, index) => { output.textContent = texts[index][at]; });
    when.textContent = times[at];
  });
  svg.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    outputs.forEach((output) => { output.textContent = ""; });
    when.textContent = "";
  });
  figure.querySelectorAll("button").forEach((button, index) => {
    button.addEventListener("click", () => {
      const hidden = button.getAttribute("aria-pressed") === "true";
      button.setAttribute("aria-pressed", String(!hidden));
      lines[index].setAttribute("visibility", hidden ? "hidden" : "visible");
    });
  });
}
