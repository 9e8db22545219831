"use strict";
// Filters the rows of the page, and decodes the frames of a case when its details are opened.
{
  const rows = [...document.querySelectorAll("tr[data-group]")];
  const form = document.querySelector("form");
  const shown = document.getElementById("shown");
  let conversations = null;

  const decoded = () => {
    const text = document.getElementById("frames").textContent.trim();
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).json();
  };

  const filter = () => {
    const { group, verdict, words } = form.elements;
    const wanted = words.value.trim().toLowerCase();
    let count = 0;
    for (const row of rows) {
      const fits =
        (group.value === "" || row.dataset.group === group.value) &&
        (verdict.value === "" || row.dataset.verdict.split(" ").includes(verdict.value)) &&
        (wanted === "" || row.textContent.toLowerCase().includes(wanted));
      row.hidden = !fits;
      count += fits ? 1 : 0;
    }
    shown.textContent = `${count} of ${rows.length} cases`;
  };

  const open = async (details) => {
    const place = details.querySelector("pre");
    if (place.textContent !== "") return;
    place.textContent = "…";
    try {
      conversations ??= decoded();
      const lines = (await conversations)[Number(details.dataset.frames)];
      place.textContent = lines.length > 0 ? lines.join("\n") : "no frames";
    } catch (error) {
      place.textContent = `The frames cannot be decoded here: ${error}`;
    }
  };

  // `toggle` does not bubble, so it is captured
  document.addEventListener(
    "toggle",
    (event) => {
      const details = event.target;
      if (details.open && details.dataset.frames !== undefined) open(details);
    },
    true,
  );
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-choose]");
    if (button === null) return;
    form.elements.group.value = button.dataset.choose;
    filter();
    form.scrollIntoView();
  });
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
}
