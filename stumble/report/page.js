"use strict";
// Tables sort by a click on a heading: by number where there is one, unknown ones last.
for (const table of document.querySelectorAll("table.figures")) {
  const body = table.tBodies[0];
  if (body.rows.length < 3) continue;
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => row.cells[column].dataset.sort ?? row.cells[column].textContent.trim();
      const order = (one, two) => {
        const a = key(one), b = key(two);
        if (a === "" || b === "") return (a === "") - (b === "");
        const by = isNaN(a) || isNaN(b) ? a.localeCompare(b, undefined, { numeric: true }) : a - b;
        return down ? -by : by;
      };
      body.append(...[...body.rows].sort(order));
    });
  });
}
// Injections are found by the words of their summary.
const find = document.getElementById("find");
if (find) {
  find.closest("p").hidden = false;
  const all = [...document.querySelectorAll(".example")];
  find.addEventListener("input", () => {
    const words = find.value.toLowerCase().split(/\s+/);
    let count = 0;
    for (const each of all) {
      const said = each.querySelector("summary").textContent.toLowerCase();
      each.hidden = !words.every((word) => said.includes(word));
      count += !each.hidden;
    }
    document.getElementById("found").textContent = `${count} of ${all.length}`;
  });
}
// Paper cannot be unfolded.
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details.long")) each.open = true;
});
