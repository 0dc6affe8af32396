// The judging page. It works without this script, which adds keyboard shortcuts, loads the next task
// without reloading the page, and keeps unsent answers in an outbox, so that none is lost if the
// connection or the server fails.
"use strict";
(() => {
  const root = document.documentElement;
  const find = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const bar = find("#unsaved");
  if (!bar) return;
  const judge = bar.dataset.judge;
  const GUARD_MS = 250; // choices are ignored so soon after a new task: a key may still be held down
  const TIMEOUT_MS = 40_000;
  let opened = performance.now(), hiddenSince = null, away = 0;
  let sending = false, retryTimer = null, failures = 0;

  // ---- browser storage, for settings and unsent answers; if it is unavailable, defaults are used
  const loadItem = (key, fallback) => {
    try { return JSON.parse(localStorage.getItem(key)) ?? fallback; } catch { return fallback; }
  };
  const storeItem = (key, value) => {
    try { localStorage.setItem(key, JSON.stringify(value)); return true; } catch { return false; }
  };

  // ---- the outbox: answers that the server has not confirmed
  const OUTBOX_KEY = `rankgauge-outbox-${judge}`;
  let inMemory = []; // the outbox, if storage is unavailable
  const outbox = () => loadItem(OUTBOX_KEY, inMemory);
  const setOutbox = (entries) => { inMemory = entries; storeItem(OUTBOX_KEY, entries); showUnsaved(); };
  const removeEntry = (id) => setOutbox(outbox().filter((entry) => entry.id !== id));

  function showUnsaved() {
    const entries = outbox(), refused = entries.find((entry) => entry.refused)?.refused;
    bar.hidden = !entries.length || !(failures || refused);
    find("strong", bar).textContent = `${entries.length} unsaved`;
    find("span", bar).textContent = refused ? `The server refused your answer: ${refused}`
      : "The server did not respond. Your answer is kept in this browser and will be sent again.";
    find("[data-act=discard]", bar).hidden = !refused;
  }

  const announce = (text) => { find("#status").textContent = text; };

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
    // A new answer to a task replaces the unconfirmed one.
    setOutbox([...outbox().filter((entry) => entry.url !== url), { id, url, body: fields.toString() }]);
    send();
  }

  /** Send all entries again, including refused ones: the judge may have signed in since then. */
  function retry() {
    setOutbox(outbox().map(({ refused, ...entry }) => entry));
    send();
  }

  async function send() {
    clearTimeout(retryTimer);
    const entry = outbox().find((each) => !each.refused);
    if (sending || !entry) return;
    sending = true;
    let response = null, page = "";
    try {
      response = await fetch(entry.url, {
        method: "POST", body: entry.body, signal: AbortSignal.timeout(TIMEOUT_MS),
        headers: {
          "Content-Type": "application/x-www-form-urlencoded", "X-Rankgauge": "script",
          // The token of this session, even if the answer was given in an earlier one.
          "X-CSRF-Token": bar.dataset.csrf,
        },
      });
      page = await response.text();
    } catch { response = null; }
    sending = false;
    if (response?.ok) {
      failures = 0;
      removeEntry(entry.id);
      announce(entry.body.includes("pick=undone") ? "Undone" : "Saved");
      if (currentTask() === taskOf(entry.url) || entry.body.includes("pick=undone")) {
        showPage(page, response.headers.get("X-Location"), true);
      }
      send();
      return;
    }
    if (response && response.status < 500 && ![408, 429].includes(response.status)) {
      const refused = errorText(page);
      setOutbox(outbox().map((each) => each.id === entry.id ? { ...each, refused } : each));
    } else failures += 1;
    showUnsaved();
    announce(find("strong", bar).textContent);
    retryTimer = setTimeout(send, Math.min(15_000, 500 * 2 ** Math.min(failures, 6)));
  }

  function errorText(page) {
    const parsed = new DOMParser().parseFromString(page, "text/html");
    return all("h1, .fix", parsed).map((part) => part.textContent.trim()).join(" ") || "unknown";
  }

  const taskOf = (url) => url.split("/").pop();
  const currentTask = () => find("[data-task]")?.dataset.task ?? "";

  // ---- pages
  /** Show a page from the server without a full page load. */
  function showPage(page, path, addToHistory) {
    const next = new DOMParser().parseFromString(page, "text/html");
    const [to, from] = [find("#page", next), find("#page")];
    if (!to || find("#unsaved", next)?.dataset.judge !== judge) { location.assign(path ?? "/judge"); return; }
    from.replaceWith(to);
    const [help, old] = [find("#help", next), find("#help")];
    if (help && old) { help.open = old.open; old.replaceWith(help); } else if (help) bar.before(help);
    else old?.remove();
    document.title = next.title;
    if (path && addToHistory && path !== location.pathname) history.pushState(null, "", path);
    preparePage();
    scrollTo(0, 0);
  }

  /** Prepare the current page. */
  function preparePage() {
    opened = performance.now();
    away = 0;
    hiddenSince = document.hidden ? opened : null;
    const guideline = find("#guideline");
    if (guideline && loadItem("rankgauge-guideline", 0) === guideline.dataset.version) guideline.open = false;
    const together = find("#together");
    if (together) together.checked = loadItem("rankgauge-together", false);
    showKeys();
    prepareRanking();
    find("h1")?.focus({ preventScroll: true });
  }

  function showKeys(on = loadItem("rankgauge-keys", true)) {
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
    if (fields.get("pick") === "undone" && outbox().some((entry) => taskOf(entry.url) === currentTask())) {
      enqueue(`/judge/${currentTask()}`, new URLSearchParams({ pick: "undone" })); // undo an unsent answer
      return;
    }
    if (sending || performance.now() - opened < GUARD_MS) return;
    if (hiddenSince !== null) away += performance.now() - hiddenSince;
    fields.set("seconds", ((performance.now() - opened - away) / 1000).toFixed(1));
    // On a phone, the guideline hides the documents: it is open at the first task, and when the judge opens it.
    const guideline = find("#guideline");
    if (guideline && matchMedia("(max-width: 47.99rem)").matches) storeItem("rankgauge-guideline", guideline.dataset.version);
    all("button[name=pick]").forEach((button) => button.toggleAttribute("aria-pressed", false));
    if (submitter?.name === "pick") submitter.setAttribute("aria-pressed", "true");
    enqueue(path, fields);
  });

  document.addEventListener("click", (event) => {
    // The second click of a double click would answer the next task.
    if (event.detail > 1 && event.target.closest("button[name=pick], button[form=undo]")) event.preventDefault();
    const act = event.target.closest("[data-act]")?.dataset.act;
    if (act === "retry") retry();
    if (act === "discard") setOutbox(outbox().filter((entry) => !entry.refused));
    const button = event.target.closest("[data-rank-button]");
    if (button) toggleRanked(button.dataset.rankButton);
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
    const field = event.target.closest("input, textarea, select, [contenteditable]");
    if (field && !["radio", "checkbox"].includes(field.type)) return;
    const key = event.key.toLowerCase();
    if (key === "enter" && event.target.closest("button, a, summary, input")) return;
    if (!loadItem("rankgauge-keys", true)) return;
    const target = find(`[data-key="${CSS.escape(key)}"]`);
    if (!target || target.disabled) return;
    event.preventDefault();
    if (target.type === "radio" && target.checked) find("input[name=reason][value='']").checked = true;
    else target.click();
  });

  document.addEventListener("toggle", (event) => {
    if (event.target.id === "help" && event.target.open) event.target.scrollIntoView({ block: "nearest" });
    if (event.target.id === "guideline") {
      storeItem("rankgauge-guideline", event.target.open ? 0 : event.target.dataset.version);
    }
  }, true);

  document.addEventListener("change", ({ target }) => {
    if (target.id === "keys") { storeItem("rankgauge-keys", target.checked); showKeys(target.checked); }
    if (target.id === "together") storeItem("rankgauge-together", target.checked);
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
  addEventListener("storage", showUnsaved);
  addEventListener("popstate", async () => {
    try {
      const response = await fetch(location.href);
      showPage(await response.text(), location.pathname, false);
    } catch { location.reload(); }
  });
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

  // ---- ranking: the form sends its select boxes, which the buttons and the list change
  const selects = () => all("select[data-document]");
  const rankedDocuments = () => selects().filter((each) => each.value)
    .sort((a, b) => a.value - b.value).map((each) => each.dataset.document);
  const maxRank = () => Number(find("#ranking").dataset.maxRank);

  function setRanking(numbers) {
    for (const each of selects()) {
      const index = numbers.indexOf(each.dataset.document);
      each.value = index >= 0 && index < maxRank() ? String(index + 1) : "";
    }
    drawRanking();
  }

  function toggleRanked(number) {
    const ranked = rankedDocuments();
    if (ranked.includes(number)) setRanking(ranked.filter((each) => each !== number));
    else if (ranked.length < maxRank()) setRanking([...ranked, number]);
  }

  function drawRanking() {
    const list = find("#ranking"), ranked = rankedDocuments();
    list.replaceChildren(...ranked.map((number, index) => {
      const item = document.createElement("li"), button = document.createElement("button");
      button.type = "button";
      button.draggable = true;
      button.dataset.rankButton = number;
      button.setAttribute("aria-label", `Rank ${index + 1}: document ${number}. Remove`);
      button.textContent = `${index + 1}. Document ${number}`;
      item.append(button);
      return item;
    }));
    for (const button of all("article [data-rank-button]")) {
      const index = ranked.indexOf(button.dataset.rankButton);
      button.setAttribute("aria-pressed", String(index >= 0));
      find("span", button).textContent = index >= 0 ? `Rank ${index + 1}` : "Rank next";
    }
    if (ranked.length) announce(`Ranked documents: ${ranked.join(", ")}`);
    const save = find("button[value=ranking]");
    save.disabled = !ranked.length;
  }

  function prepareRanking() {
    if (!find("#ranking")) return;
    for (const select of selects()) {
      const number = select.dataset.document, button = document.createElement("button");
      button.type = "button";
      button.className = "quiet rank-button";
      button.dataset.rankButton = number;
      if (Number(number) < 10) button.dataset.key = number;
      const key = document.createElement("kbd");
      key.className = "key";
      key.ariaHidden = "true";
      key.textContent = number;
      button.append(...(Number(number) < 10 ? [key] : []), document.createElement("span"));
      select.closest("header").append(button);
      select.closest("header").draggable = true;
      select.closest("header").dataset.dragDocument = number;
    }
    drawRanking();
  }

  document.addEventListener("dragstart", (event) => {
    const from = event.target.closest?.("[data-drag-document], #ranking [data-rank-button]");
    if (from) event.dataTransfer.setData("text/plain", from.dataset.dragDocument ?? from.dataset.rankButton);
  });
  document.addEventListener("dragover", (event) => {
    const list = event.target.closest?.("#ranking");
    if (list) event.preventDefault();
    find("#ranking")?.classList.toggle("over", Boolean(list));
  });
  document.addEventListener("drop", (event) => {
    const list = event.target.closest?.("#ranking"), number = event.dataTransfer.getData("text/plain");
    find("#ranking")?.classList.remove("over");
    if (!list || !selects().some((each) => each.dataset.document === number)) return;
    event.preventDefault();
    const rest = rankedDocuments().filter((each) => each !== number);
    const before = all("#ranking button").filter((button) => button.dataset.rankButton !== number)
      .findIndex((button) => event.clientX < button.getBoundingClientRect().right - button.offsetWidth / 2
        && event.clientY < button.getBoundingClientRect().bottom);
    rest.splice(before < 0 ? rest.length : before, 0, number);
    setRanking(rest);
  });

  root.classList.add("script");
  preparePage();
  showUnsaved();
  if (outbox().length) { failures = 1; retry(); }
})();
