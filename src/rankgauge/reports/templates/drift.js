"use strict";
(() => {
  // Show the text of the question under the pointer; the arrow keys move through the clusters.
  const plane = document.getElementById("plane");
  const status = document.getElementById("point");
  const points = [...plane.querySelectorAll("circle, path")];
  let chosen = -1;

  const show = (index) => {
    points[chosen]?.classList.remove("chosen");
    chosen = index;
    points[index].classList.add("chosen");
    status.textContent = points[index].querySelector("title").textContent;
  };

  plane.addEventListener("pointerover", (event) => {
    const index = points.indexOf(event.target);
    if (index >= 0) show(index);
  });
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  plane.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    if (step === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const from = chosen < 0 && step < 0 ? 0 : chosen;
    show((from + step + points.length) % points.length);
  });

  // Open all details for printing.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((each) => { each.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((each) => { each.open = false; }));
})();
