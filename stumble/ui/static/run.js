// A run: steps are shown without loading the page again; streams play; text is found.
import { onKey } from "./frame.js";

const detail = document.getElementById("detail");

async function show(address, push = true) {
  const answer = await fetch(address);
  if (!answer.ok) return location.assign(address);
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  detail.replaceChildren(...document.adoptNode(fresh.getElementById("detail")).childNodes);
  if (push) history.pushState(null, "", address);
  const at = new URL(address, location.href).searchParams.get("at");
  mark(at);
  prepare();
}

function mark(at) {
  for (const link of document.querySelectorAll(".step, .lanes a")) {
    const on = link.dataset.key === at;
    if (on) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
    if (on && link.matches(".step")) reveal(link);
  }
}

// Only the list scrolls, never the page.
function reveal(step) {
  const list = document.getElementById("steps"), own = step.getBoundingClientRect(), box = list.getBoundingClientRect();
  if (own.top < box.top) list.scrollTop -= box.top - own.top + 8;
  else if (own.bottom > box.bottom) list.scrollTop += own.bottom - box.bottom + 8;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest(".step, .lanes a, .tabs a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  show(new URL(link.getAttribute("href"), location.href).href);
});
addEventListener("popstate", () => show(location.href, false));
document.addEventListener("refreshed", () => mark(new URL(location.href).searchParams.get("at")));

// j and k show the step they reach.
document.addEventListener("focusin", (event) => {
  if (!event.target.matches(".step") || !moved) return;
  moved = false;
  clearTimeout(pause);
  pause = setTimeout(() => show(new URL(event.target.getAttribute("href"), location.href).href), 120);
});
let moved = false, pause = 0;
addEventListener("keydown", (event) => {
  if (event.key === "j" || event.key === "k") moved = true;
}, true);
onKey("f", () => document.getElementById("inject")?.click());

function prepare() {
  document.getElementById("play")?.addEventListener("click", play);
  document.getElementById("find-text")?.addEventListener("input", find);
}

// Chunks appear at the times at which they arrived; pauses keep their length.
let playing = 0;
function play(event) {
  const chunks = [...document.querySelectorAll("#chunks li")], turn = ++playing;
  const first = Number(chunks[0].dataset.at), began = performance.now();
  for (const each of chunks) each.hidden = true;
  event.target.textContent = "Playing";
  const step = () => {
    if (turn !== playing || !event.target.isConnected) return;
    const at = (performance.now() - began) / 1000;
    for (const each of chunks) each.hidden = Number(each.dataset.at) - first > at;
    if (chunks.at(-1).hidden) requestAnimationFrame(step);
    else event.target.textContent = "Play at recorded pace";
  };
  step();
}

// Found words are marked without a change of the text.
function find(event) {
  const wanted = event.target.value.toLowerCase(), found = document.getElementById("found");
  CSS.highlights?.delete("found");
  found.textContent = "";
  if (!wanted || !CSS.highlights) return;
  const ranges = [], walker = document.createTreeWalker(detail.querySelector(".detail-body"), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.data.toLowerCase();
    for (let at = text.indexOf(wanted); at >= 0 && ranges.length < 2000; at = text.indexOf(wanted, at + wanted.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + wanted.length);
      ranges.push(range);
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
  found.textContent = ranges.length ? `${ranges.length} found` : "none";
  ranges[0]?.startContainer.parentElement.scrollIntoView({ block: "nearest" });
}
// Rows are drawn first where they are seen; with all of them laid out, scrolling needs no layout.
const LAID_OUT = 3000;
if (document.querySelectorAll(".step").length <= LAID_OUT)
  requestIdleCallback(() => document.documentElement.classList.add("laid-out"));
prepare();
const current = document.querySelector(".step[aria-current]");
if (current) reveal(current);
