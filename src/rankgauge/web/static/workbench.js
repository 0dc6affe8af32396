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
  const loadParts = (from) => from.querySelectorAll("[data-part]").forEach(load);
  loadParts(document);

  // A part that changes by itself.
  setInterval(async () => {
    const part = find("[data-again]");
    if (!part || document.hidden || part.contains(document.activeElement)) return;
    try {
      const next = find(".part", parsed(await (await fetch(part.dataset.again)).text()));
      if (next) part.replaceWith(next);
    } catch { /* the next time */ }
  }, 2000);

  // ---- a query: documents and grades, one action after the other
  if (!find("#compared")) return;
  let last = Promise.resolve();
  const later = (action) => { last = last.then(action); };

  /** Replace the compared query by that of another address, or by the answer to a form. */
  async function show(address, options = {}) {
    try {
      const response = await fetch(address, options);
      const answer = parsed(await response.text()), next = find("#compared", answer);
      if (!next && !options.method) { location.assign(address); return; }
      if (!next) { say([...answer.querySelectorAll("h1, .fix")].map((part) => part.textContent.trim()).join(" ")); return; }
      const cause = find("#compared [data-part]");  // that of the same query
      find("#compared").replaceWith(next);
      if (cause.dataset.part === find("[data-part]", next).dataset.part) find("[data-part]", next).replaceWith(cause);
      else loadParts(next);
      history.pushState(null, "", response.url);
      find("[aria-current] a", next)?.focus({ preventScroll: true });
    } catch { say("The server did not respond. Reload the page to see whether the grade is stored."); }
  }
  function say(message) {
    const text = document.createElement("p");
    text.className = "note";
    text.textContent = message;
    find(".result").append(text);
  }
  const grade = (form, button) => {
    const body = new URLSearchParams(new FormData(form, button));
    return show(form.action, { method: "POST", body });
  };
  addEventListener("popstate", () => location.reload());
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-document]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    later(() => show(link.href));
  });
  document.addEventListener("submit", (event) => {
    if (event.target.id !== "grades") return;
    event.preventDefault();
    later(() => grade(event.target, event.submitter));
  });

  /** Do what a key says; the page may have changed since it was pressed. */
  const act = (key) => {
    const links = [...document.querySelectorAll("[data-document]")];
    const at = links.findIndex((link) => link.closest("[aria-current]"));
    const unjudged = [...links.slice(at + 1), ...links].find((link) => link.closest(".unjudged"));
    const open = { j: "[rel=next]", k: "[rel=prev]", e: "#steps" }[key];
    const link = { n: links[Math.min(at + 1, links.length - 1)], p: links[Math.max(at - 1, 0)], u: unjudged }[key];
    const button = /^[0-9]$/.test(key) ? find(`#grades button[value="${key}"]`) : null;
    if (open && find(open)) location.assign(find(open).href);
    return link ? show(link.href) : button ? grade(button.form, button) : undefined;
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    if (!/^[jknpue0-9]$/.test(event.key)) return;
    event.preventDefault();
    later(() => act(event.key));
  });
})();
