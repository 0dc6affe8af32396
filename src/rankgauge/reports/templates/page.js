"use strict";
(() => {
  // ---- sorting: a button in each head, for the mouse and for the keyboard

  const byText = new Intl.Collator("en", { numeric: true }).compare;

  /** Orders values; what is missing comes last, whichever way. */
  const order = (down) => (one, other) => {
    if (one === null || other === null) return (one === null) - (other === null);
    const apart = typeof one === "number" && typeof other === "number"
      ? one - other : byText(String(one), String(other));
    return down ? -apart : apart;
  };

  /** Makes heads clickable; `sort(column, down)` does the work. */
  const sortable = (heads, sort) => {
    heads.forEach((head, column) => {
      if (head.tagName !== "TH") return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const first = head.classList.contains("number") ? "descending" : "ascending";
        const turned = before === "descending" ? "ascending" : "descending";
        const now = before === "none" ? first : turned;
        heads.forEach((other) => {
          if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
        });
        head.setAttribute("aria-sort", now);
        sort(column, now === "descending");
      });
    });
  };

  const valueOf = (cell) => {
    if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
    const text = cell.textContent.trim();
    if (text === "" || text === "–") return null;
    // "-0.163", "5/8/17" and "0.0012" are sorted by the number they begin with.
    const number = /^[+-]?[0-9.]+/.exec(text.replace("−", "-"));
    return number ? Number(number[0]) : text;
  };

  document.querySelectorAll("table[data-sortable]").forEach((table) => {
    const body = table.tBodies[0];
    sortable([...table.tHead.rows[0].cells], (column, down) => {
      const compare = order(down);
      const rows = [...body.rows].map((row) => [valueOf(row.cells[column]), row]);
      rows.sort((one, other) => compare(one[0], other[0]));
      body.append(...rows.map((pair) => pair[1]));
    });
  });

  // ---- query by query: all values are in the page, some of them are shown

  const data = JSON.parse(document.getElementById("values").textContent);
  const table = document.getElementById("by-query");
  const controls = document.getElementById("controls");
  const measure = document.getElementById("measure");
  const find = document.getElementById("find");
  const status = document.getElementById("shown");
  const more = document.getElementById("more");
  const step = 50;
  const texts = data.texts.length > 0;
  const sought = data.queries.map((id, n) => `${id} ${texts ? data.texts[n] : ""}`.toLowerCase());
  let ordered = data.order;
  let sorted = null;
  let most = step;

  /** What is in each column of a query, by the measure chosen. */
  const cellsOf = (query) => [
    data.queries[query],
    ...(texts ? [data.texts[query]] : []),
    ...data.values[measure.selectedIndex].map((column) => column[query]),
  ];

  /** A value is a whole number of units of its last digit. */
  const shown = (value) => {
    if (value === null) return "–";
    if (typeof value === "string") return value;
    const digits = data.digits[measure.selectedIndex];
    return (value / 10 ** digits).toFixed(digits);
  };

  const draw = () => {
    const words = find.value.trim().toLowerCase();
    const found = words === "" ? ordered : ordered.filter((query) => sought[query].includes(words));
    const rows = found.slice(0, most).map((query) => {
      const row = document.createElement("tr");
      cellsOf(query).forEach((value, column) => {
        const cell = document.createElement(column === 0 ? "th" : "td");
        if (column === 0) cell.scope = "row";
        if (typeof value !== "string") cell.className = "number";
        cell.textContent = shown(value);
        row.append(cell);
      });
      return row;
    });
    table.tBodies[0].replaceChildren(...rows);
    const all = data.queries.length;
    const message = found.length === all ? `${rows.length} of ${all} queries shown`
      : `${found.length} of ${all} queries found`;
    const part = found.length < all && rows.length < found.length ? `, ${rows.length} shown` : "";
    status.textContent = `${message}${part}.`;
    more.hidden = rows.length === found.length;
  };

  const resort = () => {
    if (sorted === null) return;
    const compare = order(sorted.down);
    const keyed = data.queries.map((_, query) => [cellsOf(query)[sorted.column], query]);
    keyed.sort((one, other) => compare(one[0], other[0]));
    ordered = keyed.map((pair) => pair[1]);
  };

  const start = (action) => () => { most = step; action(); draw(); };

  measure.append(...data.measures.map((name) => new Option(name, name, false, name === data.measure)));
  sortable([...table.tHead.rows[0].cells], (column, down) => start(() => {
    sorted = { column, down };
    resort();
  })());
  measure.addEventListener("change", start(resort));
  find.addEventListener("input", start(() => {}));
  more.firstElementChild.addEventListener("click", () => { most += step; draw(); });
  controls.hidden = false;
  draw();

  // ---- on paper everything is open

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((one) => { one.open = false; }));
})();
