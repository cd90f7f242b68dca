// Elements of the page. What comes from an event is written as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

export function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

export function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

export function listed(list, lines) {
  list.replaceChildren(...lines.map(([text, className]) => element("li", text, className)));
}

// Columns are { label, of, kind }: `of` makes text or a node of a row; kinds are `number`
// and `picture`. The first column names the row. Roles are said because narrow pages lay
// rows out as blocks, which takes a table's meaning from it.
export function fill(table, columns, rows) {
  const head = element("thead");
  const names = element("tr");
  for (const { label, kind } of columns) {
    const name = element("th", label, kind);
    if (!label) name.append(element("span", kind ? "drawn" : "name", "unseen"));
    name.scope = "col";
    name.setAttribute("role", "columnheader");
    names.append(name);
  }
  head.append(names);
  const body = element("tbody");
  body.append(...rows.map((row, number) => {
    const made = element("tr");
    made.append(...columns.map((column, i) => cellOf(column, i, row, number)));
    return made;
  }));
  table.setAttribute("role", "table");
  for (const part of [head, body]) part.setAttribute("role", "rowgroup");
  table.tHead?.remove();
  for (const old of [...table.tBodies]) old.remove();
  table.append(head, body);
  for (const row of table.rows) row.setAttribute("role", "row");
}

function cellOf({ label, of, kind }, i, row, number) {
  const cell = element(i ? "td" : "th", undefined, kind);
  const found = of(row, number);
  cell.append(found ?? "–");
  if ((found ?? "") === "") cell.classList.add("nothing");
  cell.dataset.label = label;
  cell.setAttribute("role", i ? "cell" : "rowheader");
  if (!i) cell.scope = "row";
  return cell;
}

// Draws a part anew and puts the focus back on what had it, by its `data-key`.
export function redrawn(part, draw) {
  const key = part.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  draw();
  if (key === undefined) return;
  [...part.querySelectorAll("[data-key]")].find((each) => each.dataset.key === key)?.focus();
}
