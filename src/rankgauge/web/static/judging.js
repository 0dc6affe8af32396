// The judging page. Everything works without this script: it adds keys, loads the next task without
// reloading the page, and keeps an outbox, so that no answer is lost if the connection or server fails.
"use strict";
(() => {
  const root = document.documentElement;
  const find = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const bar = find("#unsaved");
  if (!bar) return;
  const judge = bar.dataset.judge;
  const GUARD = 250; // ms after a new task in which choices are ignored: the key may be held down
  const PATIENCE = 40_000;
  let opened = performance.now(), hiddenSince = null, away = 0;
  let sending = false, waiting = null, failures = 0;

  // ---- settings in the storage of this browser; defaults without storage
  const recall = (key, otherwise) => {
    try { return JSON.parse(localStorage.getItem(key)) ?? otherwise; } catch { return otherwise; }
  };
  const remember = (key, value) => {
    try { localStorage.setItem(key, JSON.stringify(value)); return true; } catch { return false; }
  };

  // ---- the outbox: answers that the server has not confirmed, in this browser's storage
  const BOX = `rankgauge-outbox-${judge}`;
  let kept = []; // used if there is no storage
  const outbox = () => recall(BOX, kept);
  const keep = (entries) => { kept = entries; remember(BOX, entries); show(); };
  const drop = (id) => keep(outbox().filter((entry) => entry.id !== id));

  function show() {
    const entries = outbox(), refused = entries.find((entry) => entry.refused)?.refused;
    bar.hidden = !entries.length || !(failures || refused);
    find("strong", bar).textContent = `${entries.length} unsaved`;
    find("span", bar).textContent = refused ? `The server refused your answer: ${refused}`
      : "The server did not respond. Your answer is kept in this browser and will be sent again.";
    find("[data-act=discard]", bar).hidden = !refused;
  }

  const say = (text) => { find("#status").textContent = text; };

  function uuid() {
    if (crypto.randomUUID) return crypto.randomUUID();
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    bytes[6] = (bytes[6] & 15) | 64;
    bytes[8] = (bytes[8] & 63) | 128;
    const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  }

  function enqueue(url, fields) {
    const id = uuid();
    fields.set("choice", id);
    // Another answer to the same task replaces an unconfirmed answer.
    keep([...outbox().filter((entry) => entry.url !== url), { id, url, body: fields.toString() }]);
    send();
  }

  /** Send all entries again, refused entries too: the judge may have signed in since. */
  function retry() {
    keep(outbox().map(({ refused, ...entry }) => entry));
    send();
  }

  async function send() {
    clearTimeout(waiting);
    const entry = outbox().find((each) => !each.refused);
    if (sending || !entry) return;
    sending = true;
    let response = null, page = "";
    try {
      response = await fetch(entry.url, {
        method: "POST", body: entry.body, signal: AbortSignal.timeout(PATIENCE),
        headers: {
          "Content-Type": "application/x-www-form-urlencoded", "X-Rankgauge": "script",
          // The token of this session, even if the answer is from an earlier session.
          "X-CSRF-Token": bar.dataset.csrf,
        },
      });
      page = await response.text();
    } catch { response = null; }
    sending = false;
    if (response?.ok) {
      failures = 0;
      drop(entry.id);
      say(entry.body.includes("pick=undone") ? "Undone" : "Saved");
      if (here() === task(entry.url) || entry.body.includes("pick=undone")) {
        turn(page, response.headers.get("X-Location"), true);
      }
      send();
      return;
    }
    if (response && response.status < 500 && ![408, 429].includes(response.status)) {
      const refused = reason(page);
      keep(outbox().map((each) => each.id === entry.id ? { ...each, refused } : each));
    } else failures += 1;
    show();
    say(find("strong", bar).textContent);
    waiting = setTimeout(send, Math.min(15_000, 500 * 2 ** Math.min(failures, 6)));
  }

  function reason(page) {
    const parsed = new DOMParser().parseFromString(page, "text/html");
    return all("h1, .fix", parsed).map((part) => part.textContent.trim()).join(" ") || "unknown";
  }

  const task = (url) => url.split("/").pop();
  const here = () => find("[data-task]")?.dataset.task ?? "";

  // ---- pages
  /** Show a page of the server without a full page load. */
  function turn(page, path, add) {
    const next = new DOMParser().parseFromString(page, "text/html");
    const [to, from] = [find("#page", next), find("#page")];
    if (!to || find("#unsaved", next)?.dataset.judge !== judge) { location.assign(path ?? "/judge"); return; }
    from.replaceWith(to);
    const [help, old] = [find("#help", next), find("#help")];
    if (help && old) { help.open = old.open; old.replaceWith(help); } else if (help) bar.before(help);
    else old?.remove();
    document.title = next.title;
    if (path && add && path !== location.pathname) history.pushState(null, "", path);
    begin();
    scrollTo(0, 0);
  }

  /** Prepare the current page. */
  function begin() {
    opened = performance.now();
    away = 0;
    hiddenSince = document.hidden ? opened : null;
    const guideline = find("#guideline");
    if (guideline && recall("rankgauge-guideline", 0) === guideline.dataset.version) guideline.open = false;
    const together = find("#together");
    if (together) together.checked = recall("rankgauge-together", false);
    keys();
    ranking();
    find("h1")?.focus({ preventScroll: true });
  }

  function keys(on = recall("rankgauge-keys", true)) {
    root.classList.toggle("keys", on);
    const box = find("#keys");
    if (box) box.checked = on;
    return on;
  }

  // ---- events
  document.addEventListener("submit", (event) => {
    const { target: form, submitter } = event;
    const path = form.getAttribute("action") ?? "";
    if (form.method !== "post" || !/^\/judge\/[^/]+$/.test(path)) return;
    event.preventDefault();
    const fields = new URLSearchParams(new FormData(form));
    if (submitter?.name) fields.set(submitter.name, submitter.value);
    if (fields.get("pick") === "undone" && outbox().some((entry) => task(entry.url) === here())) {
      enqueue(`/judge/${here()}`, new URLSearchParams({ pick: "undone" })); // undo an answer that was not sent yet
      return;
    }
    if (sending || performance.now() - opened < GUARD) return;
    if (hiddenSince !== null) away += performance.now() - hiddenSince;
    fields.set("seconds", ((performance.now() - opened - away) / 1000).toFixed(1));
    all("button[name=pick]").forEach((button) => button.toggleAttribute("aria-pressed", false));
    if (submitter?.name === "pick") submitter.setAttribute("aria-pressed", "true");
    enqueue(path, fields);
  });

  document.addEventListener("click", (event) => {
    // The second click of a double click would answer the next task.
    if (event.detail > 1 && event.target.closest("button[name=pick], button[form=undo]")) event.preventDefault();
    const act = event.target.closest("[data-act]")?.dataset.act;
    if (act === "retry") retry();
    if (act === "discard") keep(outbox().filter((entry) => !entry.refused));
    const place = event.target.closest("[data-place-button]");
    if (place) toggle(place.dataset.placeButton);
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
    const field = event.target.closest("input, textarea, select, [contenteditable]");
    if (field && !["radio", "checkbox"].includes(field.type)) return;
    const key = event.key.toLowerCase();
    if (key === "enter" && event.target.closest("button, a, summary, input")) return;
    if (!recall("rankgauge-keys", true)) return;
    const target = find(`[data-key="${CSS.escape(key)}"]`);
    if (!target || target.disabled) return;
    event.preventDefault();
    if (target.type === "radio" && target.checked) find("input[name=reason][value='']").checked = true;
    else target.click();
  });

  document.addEventListener("toggle", (event) => {
    if (event.target.id === "help" && event.target.open) event.target.scrollIntoView({ block: "nearest" });
    if (event.target.id === "guideline") {
      remember("rankgauge-guideline", event.target.open ? 0 : event.target.dataset.version);
    }
  }, true);

  document.addEventListener("change", ({ target }) => {
    if (target.id === "keys") { remember("rankgauge-keys", target.checked); keys(target.checked); }
    if (target.id === "together") remember("rankgauge-together", target.checked);
  });

  // Documents scroll together in proportion, because they differ in length.
  let leader = null, release = null;
  document.addEventListener("scroll", ({ target }) => {
    if (!target.classList?.contains("pane") || !find("#together")?.checked) return;
    if (leader !== null && leader !== target) return;
    leader = target;
    clearTimeout(release);
    release = setTimeout(() => { leader = null; }, 120);
    const share = target.scrollTop / Math.max(1, target.scrollHeight - target.clientHeight);
    for (const pane of all(".pane")) {
      if (pane !== target) pane.scrollTop = share * (pane.scrollHeight - pane.clientHeight);
    }
  }, true);

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { hiddenSince = performance.now(); return; }
    if (hiddenSince !== null) away += performance.now() - hiddenSince;
    hiddenSince = null;
    send();
  });
  addEventListener("online", send);
  addEventListener("storage", show);
  addEventListener("popstate", async () => {
    try {
      const response = await fetch(location.href);
      turn(await response.text(), location.pathname, false);
    } catch { location.reload(); }
  });
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

  // ---- ranking: the selects of the form are sent; buttons and the list change them
  const selects = () => all("select[data-place]");
  const order = () => selects().filter((each) => each.value)
    .sort((a, b) => a.value - b.value).map((each) => each.dataset.place);
  const most = () => Number(find("#ranking").dataset.places);

  function arrange(numbers) {
    for (const each of selects()) {
      const place = numbers.indexOf(each.dataset.place);
      each.value = place >= 0 && place < most() ? String(place + 1) : "";
    }
    draw();
  }

  function toggle(number) {
    const placed = order();
    if (placed.includes(number)) arrange(placed.filter((each) => each !== number));
    else if (placed.length < most()) arrange([...placed, number]);
  }

  function draw() {
    const list = find("#ranking"), placed = order();
    list.replaceChildren(...placed.map((number, index) => {
      const item = document.createElement("li"), button = document.createElement("button");
      button.type = "button";
      button.draggable = true;
      button.dataset.placeButton = number;
      button.setAttribute("aria-label", `Place ${index + 1}: document ${number}. Remove`);
      button.textContent = `${index + 1}. Document ${number}`;
      item.append(button);
      return item;
    }));
    for (const button of all("article [data-place-button]")) {
      const place = placed.indexOf(button.dataset.placeButton);
      button.setAttribute("aria-pressed", String(place >= 0));
      find("span", button).textContent = place >= 0 ? `Place ${place + 1}` : "Place next";
    }
    if (placed.length) say(`Placed: ${placed.join(", ")}`);
    const save = find("button[value=ranking]");
    save.disabled = !placed.length;
  }

  function ranking() {
    if (!find("#ranking")) return;
    for (const select of selects()) {
      const number = select.dataset.place, button = document.createElement("button");
      button.type = "button";
      button.className = "quiet place-button";
      button.dataset.placeButton = number;
      if (Number(number) < 10) button.dataset.key = number;
      const key = document.createElement("kbd");
      key.className = "key";
      key.ariaHidden = "true";
      key.textContent = number;
      button.append(...(Number(number) < 10 ? [key] : []), document.createElement("span"));
      select.closest("header").append(button);
      select.closest("header").draggable = true;
      select.closest("header").dataset.placeDrag = number;
    }
    draw();
  }

  document.addEventListener("dragstart", (event) => {
    const from = event.target.closest?.("[data-place-drag], #ranking [data-place-button]");
    if (from) event.dataTransfer.setData("text/plain", from.dataset.placeDrag ?? from.dataset.placeButton);
  });
  document.addEventListener("dragover", (event) => {
    const list = event.target.closest?.("#ranking");
    if (list) event.preventDefault();
    find("#ranking")?.classList.toggle("over", Boolean(list));
  });
  document.addEventListener("drop", (event) => {
    const list = event.target.closest?.("#ranking"), number = event.dataTransfer.getData("text/plain");
    find("#ranking")?.classList.remove("over");
    if (!list || !selects().some((each) => each.dataset.place === number)) return;
    event.preventDefault();
    const rest = order().filter((each) => each !== number);
    const before = all("#ranking button").filter((button) => button.dataset.placeButton !== number)
      .findIndex((button) => event.clientX < button.getBoundingClientRect().right - button.offsetWidth / 2
        && event.clientY < button.getBoundingClientRect().bottom);
    rest.splice(before < 0 ? rest.length : before, 0, number);
    arrange(rest);
  });

  root.classList.add("script");
  begin();
  show();
  if (outbox().length) { failures = 1; retry(); }
})();
