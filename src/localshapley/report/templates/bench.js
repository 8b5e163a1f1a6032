"use strict";

/* What the cell of a decision in the list of suspects says. */
const decisionOf = (cell) => (cell === "" ? "undecided" : cell.startsWith("→") ? "relabel" : cell);

/* Decisions as text: every cell as it is, quoted where it must be, and marked where a spreadsheet would run it. */
const csv = (() => {
  const number = /^[-+]?[\d.,]*\d[\d.,]*(e[-+]?\d+)?%?$/i;
  const guard = (cell) => (/^\s*[=+\-@\t\r][^]/.test(cell) && !number.test(cell.trim()) ? `'${cell}` : cell);
  const unguard = (cell) => (cell[0] === "'" && guard(cell.slice(1)) === cell ? cell.slice(1) : cell);
  const quote = (cell) => (/[",;\r\n\t]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  const write = (lines) => "\ufeff" + lines.map((line) => line.map((cell) => quote(guard(cell))).join(",") + "\r\n").join("");

  function read(text) {
    const lines = [[]], body = text.replace(/^\ufeff/, ""), header = body.split(/[\r\n]/, 1)[0];
    const [between] = [",", ";", "\t"].sort((a, b) => header.split(b).length - header.split(a).length);
    let cell = "", quoted = false;
    for (let i = 0; i < body.length; i++) {
      const sign = body[i];
      if (quoted && sign === '"' && body[i + 1] === '"') { cell += sign; i++; }
      else if (sign === '"' && (quoted || cell === "")) quoted = !quoted;
      else if (quoted || (sign !== between && sign !== "\n" && sign !== "\r")) cell += sign;
      else {
        lines.at(-1).push(cell);
        cell = "";
        if (sign === between) continue;
        if (sign === "\r" && body[i + 1] === "\n") i++;
        lines.push([]);
      }
    }
    lines.at(-1).push(cell);
    return lines.filter((line) => line.some((x) => x !== "")).map((line) => line.map(unguard));
  }
  return { read, write };
})();

/* The list of suspects as a place to work: one row at a time beside its nearest rows, and what is decided on it. */
function startBench({ make, show }, list, data) {
  const { columns, rows } = list.table;
  const place = columns.findIndex((column) => column.choices);
  const suspects = new Map(rows.map((row, i) => {
    const [name, label, suggested, contents, own, against, alike, far] = data.suspects[i];
    return [row, { row, name, label, suggested, contents, own, against, alike, far }];
  }));
  const owns = new Set([...suspects.values()].map((suspect) => suspect.own));
  const byName = new Map([...suspects.values()].map((suspect) => [suspect.name, suspect]));
  const words = { keep: "keep", relabel: "relabel", drop: "drop" };
  const { target } = data, what = data.numbers ? "number" : "label";
  const LONG = 40, FEW = data.columns.length > 20 ? 12 : 20;
  let choices = new Map(), current = rows[0], past = [], wide = false, chosen = rows;

  /* What was decided: by the name of a row, its decision, old label, new label and contents. */
  const store = {
    load() {
      try {
        const kept = JSON.parse(localStorage.getItem(data.key) || "[]");
        choices = new Map(kept.filter(isRecord).map((record) => [record[0], record]));
      } catch { choices = new Map(); }
    },
    save() {
      try { localStorage.setItem(data.key, JSON.stringify([...choices.values()])); } catch { noStore.hidden = false; }
    },
  };
  const isRecord = (record) => Array.isArray(record) && record.length === data.heads.length
    && record.every((cell) => typeof cell === "string") && record[1] in words && (record[1] !== "relabel" || record[3] !== "");
  const decided = (suspect) => choices.get(suspect.name);
  const cellOf = (record) => (!record ? "" : record[1] === "relabel" ? `→ ${record[3]}` : record[1]);

  /* Parts that stay; what is in them changes with the row. */
  const button = (text, key, onclick, more = {}) => {
    const made = make("button", { type: "button", className: "button", onclick, ...more }, make("span", {}, text));
    if (key) { made.append(make("kbd", {}, key)); made.setAttribute("aria-keyshortcuts", key === "←" ? "ArrowLeft" : key === "→" ? "ArrowRight" : key); }
    return made;
  };
  const say = (element, text) => { element.querySelector("span").textContent = text; };
  const head = document.getElementById("bench");
  const bar = make("progress", { max: rows.length });
  bar.setAttribute("aria-label", "Suspects that are decided on");
  const count = make("strong"), counts = make("span", { className: "soft" });
  const noStore = make("p", { className: "caution", hidden: true }, "This browser keeps no choices: save your decisions before you close the page.");
  const told = make("p", { className: "told", hidden: true });
  told.setAttribute("role", "status");
  const file = make("input", { type: "file", accept: ".csv,text/csv", hidden: true });
  const saving = button("Save decisions.csv", "S", () => save(), { className: "button main" });
  const loading = button("Load decisions", "", () => file.click());
  const undoing = button("Undo", "Z", () => undo());
  const helping = button("Keys", "?", () => toggleKeys());
  helping.setAttribute("aria-expanded", "false");
  const keyList = make("dl", { className: "keys-of-bench", hidden: true }, ...[
    ["→ N", "next row"], ["← P", "previous row"], ["K", `keep the ${what}`], ["R", `relabel as suggested`], ["L", `type another ${what}`],
    ["D", "drop the row"], ["U", "back to undecided"], ["Z", "undo"], ["S", "save decisions.csv"], ["?", "show or hide the keys"],
  ].flatMap(([key, text]) => [make("dt", {}, ...key.split(" ").map((one) => make("kbd", {}, one))), make("dd", {}, text)]));
  const keyNote = make("p", { className: "soft", hidden: true }, "Keys work while the box of a row has the focus: click it, or reach it with Tab.");
  head.append(noStore, make("div", { className: "progress" }, make("p", {}, count, " ", counts), bar),
    make("div", { className: "actions" }, saving, loading, undoing, helping, file), keyNote, keyList, told);

  const back = button("Previous", "←", () => step(-1)), next = button("Next", "→", () => step(1));
  const where = make("span", { className: "soft" }), title = make("h3", { dir: "auto" });
  const image = columns.findIndex((column) => column.kind === "image");
  const pictures = image < 0 ? [] : [make("img", { className: "picture" })];
  const claim = make("p", { className: "claim" }), facts = make("dl", { className: "facts" }), texts = make("dl", { className: "texts" });
  const keeping = button("", "K", () => decide("keep")), relabelling = button("", "R", () => decide("relabel", now().suggested));
  const dropping = button("Drop", "D", () => decide("drop")), clearing = button("Undecided", "U", () => decide(null));
  const other = make("input", { type: "text", dir: "auto", autocomplete: "off", placeholder: `another ${what}` });
  other.setAttribute("aria-label", `Another ${what}`);
  const known = make("datalist", { id: "labels-of-bench" }, ...data.labels.map((label) => make("option", { value: label })));
  other.setAttribute("list", known.id);
  const otherButton = make("button", { className: "button" }, make("span", {}, "Relabel"), make("kbd", {}, "L"));
  const another = make("form", { className: "another" }, other, known, otherButton);
  const decisions = make("div", { className: "decisions" }, keeping, relabelling, another, dropping, clearing);
  decisions.setAttribute("role", "group");
  decisions.setAttribute("aria-label", "Decision");
  const beside = make("div", { className: "scroll beside", tabIndex: 0 });
  beside.setAttribute("role", "region");
  beside.setAttribute("aria-label", "The row beside its nearest rows");
  const more = make("button", { type: "button", className: "button", onclick: () => { wide = !wide; compare(now()); } });
  const left = make("span", { className: "soft" }, data.columns.length < data.n_columns ? ` ${data.columns.length} of ${data.n_columns} columns fit into this page.` : "");
  const legend = make("p", { className: "soft" }, "Coloured cells are half a standard deviation or more (darker: one and a half) above ▲ or below ▼ this row, or another text. A row with “?” is itself a suspect.");
  const spoken = make("p", { className: "unseen" });
  spoken.setAttribute("aria-live", "polite");
  const inside = make("div", {}, make("div", { className: "claims" }, ...pictures, make("div", {}, title, claim, facts, texts)), decisions, beside, legend, make("p", {}, more, left));
  const nothing = make("p", { hidden: true }, "No row fits the filters above.");
  const card = make("div", { className: "bench card", tabIndex: -1 },
    make("div", { className: "turn" }, back, where, next), nothing, inside, spoken);
  card.setAttribute("role", "group");
  card.setAttribute("aria-label", "One suspect");
  list.tools.after(card);
  if (list.chooser) list.root.before(list.chooser);
  head.hidden = false;

  const now = () => suspects.get(current);
  const fits = (label) => data.allowed === "any" || (data.allowed === "numbers" ? isFinite(label) : data.labels.includes(label));

  function decide(decision, label = "") {
    const suspect = now(), before = decided(suspect);
    if (!suspect || !chosen.includes(current)) return;
    const wanted = label.trim(), kind = decision === "relabel" && wanted === suspect.label ? "keep" : decision;
    if (kind === "relabel" && wanted === "") return;
    if (kind === "relabel" && !fits(wanted)) {
      announce(`“${wanted}” does not fit: ${data.allowed === "numbers" ? `${target} holds numbers` : `choose ${data.labels.join(" or ")}`}.`, true);
      return;
    }
    past.push([suspect, before]);
    if (kind === null) choices.delete(suspect.name);
    else choices.set(suspect.name, [suspect.name, kind, suspect.label, kind === "relabel" ? wanted : kind === "keep" ? suspect.label : "", suspect.contents]);
    const i = chosen.indexOf(current);
    if (kind !== null) current = chosen[i + 1] || (list.matches(mark(suspect)) ? current : chosen[i - 1] || current);
    changed();
    if (kind === "relabel" && !data.numbers && !data.labels.includes(wanted)) announce(`“${wanted}” is a new label: no row of the table has it. Undo it with Z if that is a slip.`, true);
  }

  function undo() {
    const [suspect, before] = past.pop() || [];
    if (!suspect) return;
    if (before) choices.set(suspect.name, before); else choices.delete(suspect.name);
    current = suspect.row;
    changed();
  }

  /* The decision on a row goes into the list. */
  function mark(suspect) {
    suspect.row[place] = cellOf(decided(suspect));
    return suspect.row;
  }

  function changed() {
    store.save();
    told.hidden = true;
    refresh();
  }

  function refresh() {
    suspects.forEach(mark);
    open(current);
  }

  function step(by) {
    const to = chosen[chosen.indexOf(current) + by];
    if (to) open(to);
  }

  function open(row) {
    current = row;
    list.change({ page: Math.max(Math.floor(list.chosen().indexOf(row) / list.size), 0) });
  }

  /* The list was sorted, filtered or changed: its lines lead to the box, which follows it. */
  list.onDraw = (lines, shown, all) => {
    chosen = all;
    if (!all.includes(current) && all.length) current = all[0];
    lines.forEach((line, i) => {
      const name = line.cells[0];
      name.replaceChildren(make("button", { type: "button", className: "to-row", onclick: () => { open(shown[i]); card.focus({ preventScroll: true }); card.scrollIntoView({ block: "nearest" }); } }, ...name.childNodes));
      if (shown[i] === current) line.setAttribute("aria-current", "true");
    });
    tell();
  };

  function tell() {
    const n = { keep: 0, relabel: 0, drop: 0 };
    suspects.forEach((suspect) => { const record = decided(suspect); if (record) n[record[1]]++; });
    const done = n.keep + n.relabel + n.drop;
    count.textContent = `${done} of ${rows.length} decided`;
    counts.textContent = done ? `${n.keep} kept, ${n.relabel} relabelled, ${n.drop} dropped${done === rows.length ? "; now save them" : ""}` : "";
    bar.value = done;
    saving.disabled = choices.size === 0;
    undoing.disabled = past.length === 0;
    const i = chosen.indexOf(current);
    nothing.hidden = i >= 0;
    inside.hidden = i < 0;
    back.disabled = i <= 0;
    next.disabled = i < 0 || i + 1 >= chosen.length;
    where.textContent = i < 0 ? "" : `${i + 1} of ${chosen.length}`;
    if (i >= 0) tellRow(now());
  }

  function tellRow(suspect) {
    const record = decided(suspect), kind = record ? record[1] : null;
    title.textContent = `${columns[0].name} ${suspect.row[0]}`;
    for (const picture of pictures) Object.assign(picture, { src: `data:image/png;base64,${suspect.row[image]}`, alt: `image of row ${suspect.row[0]}` });
    claim.replaceChildren(`${target}  `, make("b", { dir: "auto" }, suspect.label || "(empty)"));
    if (suspect.suggested) claim.append("  suggested  ", make("b", { dir: "auto", className: "suggested" }, suspect.suggested));
    const evidence = data.evidence.filter((at) => suspect.row[at] !== null).map((at) => [columns[at].name, show(suspect.row[at], columns[at])]);
    if (suspect.far[0] !== null && suspect.far[1] !== null) evidence.push(["mean distance", `${suspect.far[0].toFixed(2)} to another ${what}, ${suspect.far[1].toFixed(2)} to the same`]);
    facts.replaceChildren(...evidence.map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text))));
    const long = data.columns.map(([name], j) => [name, data.cells[suspect.own][j]]).filter(([, cell]) => String(cell).length > LONG);
    texts.hidden = !long.length;
    texts.replaceChildren(...long.flatMap(([name, cell]) => [make("dt", {}, name), make("dd", { dir: "auto" }, cell)]));
    say(keeping, `Keep “${suspect.label}”`);
    say(relabelling, suspect.suggested ? `Relabel “${suspect.suggested}”` : "Nothing suggested");
    relabelling.disabled = !suspect.suggested || suspect.suggested === suspect.label;
    const typed = kind === "relabel" && record[3] !== suspect.suggested;
    other.value = typed ? record[3] : "";
    const pressed = [[keeping, kind === "keep"], [relabelling, kind === "relabel" && !typed], [otherButton, typed], [dropping, kind === "drop"], [clearing, kind === null]];
    for (const [element, is] of pressed) element.setAttribute("aria-pressed", String(is));
    spoken.textContent = `${title.textContent}, ${what} ${suspect.label}, suggested ${suspect.suggested || "nothing"}, ${cellOf(record) || "undecided"}`;
    compare(suspect);
  }

  /* The row and its nearest rows side by side, a line for each column of the table. */
  function compare(suspect) {
    const groups = [
      ["this row", [suspect.own]], [data.numbers ? "nearest rows" : `nearest with another ${what}`, suspect.against], [`nearest with the same ${what}`, suspect.alike],
    ].filter(([, some]) => some.length);
    const every = groups.flatMap(([, some]) => some), lines = [];
    const isSuspect = (z) => z !== suspect.own && owns.has(z);
    const line = (name, cells) => make("tr", {}, Object.assign(make("th", { scope: "row", title: name }, name)), ...cells);
    if (data.images.length) lines.push(line("", every.map((z) => make("td", {}, make("img", { src: `data:image/png;base64,${data.images[z]}`, alt: `image of row ${data.names[z]}` })))));
    if (data.own.length) lines.push(line(target, every.map((z) => make("td", { dir: "auto", className: data.own[z] === suspect.label ? "" : "other" }, make("b", {}, data.own[z])))));
    const shown = wide ? data.columns.length : Math.min(FEW, data.columns.length);
    for (let j = 0; j < shown; j++) lines.push(line(data.columns[j][0], every.map((z) => makeCell(data.cells[z][j], data.cells[suspect.own][j], data.columns[j][1]))));
    const top = make("tr", {}, make("td"), ...groups.map(([name, some]) => make("th", { scope: "colgroup", colSpan: some.length }, name)));
    const names = make("tr", {}, make("td"), ...every.map((z) => make("th", { scope: "col", dir: "auto", title: isSuspect(z) ? `${data.names[z]}, itself a suspect` : data.names[z] }, data.names[z], ...(isSuspect(z) ? [make("small", {}, " ?")] : []))));
    const table = make("table", {}, make("thead", {}, top, names), make("tbody", {}, ...lines));
    let first = 1;
    for (const [, some] of groups) { for (const one of table.rows) if (one !== top) one.cells[first].classList.add("first"); first += some.length; }
    beside.replaceChildren(table);
    beside.hidden = legend.hidden = lines.length === 0;
    more.hidden = data.columns.length <= FEW;
    more.textContent = wide ? `Show the first ${FEW} columns` : `Show all ${data.columns.length} columns`;
  }

  /* A cell, marked by how far it is from that of the suspect. */
  function makeCell(cell, own, scale) {
    const isNumber = typeof cell === "number", text = cell === null || cell === "" ? "–" : String(cell);
    const made = make("td", { className: isNumber ? "number" : "", dir: isNumber ? "" : "auto", title: text.length > 12 ? text : "" }, isNumber ? text : make("div", {}, text));
    if (isNumber && typeof own === "number") {
      const far = scale ? (cell - own) / scale : 0;
      if (Math.abs(far) >= 0.5) {
        made.classList.add(Math.abs(far) >= 1.5 ? "far" : "off");
        made.append(make("small", { title: `${Math.abs(far).toFixed(1)} standard deviations ${far > 0 ? "higher" : "lower"}` }, far > 0 ? "▲" : "▼"));
      }
    } else if (cell !== own) made.classList.add("far");
    return made;
  }

  function save() {
    if (!choices.size) return;
    const link = make("a", { href: URL.createObjectURL(new Blob([csv.write([data.heads, ...choices.values()])], { type: "text/csv;charset=utf-8" })), download: "decisions.csv" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    const elsewhere = [...choices.keys()].filter((name) => !byName.has(name)).length;
    announce(`${choices.size} decisions are in decisions.csv${elsewhere ? `, ${elsewhere} of them on rows that are not in this list` : ""}.`);
  }

  function announce(text, refused = false) {
    told.textContent = text;
    told.className = refused ? "told refused" : "told";
    told.hidden = false;
  }

  /* Decisions of another table are refused: a row of this list would have other contents. */
  function load(text) {
    const [heads = [], ...lines] = csv.read(text), at = data.heads.map((name) => heads.indexOf(name));
    if (at.includes(-1)) return announce(`This file has no column “${data.heads[at.indexOf(-1)]}”; choose a decisions.csv that a report has saved.`, true);
    const records = lines.map((line) => at.map((i) => line[i] ?? ""));
    const wrong = records.find((record) => !isRecord(record));
    if (wrong) return announce(`The decision on row “${wrong[0]}” is not known.`, true);
    const here = records.filter(([name]) => byName.has(name));
    const stranger = here.find(([name, , label, , contents]) => byName.get(name).contents !== contents || byName.get(name).label !== label);
    const why = stranger ? `: row “${stranger[0]}” was another one` : ", or about other rows";
    if (stranger || (!here.length && records.length)) return announce(`These are decisions about another table${why}. Nothing was changed.`, true);
    for (const record of records) choices.set(record[0], record);
    past = [];
    changed();
    return announce(`${records.length} decisions were loaded.`);
  }
  file.onchange = async () => {
    if (file.files.length) load(await file.files[0].text());
    file.value = "";
  };

  another.onsubmit = (event) => {
    event.preventDefault();
    if (!other.value.trim()) { other.focus(); return; }
    decide("relabel", other.value);
    card.focus({ preventScroll: true });
  };

  function toggleKeys() {
    keyList.hidden = keyNote.hidden = !keyList.hidden;
    helping.setAttribute("aria-expanded", String(!keyList.hidden));
  }

  const keys = {
    arrowright: () => step(1), n: () => step(1), arrowleft: () => step(-1), p: () => step(-1),
    k: () => decide("keep"), r: () => decide("relabel", now().suggested), d: () => decide("drop"), u: () => decide(null),
    l: () => other.focus(), z: undo, s: save, "?": toggleKeys,
  };
  for (const box of [head, card]) {
    box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target === other) {
        if (event.key === "Escape") card.focus({ preventScroll: true });
        return;
      }
      const key = event.key.toLowerCase(), moves = event.target.closest(".scroll") && key.startsWith("arrow");
      if (!keys[key] || moves) return;
      event.preventDefault();
      keys[key]();
      const at = document.activeElement;  // Enter must not press a button again that a mouse has pressed before
      if (at.disabled || (at !== other && decisions.contains(at))) card.focus({ preventScroll: true });
    });
  }
  const section = head.closest("section");
  addEventListener("hashchange", () => { if (section && location.hash === `#${section.id}`) card.focus({ preventScroll: true }); });
  addEventListener("storage", (event) => { if (event.key === data.key) { store.load(); refresh(); } });

  store.load();
  refresh();
}
