"use strict";
(() => {
  const { page_size: pageSize, tables, data } = JSON.parse(document.getElementById("data").textContent);
  const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  const signs = { "below zero": (x) => x < 0, "zero": (x) => x === 0, "above zero": (x) => x > 0 };

  /* User text only ever becomes text, never markup. */
  function make(name, properties = {}, ...children) {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  }

  function show(cell, column) {
    if (column.kind !== "number") return String(cell);
    if (cell === null) return "";
    if (column.probability && cell > 0.99) return "> 0.99";
    if (column.probability && cell < 0.01) return "< 0.01";
    if (column.decimals === null) return cell.toExponential(3);
    return cell.toFixed(column.decimals);
  }

  function makeCell(cell, column, row) {
    if (column.kind === "image") {
      return make("td", {}, make("img", { src: `data:image/png;base64,${cell}`, alt: `image of row ${row[0]}` }));
    }
    const words = show(cell, column);
    const classes = column.kind === "number" ? `number${column.sign && cell < 0 ? " low" : ""}` : "";
    return make("td", { className: classes, dir: column.kind === "text" ? "auto" : "", title: words.length > 30 ? words : "" }, words);
  }

  function compare(a, b, column) {
    return column.kind === "number" ? a - b : collator.compare(a, b);
  }

  class LiveTable {
    constructor(root, table) {
      this.root = root;
      this.table = table;
      this.size = pageSize;
      this.page = 0;
      this.sorted = null;
      this.downwards = false;
      this.words = "";
      this.filters = new Map();
      this.hidden = new Set(table.columns.flatMap((column, place) => (column.extra ? [place] : [])));
      this.makeHeads();
      if (this.hidden.size) this.makeChooser();
      if (table.rows.length > 10 || table.columns.some((column) => column.choices)) this.makeTools();
      this.hideColumns();
    }

    makeHeads() {
      this.heads = [...this.root.querySelectorAll("th")];
      this.heads.forEach((head, place) => {
        if (this.table.columns[place].kind === "image") return;
        const button = make("button", { type: "button", onclick: () => this.sortBy(place) }, ...head.childNodes);
        head.setAttribute("aria-sort", "none");
        head.replaceChildren(button);
      });
    }

    /* Columns to show or hide; without JavaScript all of them are shown. */
    makeChooser() {
      const words = make("summary");
      const label = () => {
        words.textContent = `Columns: ${this.table.columns.length - this.hidden.size} of ${this.table.columns.length} shown`;
        all.textContent = this.hidden.size ? "Show all" : "Show fewer";
      };
      const choose = (place, shown) => {
        if (shown) this.hidden.delete(place); else this.hidden.add(place);
        label();
        this.hideColumns();
      };
      const boxes = this.table.columns.map((column, place) => make("input", {
        type: "checkbox", checked: !this.hidden.has(place), onchange: (event) => choose(place, event.target.checked),
      }));
      const all = make("button", { type: "button", className: "button", onclick: () => {
        const everything = this.hidden.size > 0;
        boxes.forEach((box, place) => { box.checked = everything || !this.table.columns[place].extra; choose(place, box.checked); });
      } });
      const labels = boxes.map((box, place) => make("label", {}, box, this.table.columns[place].name));
      this.chooser = make("details", { className: "columns" }, words, make("div", {}, all, ...labels));
      this.root.before(this.chooser);
      label();
    }

    hideColumns() {
      for (const line of this.root.querySelectorAll("tr")) {
        [...line.cells].forEach((cell, place) => { cell.hidden = this.hidden.has(place); });
      }
    }

    makeTools() {
      const { columns, rows } = this.table;
      const search = make("input", { type: "search", oninput: () => this.change({ words: search.value.trim().toLowerCase() }) });
      const tools = [make("label", {}, "Search", search)];
      columns.forEach((column, place) => {
        if (column.sign) tools.push(this.makeFilter(column, place, Object.keys(signs), (name) => signs[name]));
        if (column.choices) tools.push(this.makeFilter(column, place, column.choices, (name) => (cell) => decisionOf(cell) === name));
        const choices = column.choice ? [...new Set(rows.map((row) => row[place]))] : [];
        if (choices.length > 1 && choices.length <= 50) {
          choices.sort((a, b) => compare(a, b, column));
          tools.push(this.makeFilter(column, place, choices.map((x) => show(x, column)), (name) => (x) => show(x, column) === name));
        }
      });
      this.found = make("span", { className: "found" });
      this.found.setAttribute("aria-live", "polite");
      this.tools = make("div", { className: "tools" }, ...tools, this.found);
      this.root.before(this.tools);
      if (rows.length > pageSize) this.makePager();
      this.draw();
    }

    makeFilter(column, place, names, test) {
      const select = make("select", {}, make("option", { value: "-1" }, "all"),
        ...names.map((name, i) => make("option", { value: i }, name || "(empty)")));
      select.onchange = () => {
        this.filters.delete(place);
        if (select.value !== "-1") this.filters.set(place, test(names[select.value]));
        this.change({});
      };
      return make("label", {}, column.name, select);
    }

    makePager() {
      const turn = (step) => this.change({ page: this.page + step });
      this.back = make("button", { type: "button", className: "button", onclick: () => turn(-1) }, "Previous");
      this.next = make("button", { type: "button", className: "button", onclick: () => turn(1) }, "Next");
      const size = make("select", {}, ...[1, 2, 4].map((times) => times * pageSize).map((n) => make("option", { value: n }, n)));
      size.onchange = () => this.change({ size: Number(size.value) });
      this.root.after(make("div", { className: "tools" }, this.back, this.next, make("label", {}, "Rows per page", size)));
    }

    sortBy(place) {
      const downwards = this.sorted === place && !this.downwards;
      this.heads.forEach((head, i) => {
        if (head.hasAttribute("aria-sort")) head.setAttribute("aria-sort", i !== place ? "none" : downwards ? "descending" : "ascending");
      });
      this.change({ sorted: place, downwards });
    }

    change(settings) {
      Object.assign(this, { page: 0 }, settings);
      this.draw();
    }

    matches(row) {
      for (const [place, test] of this.filters) if (!test(row[place])) return false;
      if (!this.words) return true;
      return row.some((cell, i) => this.table.columns[i].kind !== "image" && show(cell, this.table.columns[i]).toLowerCase().includes(this.words));
    }

    chosen() {
      const rows = this.table.rows.filter((row) => this.matches(row));
      if (this.sorted === null) return rows;
      const place = this.sorted, column = this.table.columns[place], sign = this.downwards ? -1 : 1;
      const missing = (cell) => cell === null || cell === "";
      return rows.sort((a, b) => missing(a[place]) - missing(b[place]) || (missing(a[place]) ? 0 : sign * compare(a[place], b[place], column)));
    }

    draw() {
      const rows = this.chosen(), first = this.page * this.size, shown = rows.slice(first, first + this.size);
      const lines = shown.map((row) => make("tr", {}, ...row.map((cell, i) => makeCell(cell, this.table.columns[i], row))));
      this.root.querySelector("tbody").replaceChildren(...lines);
      this.hideColumns();
      if (this.onDraw) this.onDraw(lines, shown, rows);
      if (this.found) this.found.textContent = rows.length ? `${first + 1}–${first + shown.length} of ${rows.length}` : "nothing found";
      if (!this.back) return;
      this.back.disabled = first === 0;
      this.next.disabled = first + this.size >= rows.length;
    }
  }

  const live = [...document.querySelectorAll("[data-table]")].map((root) => new LiveTable(root, tables[root.closest("main > section").id][root.dataset.table]));

  const list = live.find(({ table }) => data.suspects && table === tables.suspects.suspects);
  if (list) startBench({ make, show }, list, data.suspects);

  /* A link to a section that is folded opens it. */
  const unfold = () => {
    const fold = document.querySelector(`.folded[id="${CSS.escape(location.hash.slice(1))}"] > details`);
    if (fold) fold.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();

  const theme = document.getElementById("theme");
  const isDark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const label = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.onclick = () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; label(); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
  theme.hidden = false;
  label();

  /* Paper has no buttons: what is folded opens, and tables that fit are printed whole. */
  let restore = [];
  addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details:not([open])")) {
      fold.open = true;
      restore.push(() => { fold.open = false; });
    }
    for (const table of live.filter(({ table: { rows } }) => rows.length <= 100)) {
      const { page, size } = table;
      table.change({ size: 100 });
      restore.push(() => table.change({ page, size }));
    }
  });
  addEventListener("afterprint", () => { restore.forEach((step) => step()); restore = []; });
})();
