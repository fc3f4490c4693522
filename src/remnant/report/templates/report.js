"use strict";
// One study at a time, values of charts by touch and key, long tables sorted, commands copied.
// All of it can be read without this script.
(() => {
  const make = (name, kind, text) => {
    const element = document.createElement(name);
    element.className = kind;
    element.textContent = text || "";
    return element;
  };

  const number = (text) => (text !== "" && isFinite(text) ? Number(text) : null);

  const compare = (a, b) => {
    if (a === b) return 0;
    if (a === "" || b === "") return a === "" ? 1 : -1;
    const [x, y] = [number(a), number(b)];
    if (x !== null && y !== null) return x - y;
    return a.localeCompare(b, "en", { numeric: true });
  };

  // Heads of single columns, from left to right, whether they span one row or two.
  const heads = (table) => {
    const [first, second] = table.tHead.rows;
    const below = second ? [...second.cells] : [];
    return [...first.cells].flatMap((cell) =>
      cell.colSpan > 1 || cell.scope === "colgroup" ? below.splice(0, cell.colSpan) : [cell]);
  };

  const sortable = (table) => {
    const body = table.tBodies[0];
    const all = heads(table);
    all.forEach((head, column) => {
      const button = make("button", "sort", head.textContent);
      button.type = "button";
      button.title = "Sort by this column";
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        const rows = [...body.rows].sort((a, b) => {
          const [x, y] = [a, b].map((row) => row.cells[column].dataset.value);
          // What is missing stays last either way.
          return x === "" || y === "" || !down ? compare(x, y) : compare(y, x);
        });
        all.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        body.append(...rows);
      });
    });
  };

  const filterable = (table) => {
    const rows = [...table.tBodies[0].rows];
    const words = rows.map((row) => row.textContent.toLowerCase());
    const box = make("p", "filter");
    const label = make("label", "", "Filter rows ");
    const input = make("input", "");
    const count = make("output", "note", ` ${rows.length} rows`);
    input.type = "search";
    label.append(input);
    box.append(label, count);
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      let shown = 0;
      rows.forEach((row, i) => {
        row.hidden = !words[i].includes(wanted);
        shown += row.hidden ? 0 : 1;
      });
      count.textContent = ` ${shown} of ${rows.length} rows`;
    });
    table.parentElement.before(box);
  };

  const copyable = (code) => {
    const button = make("button", "copy", "Copy");
    button.type = "button";
    const done = () => {
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    };
    const select = () => getSelection().selectAllChildren(code);
    button.addEventListener("click", () => {
      if (!navigator.clipboard) { select(); return; }
      navigator.clipboard.writeText(code.textContent).then(done, select);
    });
    code.after(" ", button);
  };

  // -- one view at a time ------------------------------------------------------------------------

  const views = [...document.querySelectorAll("main > .view")];
  const links = [...document.querySelectorAll(".contents a")];

  const show = (view) => {
    views.forEach((other) => {
      if (other === view) other.removeAttribute("hidden");
      else other.setAttribute("hidden", "until-found");
    });
    links.forEach((link) => {
      const target = document.getElementById(link.hash.slice(1));
      if (target && view.contains(target)) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    });
  };

  const go = () => {
    const target = document.getElementById(location.hash.slice(1));
    const view = target && target.closest("main > .view");
    show(view || views[0]);
    if (!view) return;
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details"))
      fold.open = true;
    target.scrollIntoView();
  };

  views.forEach((view) => view.addEventListener("beforematch", () => show(view)));
  if (views.length > 1) {
    document.documentElement.classList.add("one");
    addEventListener("hashchange", go);
    go();
  }

  // -- studies by outcome and by words -----------------------------------------------------------

  const rows = [...document.querySelectorAll("[data-run]")];
  const article = (row) => document.getElementById(row.dataset.run).closest("article");
  const wanted = { words: "", outcome: "" };

  const choose = () => rows.forEach((row) => {
    const study = article(row);
    const words = study.textContent.toLowerCase().includes(wanted.words);
    const outcome = !wanted.outcome || study.dataset.outcome.toLowerCase() === wanted.outcome;
    row.hidden = !(words && outcome);
  });

  const pressable = (count) => {
    const button = make("button", count.className, count.textContent.trim());
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    button.title = "Show only these studies";
    const item = make("li", "");
    item.append(button);
    count.replaceWith(item);
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") === "false";
      document.querySelectorAll(".counts button").forEach((other) =>
        other.setAttribute("aria-pressed", "false"));
      button.setAttribute("aria-pressed", String(on));
      wanted.outcome = on ? count.dataset.outcome.toLowerCase() : "";
      choose();
    });
  };

  if (rows.length) {
    const input = make("input", "find");
    input.type = "search";
    input.placeholder = "Filter studies";
    input.setAttribute("aria-label", "Filter studies");
    input.addEventListener("input", () => {
      wanted.words = input.value.trim().toLowerCase();
      choose();
    });
    document.querySelector(".head").append(input);
    document.querySelectorAll(".counts .chip").forEach(pressable);
  }

  // -- values of charts: pointed at, touched, or one after another by the arrow keys --------------

  const tip = make("div", "tip");
  tip.setAttribute("role", "status");
  tip.hidden = true;
  document.body.append(tip);

  let told = null;
  const tell = (mark) => {
    told = mark;
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.tip;
    const box = mark.getBoundingClientRect();
    const own = tip.getBoundingClientRect();
    const left = Math.min(Math.max(4, box.x + box.width / 2 - own.width / 2), innerWidth - own.width - 4);
    tip.style.left = `${left}px`;
    tip.style.top = `${box.y > own.height + 70 ? box.y - own.height - 8 : box.bottom + 8}px`;
  };

  document.querySelectorAll("svg.chart").forEach((chart) => {
    const marks = [...chart.querySelectorAll("title")].map((words) => words.parentElement)
      .filter((mark) => mark !== chart);
    if (!marks.length) return;
    marks.forEach((mark) => {
      const words = mark.querySelector("title");
      mark.dataset.tip = words.textContent;
      words.remove();
      mark.addEventListener("pointerenter", () => tell(mark));
      mark.addEventListener("pointerleave", () => tell(null));
      mark.addEventListener("click", () => tell(mark));
    });
    let at = -1;
    chart.setAttribute("tabindex", "0");
    chart.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") tell(null);
      if (!step) return;
      event.preventDefault();
      at = (at + step + marks.length) % marks.length;
      tell(marks[at]);
    });
    chart.addEventListener("blur", () => tell(null));
  });
  addEventListener("scroll", () => tell(told), { passive: true });

  document.querySelectorAll("table.long").forEach((table) => {
    sortable(table);
    filterable(table);
  });
  document.querySelectorAll("code.command").forEach(copyable);
})();
