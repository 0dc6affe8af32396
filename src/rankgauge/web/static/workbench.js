// Pages of evaluations. They work without this script, which loads the parts that take longer than the page, adds
// keys, and changes documents and grades without a full page load.
"use strict";
(() => {
  const find = (selector, from = document) => from.querySelector(selector);
  const parsed = (text) => new DOMParser().parseFromString(text, "text/html");

  async function load(part) {
    const busy = find(".busy", part);
    busy.hidden = false;
    try {
      const response = await fetch(part.dataset.part, { headers: { Accept: "text/html" } });
      const next = parsed(await response.text());
      part.replaceChildren(...(find(".part", next) ?? find("main", next)).childNodes);
    } catch { busy.textContent = "The server did not respond. Reload the page."; }
  }
  document.querySelectorAll("[data-part]").forEach(load);

  // ---- a query: documents and grades
  let sending = false;
  /** Replace the compared query by that of another address, or by the answer to a form. */
  async function show(address, options = {}) {
    if (sending) return;
    sending = true;
    try {
      const response = await fetch(address, options);
      const answer = parsed(await response.text()), next = find("#compared", answer);
      if (!next && !options.method) { location.assign(address); return; }
      if (!next) { say([...answer.querySelectorAll("h1, .fix")].map((part) => part.textContent.trim()).join(" ")); return; }
      const scroll = find(".hits")?.scrollTop ?? 0;
      find("#compared").replaceWith(next);
      if (find(".hits")) find(".hits").scrollTop = scroll;
      history.pushState(null, "", response.url);
      find("[aria-current] a", next)?.focus({ preventScroll: true });
    } catch { say("The server did not respond: the grade is not stored. Try again."); } finally { sending = false; }
  }
  function say(message) {
    const text = document.createElement("p");
    text.className = "note";
    text.textContent = message;
    find(".result").append(text);
  }
  if (!find("#compared")) return;
  addEventListener("popstate", () => location.reload());
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-document]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    show(link.href);
  });
  document.addEventListener("submit", (event) => {
    if (event.target.id !== "grades") return;
    event.preventDefault();
    const fields = new URLSearchParams(new FormData(event.target, event.submitter));
    show(event.target.action, { method: "POST", body: fields });
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    const links = [...document.querySelectorAll("[data-document]")];
    const at = links.findIndex((link) => link.closest("[aria-current]"));
    const go = (link) => { if (link) { event.preventDefault(); link.click(); } };
    const key = event.key;
    if (key === "j") go(find("[rel=next]"));
    else if (key === "k") go(find("[rel=prev]"));
    else if (key === "n") go(links[Math.min(at + 1, links.length - 1)]);
    else if (key === "p") go(links[Math.max(at - 1, 0)]);
    else if (key === "u") go([...links.slice(at + 1), ...links].find((link) => link.closest(".unjudged")));
    else if (key === "e") go(find("#steps"));
    else if (/^[0-9]$/.test(key)) go(find(`#grades button[value="${key}"]`));
  });
})();
