"use strict";
// Steps are found by their words; a bar of the chart opens its step.
const steps = [...document.querySelectorAll(".exported > details")];
document.getElementById("find").addEventListener("input", ({ target }) => {
  const words = target.value.toLowerCase().split(/\s+/);
  for (const each of steps) {
    const text = each.textContent.toLowerCase();
    each.hidden = !words.every((word) => text.includes(word));
  }
});
const open = () => {
  const step = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (step && step.matches("details")) step.open = true;
};
addEventListener("hashchange", open);
open();
addEventListener("keydown", (event) => {
  if (event.target.closest("input") || event.ctrlKey || event.metaKey || event.altKey) return;
  const by = { j: 1, k: -1 }[event.key];
  if (event.key === "/") {
    event.preventDefault();
    document.getElementById("find").focus();
  } else if (by) {
    const shown = steps.filter((each) => !each.hidden);
    const at = shown.findIndex((each) => each.contains(document.activeElement));
    shown[Math.min(Math.max(at + by, 0), shown.length - 1)]?.querySelector("summary").focus();
  }
});
