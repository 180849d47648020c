// What every page has: live parts, forms that follow their fields, keys.
const main = document.getElementById("main");

// A part with `data-live` and an id is replaced by its newest version, unless nothing changed or
// the reader is using it.
export async function refresh(address = location.href) {
  const answer = await fetch(address, { headers: { "X-Requested-With": "refresh" } });
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const other = fresh.getElementById(part.id);
    if (!other || other.innerHTML === part.innerHTML) continue;
    const held = part.contains(document.activeElement) ? pathOf(document.activeElement) : null;
    const scrolled = part.scrollTop;
    part.replaceChildren(...document.adoptNode(other).childNodes);
    part.scrollTop = scrolled;
    if (held) part.querySelector(held)?.focus({ preventScroll: true });
    part.dispatchEvent(new CustomEvent("refreshed", { bubbles: true }));
  }
}

function pathOf(element) {
  const href = element.getAttribute("href");
  return href ? `[href="${CSS.escape(href)}"]` : element.id ? `#${CSS.escape(element.id)}` : "a";
}

const dot = document.getElementById("live");
if (dot && document.querySelector("[data-live]")) {
  let shown = dot.dataset.version, running = false;
  const events = new EventSource("/events");
  events.onopen = () => dot.classList.add("on");
  events.onerror = () => dot.classList.remove("on");
  events.onmessage = async ({ data }) => {
    if (data === shown || running) return;
    running = true;
    try {
      await refresh();
      shown = data;
    } finally {
      running = false;
    }
  };
  addEventListener("pagehide", () => events.close());
}

// A form with `data-auto` is sent when a field changes; text, after a pause.
document.documentElement.classList.add("scripts");
for (const form of document.querySelectorAll("form[data-auto]")) {
  const send = () => {
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    location.assign(form.action.split("?")[0] + (query.size ? `?${query}` : ""));
  };
  form.addEventListener("change", (event) => event.target.matches("select") && send());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
}

// Keys. A page may add its own with `onKey`.
const keys = document.getElementById("keys");
const own = {};
export function onKey(key, action) {
  own[key] = action;
}
document.getElementById("show-keys")?.addEventListener("click", () => keys.showModal());

function move(by) {
  const rows = [...document.querySelectorAll("a.open")].filter((each) => each.offsetParent);
  if (!rows.length) return;
  const at = rows.findIndex((row) => row === document.activeElement || row.matches("[aria-current]"));
  const next = rows[Math.min(Math.max(at + by, 0), rows.length - 1)];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest("input, textarea, select, dialog")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const action = own[event.key] ?? {
    j: () => move(1),
    k: () => move(-1),
    "/": () => document.querySelector("[data-slash]")?.focus(),
    "?": () => keys.showModal(),
  }[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

export { main };
