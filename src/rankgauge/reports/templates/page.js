"use strict";
(() => {
  // ---- sorting: a button in each column header, for mouse and keyboard

  const compareText = new Intl.Collator("en", { numeric: true }).compare;

  /** Return a comparison function; missing values come last in both directions. */
  const comparison = (descending) => (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    const difference = typeof a === "number" && typeof b === "number"
      ? a - b : compareText(String(a), String(b));
    return descending ? -difference : difference;
  };

  /** Add a button to each column header; clicking it calls `sort(column, descending)`. */
  const addSortButtons = (heads, sort) => {
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
        const opposite = before === "descending" ? "ascending" : "descending";
        const now = before === "none" ? first : opposite;
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
    addSortButtons([...table.tHead.rows[0].cells], (column, descending) => {
      const compare = comparison(descending);
      const rows = [...body.rows].map((row) => [valueOf(row.cells[column]), row]);
      rows.sort((a, b) => compare(a[0], b[0]));
      body.append(...rows.map((pair) => pair[1]));
    });
  });

  // ---- results by query: the page contains all values, the table shows some of them

  const data = JSON.parse(document.getElementById("values").textContent);
  const table = document.getElementById("by-query");
  const controls = document.getElementById("controls");
  const measure = document.getElementById("measure");
  const find = document.getElementById("find");
  const status = document.getElementById("shown");
  const more = document.getElementById("more");
  const pageSize = 50;
  const texts = data.texts.length > 0;
  const searchTexts = data.queries.map((id, n) => `${id} ${texts ? data.texts[n] : ""}`.toLowerCase());
  const detailed = new Set(data.detailed);
  let ordered = data.order;
  let sorted = null;
  let limit = pageSize;

  /** Return the cells of a query for the selected measure. */
  const cellsOf = (query) => [
    data.queries[query],
    ...(texts ? [data.texts[query]] : []),
    ...data.values[measure.selectedIndex].map((column) => column[query]),
  ];

  /** Format a value, which is stored as a multiple of its last digit. */
  const formatted = (value) => {
    if (value === null) return "–";
    if (typeof value === "string") return value;
    const digits = data.digits[measure.selectedIndex];
    return (value / 10 ** digits).toFixed(digits);
  };

  const draw = () => {
    const words = find.value.trim().toLowerCase();
    const found = words === "" ? ordered : ordered.filter((query) => searchTexts[query].includes(words));
    const rows = found.slice(0, limit).map((query) => {
      const row = document.createElement("tr");
      cellsOf(query).forEach((value, column) => {
        const cell = document.createElement(column === 0 ? "th" : "td");
        if (column === 0) cell.scope = "row";
        if (typeof value !== "string") cell.className = "number";
        if (column === 0 && detailed.has(query)) {
          const link = document.createElement("a");
          link.href = `#query-${query}`;
          link.textContent = value;
          cell.append(link);
        } else cell.textContent = formatted(value);
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
    const compare = comparison(sorted.descending);
    const keyed = data.queries.map((_, query) => [cellsOf(query)[sorted.column], query]);
    keyed.sort((a, b) => compare(a[0], b[0]));
    ordered = keyed.map((pair) => pair[1]);
  };

  /** Return an event handler that acts, then draws the first page of the table. */
  const redraw = (action) => () => { limit = pageSize; action(); draw(); };

  measure.append(...data.measures.map((name) => new Option(name, name, false, name === data.measure)));
  addSortButtons([...table.tHead.rows[0].cells], (column, descending) => redraw(() => {
    sorted = { column, descending };
    resort();
  })());
  measure.addEventListener("change", redraw(resort));
  find.addEventListener("input", redraw(() => {}));
  more.firstElementChild.addEventListener("click", () => { limit += pageSize; draw(); });
  controls.hidden = false;
  draw();

  // ---- open all details for printing

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((each) => { each.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((each) => { each.open = false; }));
})();
