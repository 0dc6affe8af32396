"use strict";
(() => {
  // The text of a question: under the pointer, or by the arrow keys, in the order of the clusters.
  const plane = document.getElementById("plane");
  const status = document.getElementById("point");
  const points = [...plane.querySelectorAll("circle, path")];
  let chosen = -1;

  const show = (place) => {
    points[chosen]?.classList.remove("chosen");
    chosen = place;
    points[place].classList.add("chosen");
    status.textContent = points[place].querySelector("title").textContent;
  };

  plane.addEventListener("pointerover", (event) => {
    const place = points.indexOf(event.target);
    if (place >= 0) show(place);
  });
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  plane.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    if (step === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const from = chosen < 0 && step < 0 ? 0 : chosen;
    show((from + step + points.length) % points.length);
  });

  // On paper everything is open.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((one) => { one.open = false; }));
})();
