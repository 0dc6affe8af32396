// A voting form for pages of other sites: two answers in random order and five buttons. It adds no
// styles and sends no cookies. docs/howto/judge-as-a-team.md describes the required elements.
"use strict";
(() => {
  const server = new URL(document.currentScript.src).origin;
  const VOTES = [
    ["left", "The first answer is better"], ["right", "The second answer is better"],
    ["both good", "Both are good"], ["both bad", "Both are bad"], ["cannot tell", "Can't tell"],
  ];

  function uuid() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    bytes[6] = (bytes[6] & 15) | 64;
    bytes[8] = (bytes[8] & 63) | 128;
    const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  }

  function answer(element) {
    const { id, retrieval = "", prompt = "", model = "", sources = "[]" } = element.dataset;
    const found = { text: element.textContent.trim(), retrieval, prompt, model, sources: JSON.parse(sources) };
    return id ? { id, ...found } : found;
  }

  function prepare(form) {
    const answers = [...form.querySelectorAll("[data-answer]")];
    if (answers.length !== 2 || form.querySelector(".rankgauge-buttons")) return;
    if (crypto.getRandomValues(new Uint8Array(1))[0] & 1) {
      const marker = document.createComment("");
      answers[0].replaceWith(marker);
      answers[1].replaceWith(answers[0]);
      marker.replaceWith(answers[1]);
      answers.reverse();
    }
    const group = document.createElement("div"), status = document.createElement("p");
    group.className = "rankgauge-buttons";
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", form.dataset.label ?? "Which answer is better?");
    status.className = "rankgauge-status";
    status.setAttribute("role", "status");
    const vote = { id: uuid(), question: form.dataset.question };
    for (const [value, label] of VOTES) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.addEventListener("click", () => send(form, group, status, {
        ...vote, left: answer(answers[0]), right: answer(answers[1]), vote: value,
      }));
      group.append(button);
    }
    form.append(group, status);
  }

  async function send(form, group, status, vote) {
    const buttons = group.querySelectorAll("button");
    buttons.forEach((button) => { button.disabled = true; });
    for (let attempt = 0; attempt < 5; attempt += 1) {
      try {
        const response = await fetch(`${server}/api/votes`, {
          method: "POST", credentials: "omit", mode: "cors", body: JSON.stringify(vote),
          headers: { Authorization: `Bearer ${form.dataset.token}`, "Content-Type": "application/json" },
        });
        if (response.ok) {
          status.textContent = form.dataset.thanks ?? "Thank you.";
          form.dispatchEvent(new CustomEvent("rankgauge-vote", { bubbles: true, detail: vote }));
          return;
        }
        if (response.status < 500 && response.status !== 429) {
          console.error("rankgauge:", await response.json());
          break;
        }
      } catch { /* network error: send the same vote again */ }
      await new Promise((done) => { setTimeout(done, 1000 * 2 ** attempt); });
    }
    buttons.forEach((button) => { button.disabled = false; });
    status.textContent = "The vote was not saved. Please try again.";
  }

  const prepareAll = () => document.querySelectorAll(".rankgauge-vote").forEach(prepare);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", prepareAll);
  else prepareAll();
})();
