"use strict";
// Long tables can be sorted and filtered, commands copied. All of it is there without this script.
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

  document.querySelectorAll("table.long").forEach((table) => {
    sortable(table);
    filterable(table);
  });
  document.querySelectorAll("code.command").forEach(copyable);
})();
